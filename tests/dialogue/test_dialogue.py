import asyncio
from collections.abc import Sequence

import pytest

from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.dialogue.blame import UNREADABLE
from sweetrl.dialogue.collaborators import ScriptedCollaborator
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rollout import roll_out
from sweetrl.dialogue.rules import Conclusion, Rules
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import CollaboratorError, ConfigError, UsageError, WordsError
from sweetrl.seeds import derive_seed
from sweetrl.types import Ending, Episode, Failure, Message, Reply, Role, Task, Turn, Unfinished

TASK = Task(
    id="t", domain="backend", request="Write f.", secret=BackendSecret("def f(): ...", {"test1": "f()"})
)
ANSWER = "I WANT TO ANSWER: def f(): pass"


def seeded(task: Task, history: Sequence[Message], seed: int) -> str:
    return f"{task.id} {len(history)} {seed}"


def talk(dialogue: Dialogue, *outputs: str) -> list[Reply | Conclusion]:
    async def go() -> list[Reply | Conclusion]:
        return [await dialogue.say(output) for output in outputs]

    return asyncio.run(go())


class Fails:
    """A collaborator that cannot reply until it is mended."""

    name = "fails"

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        if self.error is not None:
            raise self.error
        return Reply("Yes.")


# ---------------------------------------------------------------- saying things


def test_saying_something_gives_the_reply() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(["This."]))
    assert talk(dialogue, "hm OUTPUT: Which?") == [Reply("This.")]
    assert dialogue.turns == (Turn("hm OUTPUT: Which?", "Which?", Reply("This.")),)
    assert dialogue.conclusion is None


def test_an_answer_gives_the_conclusion() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator([]))
    assert talk(dialogue, ANSWER) == [Conclusion(Ending.ANSWERED, "def f(): pass")]
    assert dialogue.conclusion == Conclusion(Ending.ANSWERED, "def f(): pass")


def test_the_turn_limit_concludes_without_asking_the_collaborator() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(["One."]), rules=Rules(turn_limit=2))
    assert talk(dialogue, "1?", "2?") == [Reply("One."), Conclusion(Ending.TURN_LIMIT, "2?")]


def test_the_history_is_what_the_agent_may_see() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(["x" * 5000]))
    talk(dialogue, "secret thought OUTPUT: Which?")
    assert dialogue.history == (
        Message(Role.USER, "Write f."),
        Message(Role.ASSISTANT, "Which?"),
        Message(Role.USER, "x" * 400),
    )


def test_nothing_can_be_said_after_the_end() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator([]))
    talk(dialogue, ANSWER)
    with pytest.raises(UsageError, match="the dialogue is over: answered; make a new one"):
        talk(dialogue, "One more thing.")


def test_an_output_that_was_cut_is_marked_in_the_record() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(["Yes."]))
    talk(dialogue, Unfinished("Which"))
    assert dialogue.turns[0].unfinished


def test_the_sync_twin_says_the_same() -> None:
    dialogue, twin = (Dialogue(TASK, ScriptedCollaborator(seeded), seed=7) for _ in range(2))
    said = [twin.say_sync("Which?"), twin.say_sync(ANSWER)]
    assert talk(dialogue, "Which?", ANSWER) == said
    assert dialogue.episode == twin.episode


def test_the_sync_twin_works_where_a_loop_is_running() -> None:
    async def notebook() -> Reply | Conclusion:
        return Dialogue(TASK, ScriptedCollaborator(["This."])).say_sync("Which?")

    assert asyncio.run(notebook()) == Reply("This.")


# ---------------------------------------------------------------- seeds


def test_the_seed_of_a_reply_derives_from_seed_task_attempt_and_turn() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(seeded), seed=5, attempt=3)
    first, second = talk(dialogue, "1?", "2?")
    assert first == Reply(f"t 2 {derive_seed(5, 't', 3, 0, 'collaborator')}")
    assert second == Reply(f"t 4 {derive_seed(5, 't', 3, 1, 'collaborator')}")


def test_a_dialogue_that_goes_on_from_stored_turns_gets_the_same_replies() -> None:
    whole = Dialogue(TASK, ScriptedCollaborator(seeded), seed=5)
    talk(whole, "1?", "2?", ANSWER)
    rest = Dialogue(TASK, ScriptedCollaborator(seeded), seed=5, past=whole.turns[:1])
    talk(rest, "2?", ANSWER)
    assert rest.episode == whole.episode


def test_it_records_what_the_rollout_engine_records() -> None:
    lines = ["thought OUTPUT: Which?", "Why?\ud800", ANSWER]

    async def rolled() -> Episode:
        agent = ScriptedAgent(lines, name="agent x")
        [episode] = [each async for each in roll_out([TASK], agent, ScriptedCollaborator(seeded), seed=9)]
        return episode

    dialogue = Dialogue(TASK, ScriptedCollaborator(seeded), seed=9, agent="agent x")
    talk(dialogue, *lines)
    assert dialogue.episode == asyncio.run(rolled())


# ---------------------------------------------------------------- the record before the end


def test_an_open_dialogue_reads_as_broken_off() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(["This."]))
    assert (dialogue.episode.ending, dialogue.episode.answer) == (Ending.BROKE_OFF, None)
    talk(dialogue, "def f(): pass")
    assert (dialogue.episode.ending, dialogue.episode.answer) == (Ending.BROKE_OFF, "def f(): pass")


def test_an_agent_that_cannot_go_on_is_judged_by_what_it_has_said() -> None:
    dialogue = Dialogue(TASK, ScriptedCollaborator(["This."]))
    talk(dialogue, "def f(): pass")
    ended = dialogue.break_off(WordsError("too long", kind="context_length"))
    assert ended == Conclusion(Ending.BROKE_OFF, "def f(): pass")
    assert dialogue.episode.turns[-1] == Turn("", "", unfinished=True, trouble="agent: context_length")
    with pytest.raises(UsageError, match="is over"):
        dialogue.break_off(WordsError("again", kind="context_length"))


# ---------------------------------------------------------------- failures


def test_words_that_break_the_collaborator_get_an_excuse() -> None:
    def script(task: Task, history: Sequence[Message], seed: int) -> str:
        if "\0" in history[-1].text:
            raise CollaboratorError("cannot read that")
        return "Yes."

    [reply] = talk(Dialogue(TASK, ScriptedCollaborator(script)), "\0")
    assert reply == Reply(UNREADABLE, excuse="CollaboratorError")


def test_a_failed_reply_is_raised_recorded_and_may_be_asked_for_again() -> None:
    collaborator = Fails(CollaboratorError("gone home"))
    dialogue = Dialogue(TASK, collaborator)
    with pytest.raises(CollaboratorError):
        talk(dialogue, "Which?")
    failed = dialogue.episode
    assert (failed.ending, failed.turns) == (Ending.FAILED, (Turn("Which?", "Which?"),))
    assert failed.failure == Failure("collaborator", "CollaboratorError", "gone home")
    assert len(dialogue.history) == 1
    collaborator.error = None
    talk(dialogue, "Why?")
    assert dialogue.episode.failure is None
    assert [turn.said for turn in dialogue.turns] == ["Why?"]


def test_what_the_caller_must_mend_is_not_a_failed_dialogue() -> None:
    dialogue = Dialogue(TASK, Fails(ConfigError("no such model")))
    with pytest.raises(ConfigError):
        talk(dialogue, "Which?")
    assert dialogue.episode.failure is None
