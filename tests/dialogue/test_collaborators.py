import asyncio
from collections.abc import Sequence

import pytest

from sweetrl.dialogue.collaborators import (
    ModelCollaborator,
    ReplayedCollaborator,
    ScriptedCollaborator,
    transcript,
)
from sweetrl.domains.backend.domain import BACKEND as CODE
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.domain import FRONTEND as PAGES
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.registry import domain_of
from sweetrl.errors import CollaboratorError, ConfigError, NoReplyError, WordsError
from sweetrl.prompts import Prompt
from sweetrl.types import Completion, Ending, Episode, Message, Reply, Role, Sampling, Task, Turn

BACKEND = Task(
    id="b",
    domain="backend",
    request="Write a function.",
    secret=BackendSecret(reference="def f(): return 'secret'", tests={"test1": "f()"}),
)
FRONTEND = Task(
    id="f", domain="frontend", request="A page.", secret=FrontendSecret(page="<html>wanted</html>")
)
ASKED = (Message(Role.USER, "Write a function."), Message(Role.ASSISTANT, "Which one?"))
DRAFTED = (Message(Role.USER, "A page."), Message(Role.ASSISTANT, "See <html>draft</html> ok?"))


class RecordingModel:
    name = "recording"

    def __init__(self, text: str = "I don't know.") -> None:
        self.text = text
        self.calls: list[tuple[list[Message], int, Sampling, int]] = []

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        self.calls.append((list(messages), n, sampling, seed))
        return [Completion(text=self.text, finish="stop")] * n

    async def close(self) -> None: ...


def shown_to_model(task: Task, history: Sequence[Message]) -> str:
    model = RecordingModel()
    collaborator = ModelCollaborator(model, domain_of(task).prompts.collaborator, domain=domain_of(task))
    assert asyncio.run(collaborator.reply(task, history, seed=4)) == Reply("I don't know.")
    [([message], n, sampling, seed)] = model.calls
    assert (message.role, n, sampling.temperature, seed) == (Role.USER, 1, 0.0, 4)
    return message.text


def test_a_model_sees_the_request_the_reference_and_the_dialogue_in_this_order() -> None:
    text = shown_to_model(BACKEND, ASKED)
    positions = [text.index(part) for part in (BACKEND.request, "return 'secret'", "Programmer: Which one?")]
    assert positions == sorted(positions)


def test_the_beginning_of_what_a_model_sees_stays_the_same_from_turn_to_turn() -> None:
    longer = (*ASKED, Message(Role.USER, "This one."), Message(Role.ASSISTANT, "Really?"))
    first, second = shown_to_model(BACKEND, ASKED), shown_to_model(BACKEND, longer)
    shared = first[: first.index("Which one?") + len("Which one?")]
    assert second.startswith(shared)


def test_a_model_that_plays_a_client_sees_both_pages_and_a_dialogue_without_them() -> None:
    text = shown_to_model(FRONTEND, DRAFTED)
    assert text.count("<html>wanted</html>") == 1
    assert text.count("<html>draft</html>") == 1
    assert "Designer: See (a draft of the page) ok?" in text


def test_a_client_who_was_shown_nothing_is_told_so() -> None:
    assert "(nothing has been shown yet)" in shown_to_model(FRONTEND, ASKED)


def model_reply(text: str) -> str:
    model = ModelCollaborator(RecordingModel(text), CODE.prompts.collaborator, domain=CODE)
    return asyncio.run(model.reply(BACKEND, ASKED, seed=1)).text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\u200b\u00ad",
        "<|im_end|>",
        "</s><pad>",
        "<think>They want",
        "<think>Hm.</think>\n <|eot_id|>",
    ],
)
def test_a_model_that_says_nothing_gives_no_reply(text: str) -> None:
    with pytest.raises(NoReplyError, match="said nothing") as caught:
        model_reply(text)
    assert caught.value.kind == "no_content"


