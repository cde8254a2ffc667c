import asyncio
import io

import pytest
from rich.console import Console

from sweetrl.dialogue.people import PersonAgent, PersonCollaborator, PersonLeft, Terminal
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import ConfigError, UsageError
from sweetrl.types import Message, Role, Task

TASK = Task(
    id="t",
    domain="backend",
    request="Price a parcel.",
    secret=BackendSecret("def price(weight):\n    return 5", {"test1": "price(1)"}),
)
ASKED = (Message(Role.USER, TASK.request), Message(Role.ASSISTANT, "By weight?"))


class Desk:
    """A terminal with the person's keystrokes prepared and the screen kept."""

    def __init__(self, typed: str) -> None:
        self._screen = io.StringIO()
        self.terminal = Terminal(Console(file=self._screen, width=100), io.StringIO(typed).readline)

    @property
    def screen(self) -> str:
        return self._screen.getvalue()


def read_file(name: str) -> str:
    if name != "page.html":
        raise UsageError(f"{name}: cannot be read")
    return "<html>from a file</html>"


def reply_of(desk: Desk, task: Task = TASK, history: tuple[Message, ...] = ASKED) -> str:
    return asyncio.run(PersonCollaborator(desk.terminal).reply(task, history, seed=0)).text


def output_of(desk: Desk, history: tuple[Message, ...] = ASKED[:1]) -> str:
    (output,) = asyncio.run(PersonAgent(desk.terminal, read_file).sample(history, n=1, seed=0))
    return output


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("Yes.\n\n", "Yes."),
        ("Yes.\nAnd no.\n\nnever read\n\n", "Yes.\nAnd no."),
        ("\n  \nYes.\n\n", "Yes."),
        ("Yes.", "Yes."),
        ("Look:\n```\na\n\nb\n```\n\n", "Look:\n```\na\n\nb\n```"),
        ("/help\nYes.\n\n", "Yes."),
    ],
)
def test_an_empty_line_or_the_end_of_input_sends_the_message(typed: str, message: str) -> None:
    assert reply_of(Desk(typed)) == message


@pytest.mark.parametrize(
    ("typed", "output"),
    [
        ("/file page.html\n\n", "<html>from a file</html>"),
        ("/answer /file page.html\n\n", "I WANT TO ANSWER:\n<html>from a file</html>"),
        ("/answer 42\n\n", "I WANT TO ANSWER:\n42"),
        ("see /file page.html\n\n", "see /file page.html"),
    ],
)
def test_the_agent_can_send_a_file(typed: str, output: str) -> None:
    assert output_of(Desk(typed)) == output


def test_a_file_that_cannot_be_read_is_told_and_asked_for_again() -> None:
    desk = Desk("/file pgae.html\n\n/file page.html\n\n")
    assert output_of(desk) == "<html>from a file</html>"
    assert "pgae.html: cannot be read" in desk.screen


@pytest.mark.parametrize("typed", ["", "/quit\n", "half a message\n/quit\n", "\n\n"])
def test_a_person_can_leave(typed: str) -> None:
    with pytest.raises(PersonLeft):
        reply_of(Desk(typed))


def test_the_collaborator_is_shown_the_reference_once_and_every_message_of_the_agent() -> None:
    desk = Desk("Yes.\n\n")
    reply_of(desk)
    assert "return 5" in desk.screen
    assert "By weight?" in desk.screen
    later = Desk("Yes.\n\n")
    reply_of(later, history=(*ASKED, Message(Role.USER, "Yes."), Message(Role.ASSISTANT, "In kilograms?")))
    assert "return 5" not in later.screen
    assert "In kilograms?" in later.screen


def test_a_designer_is_shown_the_source_of_the_page() -> None:
    task = Task(id="p", domain="frontend", request="A page", secret=FrontendSecret("<html>wanted</html>"))
    desk = Desk("Bluer.\n\n")
    reply_of(desk, task)
    assert "wanted" in desk.screen


def test_a_reply_that_will_be_cut_is_announced() -> None:
    desk = Desk("x" * 401 + "\n\n")
    reply_of(desk)
    assert "first 400 of your 401 characters" in desk.screen
    short = Desk("x" * 400 + "\n\n")
    reply_of(short)
    assert "characters" not in short.screen


def test_the_agent_sees_the_request_and_later_the_replies() -> None:
    desk = Desk("By weight?\n\n")
    assert output_of(desk) == "By weight?"
    assert "Price a parcel." in desk.screen
    later = Desk("I see.\n\n")
    output_of(later, (*ASKED, Message(Role.USER, "Yes, by weight.")))
    assert "Yes, by weight." in later.screen


def test_answer_hands_in_what_follows() -> None:
    assert (
        output_of(Desk("/answer\ndef f():\n    return 1\n\n")) == "I WANT TO ANSWER:\ndef f():\n    return 1"
    )
    assert output_of(Desk("/answer def f(): return 1\n\n")) == "I WANT TO ANSWER:\ndef f(): return 1"
    assert output_of(Desk("What does /answer do?\n\n")) == "What does /answer do?"


def test_control_characters_of_a_model_do_not_reach_the_screen() -> None:
    desk = Desk("Yes.\n\n")
    reply_of(desk, history=(ASKED[0], Message(Role.ASSISTANT, "\x1b[2Jgone [bold]not markup[/bold]")))
    assert "\x1b" not in desk.screen
    assert "[bold]not markup[/bold]" in desk.screen


def test_a_person_gives_one_candidate_only() -> None:
    with pytest.raises(ConfigError, match="one reply per turn, not 16"):
        asyncio.run(PersonAgent(Desk("").terminal, read_file).sample(ASKED[:1], n=16, seed=0))


def test_records_call_people_human() -> None:
    terminal = Desk("").terminal
    assert PersonAgent(terminal, read_file).name == PersonCollaborator(terminal).name == "human"
