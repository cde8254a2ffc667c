"""Who is to blame when a side of a dialogue fails, told by asking it without the agent's words."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from models.tiny_llama import save_tiny_llama
from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.dialogue.blame import EXCUSES, PLACEHOLDER, UNREADABLE, readable, reply_or_excuse
from sweetrl.dialogue.collaborators import ModelCollaborator, ReplayedCollaborator, ScriptedCollaborator
from sweetrl.dialogue.rollout import Drafts, roll_out
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.designer import ScriptedDesigner
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import CollaboratorError, ConfigError, ModelError, NoReplyError, RenderError, StageError
from sweetrl.models.local import LocalModel
from sweetrl.types import Ending, Episode, Message, Reply, Role, Sampling, Shot, Task

TASK = Task(
    id="t",
    domain="backend",
    request="Write f.",
    secret=BackendSecret(reference="def f(): return 1", tests={"test1": "f()"}),
)
WANTED = "<html>x</html>"
PAGE = Task(id="p", domain="frontend", request="A page.", secret=FrontendSecret(page=WANTED))
ANSWER = "I WANT TO ANSWER: def f(): return 1"
BAD = "BAD"
CAUSES = [
    NoReplyError("too long", kind="context_length"),
    NoReplyError("filtered", kind="content_filter"),
    NoReplyError("said nothing", kind="no_content"),
    ModelError("no complete reply in time", kind="timeout"),
    ModelError("HTTP 400: what is this?", kind="bad_request"),
    ModelError("HTTP 500", kind="server"),
    RenderError("the browser died"),
    CollaboratorError("confused"),
    ZeroDivisionError("a bug"),
]


class Fragile:
    """A collaborator that fails on messages with a bad word in them, and counts how often it was asked."""

    name = "fragile"

    def __init__(self, error: Exception, *, fails: int | None = None) -> None:
        self.error = error
        self.fails = fails
        self.asked: list[list[str]] = []

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        self.asked.append([message.text for message in history])
        if self.fails != 0 and any(BAD in message.text for message in history):
            self.fails = None if self.fails is None else self.fails - 1
            raise self.error
        return Reply("Yes.")


class Dead:
    """A collaborator that fails on everything."""

    name = "dead"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        raise self.error


async def collect(episodes: AsyncIterator[Episode]) -> list[Episode]:
    return [episode async for episode in episodes]


def rolled(agent: object, collaborator: object, task: Task = TASK, **options: object) -> Episode:
    [episode] = asyncio.run(collect(roll_out([task], agent, collaborator, **options)))  # type: ignore[arg-type]
    return episode


# ---------------------------------------------------------------- the collaborator's side


@pytest.mark.parametrize("error", CAUSES, ids=repr)
def test_words_that_break_the_collaborator_get_a_fixed_reply_and_the_dialogue_is_whole(
    error: Exception,
) -> None:
    episode = rolled(ScriptedAgent([f"{BAD}?", "Good?", ANSWER]), Fragile(error))
    assert (episode.ending, episode.failure) == (Ending.ANSWERED, None)
    replies = [turn.reply for turn in episode.turns]
    kind = getattr(error, "kind", type(error).__name__)
    assert replies == [Reply(EXCUSES.get(kind, UNREADABLE), excuse=kind), Reply("Yes."), None]
    assert [turn.answered for turn in episode.turns] == [False, True, False]


@pytest.mark.parametrize("error", CAUSES, ids=repr)
def test_a_collaborator_that_answers_nothing_at_all_is_a_failure_of_ours(error: Exception) -> None:
    episode = rolled(ScriptedAgent(["Good?", ANSWER]), Dead(error))
    assert episode.ending is Ending.FAILED
    assert episode.failure is not None
    assert (episode.failure.stage, episode.failure.message) == ("collaborator", str(error))


def test_what_the_collaborator_could_not_read_is_not_shown_to_it_again() -> None:
    collaborator = Fragile(NoReplyError("too long", kind="context_length"))
    rolled(ScriptedAgent([f"{BAD}?", "Good?", ANSWER]), collaborator)
    assert collaborator.asked[-1] == ["Write f.", PLACEHOLDER, EXCUSES["context_length"], "Good?"]


def test_a_model_in_this_process_whose_context_a_message_exceeds_is_no_way_out(tmp_path: Path) -> None:
    model = LocalModel(str(save_tiny_llama(tmp_path, max_position_embeddings=2048)), name="tiny")
    collaborator = ModelCollaborator(
        model, BACKEND.prompts.collaborator, domain=BACKEND, sampling=Sampling(max_tokens=20)
    )
    episode = rolled(ScriptedAgent(["please " * 500, "Good?", ANSWER]), collaborator)
    asyncio.run(model.close())
    assert [turn.troubles for turn in episode.turns] == [["collaborator: context_length"], [], []]


def test_only_the_message_before_an_excuse_is_hidden() -> None:
    said = [Message(Role.USER, "Write f."), Message(Role.ASSISTANT, "One?"), Message(Role.USER, "Yes.")]
    assert readable(said) == said
    assert readable([*said[:2], Message(Role.USER, UNREADABLE)])[1].text == PLACEHOLDER
    assert readable([*said[:1], Message(Role.ASSISTANT, UNREADABLE)])[0] == said[0]


def test_a_clear_objection_to_the_words_is_not_provoked_a_second_time() -> None:
    collaborator = Fragile(NoReplyError("too long", kind="context_length"))
    rolled(ScriptedAgent([BAD, ANSWER]), collaborator)
    assert [BAD in each[-1] for each in collaborator.asked] == [True, False]


def test_words_that_fail_for_an_unclear_reason_get_a_second_chance() -> None:
    collaborator = Fragile(ModelError("no complete reply in time", kind="timeout"), fails=1)
    episode = rolled(ScriptedAgent([BAD, ANSWER]), collaborator)
    assert episode.turns[0].reply == Reply("Yes.")
    assert [BAD in each[-1] for each in collaborator.asked] == [True, False, True]


def test_a_collaborator_that_breaks_for_good_meanwhile_is_a_failure_of_ours() -> None:
    class Dying(Fragile):
        async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
            reply = await super().reply(task, history, seed=seed)
            self.fails, self.error = None, CollaboratorError("gone")
            if len(self.asked) > 2:
                raise self.error
            return reply

    collaborator = Dying(ModelError("no complete reply in time", kind="timeout"))
    assert rolled(ScriptedAgent([BAD, ANSWER]), collaborator).ending is Ending.FAILED


def test_a_mistake_of_the_caller_is_raised_at_once() -> None:
    collaborator = Fragile(ConfigError("no such model"))
    history = [Message(Role.USER, "Write f."), Message(Role.ASSISTANT, BAD)]
    with pytest.raises(ConfigError):
        asyncio.run(reply_or_excuse(collaborator, TASK, history, seed=0))
    assert len(collaborator.asked) == 1


def test_a_bug_that_words_meet_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        rolled(ScriptedAgent([BAD, ANSWER]), Fragile(ZeroDivisionError("oops")))
    assert "Traceback" in caplog.text
    assert "oops" in caplog.text


def test_an_agent_that_asks_more_than_the_script_has_lines_is_scored_all_the_same() -> None:
    episode = rolled(ScriptedAgent(["One?", "Two?", ANSWER]), ScriptedCollaborator(["Yes."]))
    assert episode.ending is Ending.ANSWERED
    assert [turn.answered for turn in episode.turns] == [True, False, False]


class Browser:
    """Remembers the wanted page; any other one it shows for as long as it works."""

    def __init__(self, *, works: bool) -> None:
        self.works = works

    async def render(self, html: str) -> Shot:
        if html != WANTED and (not self.works or BAD in html):
            raise RenderError("the browser fails")
        return Shot(png=html.encode(), width=1, height=1, boxes=())

    async def close(self) -> None: ...


@pytest.mark.parametrize("works", [True, False])
def test_a_browser_that_shows_plain_pages_tells_a_page_that_breaks_it_from_a_breakdown(
    *, works: bool
) -> None:
    designer = ScriptedDesigner(Browser(works=works))
    episode = rolled(
        ScriptedAgent([f"<html>{BAD}</html>", "I WANT TO ANSWER: <html></html>"]), designer, PAGE
    )
    assert episode.ending is (Ending.ANSWERED if works else Ending.FAILED)


def test_dialogues_with_excuses_are_replayed_to_the_letter() -> None:
    agent = ScriptedAgent([f"{BAD}?", "Good?", ANSWER])
    first = rolled(agent, Fragile(NoReplyError("too long", kind="context_length")))
    again = rolled(agent, ReplayedCollaborator([first]))
    assert again.turns == first.turns


def test_leaving_the_path_of_a_replay_does_not_fail_the_dialogue() -> None:
    stored = rolled(ScriptedAgent(["One?", ANSWER]), ScriptedCollaborator(["Yes."]))
    episode = rolled(ScriptedAgent(["Another?", ANSWER]), ReplayedCollaborator([stored]))
    assert episode.ending is Ending.ANSWERED
    assert episode.turns[0].reply == Reply(UNREADABLE, excuse="not_stored")


# ---------------------------------------------------------------- the agent's side


class Overflowing:
    """An agent that fails as soon as it has said something."""

    name = "overflowing"

    def __init__(self, error: Exception, first: str = "One?", *, fails_always: bool = False) -> None:
        self.error = error
        self.first = first
        self.fails_always = fails_always

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        if len(history) > 1 or self.fails_always:
            raise self.error
        return [self.first] * n


@pytest.mark.parametrize(
    "error",
    [
        NoReplyError("full", kind="context_length"),
        NoReplyError("filtered", kind="content_filter"),
        ModelError("HTTP 400: empty message", kind="bad_request"),
        StageError("strange"),
    ],
    ids=repr,
)
def test_an_agent_that_cannot_go_on_after_its_own_words_is_scored_by_what_it_said(error: Exception) -> None:
    episode = rolled(Overflowing(error), ScriptedCollaborator(["Yes."]))
    assert (episode.ending, episode.answer, episode.failure) == (Ending.BROKE_OFF, "One?", None)
    last = episode.turns[-1]
    kind = getattr(error, "kind", type(error).__name__)
    assert (last.output, last.said, last.unfinished, last.trouble) == ("", "", True, f"agent: {kind}")


def test_a_page_that_was_shown_before_the_agent_broke_off_is_the_answer() -> None:
    agent = Overflowing(NoReplyError("full", kind="context_length"), "<html>draft</html>")
    episode = rolled(agent, ScriptedCollaborator(["Yes."]), PAGE)
    assert (episode.ending, episode.answer) == (Ending.BROKE_OFF, "<html>draft</html>")


@pytest.mark.parametrize("kind", ["no_content", "reply_filtered", "reply_too_large"])
def test_an_agent_whose_own_output_is_the_trouble_is_to_blame_from_the_first_turn_on(kind: str) -> None:
    agent = Overflowing(NoReplyError("nothing usable", kind=kind), fails_always=True)
    episode = rolled(agent, ScriptedCollaborator(["Yes."]))
    assert (episode.ending, episode.answer, len(episode.turns)) == (Ending.BROKE_OFF, None, 1)


@pytest.mark.parametrize("kind", ["context_length", "content_filter"])
def test_a_request_that_the_agents_endpoint_refuses_is_not_the_agents_fault(kind: str) -> None:
    agent = Overflowing(NoReplyError("refused", kind=kind), fails_always=True)
    assert rolled(agent, ScriptedCollaborator(["Yes."])).ending is Ending.FAILED


def test_an_agents_endpoint_that_dies_in_the_middle_is_a_failure_of_ours() -> None:
    class Dying(Overflowing):
        async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
            self.fails_always, fails = True, self.fails_always
            if fails:
                raise self.error
            return [self.first]

    agent = Dying(ModelError("no connection", kind="connection"))
    episode = rolled(agent, ScriptedCollaborator(["Yes."]))
    assert (episode.ending, len(episode.turns)) == (Ending.FAILED, 1)


# ---------------------------------------------------------------- the critic's side


async def picky(task: Task, history: Sequence[Message], outputs: Sequence[str]) -> int:
    if any(BAD in output for output in outputs):
        raise StageError("the turn is too long for the critic")
    return len(outputs) - 1


async def gone(task: Task, history: Sequence[Message], outputs: Sequence[str]) -> int:
    raise StageError("the critic is gone")


def test_drafts_that_no_critic_can_rank_do_not_fail_the_dialogue() -> None:
    agent = ScriptedAgent([f"{BAD}?", ANSWER])
    episode = rolled(agent, ScriptedCollaborator(["Yes."]), drafts=Drafts(2, picky, "picked"))
    assert episode.ending is Ending.ANSWERED
    assert [turn.trouble for turn in episode.turns] == ["critic: StageError", ""]


def test_a_critic_that_is_gone_is_a_failure_of_ours() -> None:
    episode = rolled(ScriptedAgent([ANSWER]), ScriptedCollaborator([]), drafts=Drafts(2, gone, "picked"))
    assert episode.failure is not None
    assert episode.failure.stage == "critic"