@pytest.mark.parametrize("text", ["<think>def f...</think>In words.", "def f...\n</think>\n\nIn words."])
def test_the_thought_of_a_model_is_not_passed_on(text: str) -> None:
    assert model_reply(text).strip() == "In words."


def test_a_task_of_the_other_kind_is_refused() -> None:
    collaborator = ModelCollaborator(RecordingModel(), PAGES.prompts.collaborator, domain=PAGES)
    with pytest.raises(CollaboratorError, match="for frontend tasks was given a backend task"):
        asyncio.run(collaborator.reply(BACKEND, ASKED, seed=1))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Just chat: {dialogue_history}", "has no field {hidden_information}"),
        ("{hidden_information} {dialogue_history} {reward}", "nothing fills the field {reward}"),
        ("{hidden_information} {dialogue_history} {current_page}", "nothing fills the field {current_page}"),
    ],
)
def test_a_prompt_of_ones_own_is_checked_before_the_first_dialogue(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelCollaborator(RecordingModel(), Prompt(text, source="mine.txt"), domain=CODE)
    assert complaint in str(caught.value)


def test_a_prompt_of_ones_own_need_not_use_every_field() -> None:
    model = RecordingModel()
    prompt = Prompt("{hidden_information}|{dialogue_history}", source="mine.txt")
    asyncio.run(ModelCollaborator(model, prompt, domain=CODE).reply(BACKEND, ASKED, seed=1))
    assert model.calls[0][0][0].text == (
        "def f(): return 'secret'|You: Write a function.\nProgrammer: Which one?"
    )


def test_a_transcript_names_who_speaks() -> None:
    assert transcript(ASKED, CODE) == "You: Write a function.\nProgrammer: Which one?"


def test_scripted_lines_are_said_in_turn_and_run_out() -> None:
    collaborator = ScriptedCollaborator(["one"])
    assert asyncio.run(collaborator.reply(BACKEND, ASKED, seed=1)) == Reply("one")
    longer = (*ASKED, Message(Role.USER, "one"), Message(Role.ASSISTANT, "And?"))
    with pytest.raises(CollaboratorError, match="the script has 1 lines, turn 2 needs one more"):
        asyncio.run(collaborator.reply(BACKEND, longer, seed=1))


def stored(attempt: int, reply: str) -> Episode:
    return Episode(
        task_id="b",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=BACKEND.request,
        turns=(Turn("hm OUTPUT: Which one?", "Which one?", Reply(reply)), Turn("x", "x")),
        ending=Ending.TURN_LIMIT,
        answer="x",
    )


def test_a_replay_answers_the_same_words_with_the_same_words() -> None:
    collaborator = ReplayedCollaborator([stored(0, "This one.")])
    assert asyncio.run(collaborator.reply(BACKEND, ASKED, seed=1)) == Reply("This one.")


def test_a_replay_has_no_reply_to_what_was_never_asked_and_that_is_due_to_the_words() -> None:
    collaborator = ReplayedCollaborator([stored(0, "This one.")])
    other = (ASKED[0], Message(Role.ASSISTANT, "Which colour?"))
    with pytest.raises(WordsError, match="no stored dialogue of task b goes on from here"):
        asyncio.run(collaborator.reply(BACKEND, other, seed=1))


def test_a_replay_without_any_reply_on_the_task_is_a_breakdown() -> None:
    with pytest.raises(CollaboratorError, match="no stored dialogue of task b has a reply"):
        asyncio.run(ReplayedCollaborator([]).reply(BACKEND, ASKED, seed=1))


def test_a_replay_with_several_replies_to_one_question_lets_the_seed_choose() -> None:
    collaborator = ReplayedCollaborator([stored(0, "This."), stored(1, "That."), stored(2, "This.")])
    replies = [asyncio.run(collaborator.reply(BACKEND, ASKED, seed=seed)).text for seed in range(4)]
    assert replies == ["This.", "That.", "This.", "That."]
