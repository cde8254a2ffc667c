import asyncio
import io

import pytest
from rich.console import Console

from sweetrl.dialogue.collaborators import ScriptedCollaborator
from sweetrl.dialogue.game import Game
from sweetrl.dialogue.people import PersonCollaborator, PersonLeft, Terminal, play_game, show_debrief
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import UsageError
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

    def __init__(self, typed: str, *, pasted: int = 0) -> None:
        """Of the lines, the first `pasted` come at once."""
        self._screen, self._left = io.StringIO(), pasted
        self._typed = io.StringIO(typed)
        console = Console(file=self._screen, width=100)
        self.terminal = Terminal(console, self._read_line, more_is_waiting=lambda: self._left > 0)

    def _read_line(self) -> str:
        self._left -= 1
        return self._typed.readline()

    @property
    def screen(self) -> str:
        return self._screen.getvalue()


def read_file(name: str) -> str:
    if name != "page.html":
        raise UsageError(f"{name}: cannot be read")
    return "<html>from a file</html>"


def reply_of(desk: Desk, task: Task = TASK, history: tuple[Message, ...] = ASKED) -> str:
    return asyncio.run(PersonCollaborator(desk.terminal).reply(task, history, seed=0)).text


def played(desk: Desk, *replies: str) -> Game:
    """A game of two turns that ends when the person answers, or with the second message."""
    game = Game(TASK, ScriptedCollaborator(replies or ["By weight."]), turn_limit=2)
    asyncio.run(play_game(game, desk.terminal, read_file))
    return game


def outputs_of(desk: Desk) -> list[str]:
    return [turn.output for turn in played(desk).episode.turns]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("Yes.\n", "Yes."),
        ("Yes.\nnever read\n", "Yes."),
        ("\n  \nYes.\n", "Yes."),
        ("Yes.", "Yes."),
        ("```\na\n\nb\n```\nnever read\n", "```\na\n\nb\n```"),
        ("/help\nYes.\n", "Yes."),
    ],
)
def test_one_enter_or_the_end_of_input_sends_the_message(typed: str, message: str) -> None:
    assert reply_of(Desk(typed)) == message


def test_lines_that_were_pasted_together_are_one_message() -> None:
    assert reply_of(Desk("First,\n\nsecond.\nnever read\n", pasted=3)) == "First,\n\nsecond."


@pytest.mark.parametrize(
    ("typed", "output"),
    [
        ("/file page.html\n\n", "<html>from a file</html>"),
        ("/answer /file page.html\n", "I WANT TO ANSWER:\n<html>from a file</html>"),
        ("/answer 42\n", "I WANT TO ANSWER:\n42"),
        ("see /file page.html\n", "see /file page.html"),
    ],
)
def test_the_agent_can_send_a_file(typed: str, output: str) -> None:
    assert outputs_of(Desk(f"{typed}/answer x\n"))[0] == output


def test_a_file_that_cannot_be_read_is_told_and_asked_for_again() -> None:
    desk = Desk("/file pgae.html\n/answer /file page.html\n")
    assert outputs_of(desk) == ["I WANT TO ANSWER:\n<html>from a file</html>"]
    assert "pgae.html: cannot be read" in desk.screen


@pytest.mark.parametrize("typed", ["", "/quit\n", "```\nhalf a message\n/quit\n", "\n\n"])
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


def test_the_agent_sees_the_request_the_goal_the_replies_and_which_turn_it_is() -> None:
    desk = Desk("By weight?\nI see.\n")
    assert outputs_of(desk) == ["By weight?", "I see."]
    for shown in (
        "Price a parcel.",
        "hand in the Python function",
        "Turn 1 of 2",
        "Turn 2 of 2",
        "By weight.",
    ):
        assert shown in desk.screen


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("/answer\ndef f():\n    return 1\n\n", "def f():\n    return 1"),
        ("/answer def f():\n    return 1\n\n", "def f():\n    return 1"),
        ("/answer def f(): return 1\nnever read\n", "def f(): return 1"),
        ("/answer\n```\ndef f():\n\n    return 1\n```\n", "```\ndef f():\n\n    return 1\n```"),
    ],
)
def test_answer_hands_in_what_follows(typed: str, code: str) -> None:
    assert outputs_of(Desk(typed)) == [f"I WANT TO ANSWER:\n{code}"]


def test_the_word_answer_inside_a_message_hands_in_nothing() -> None:
    assert outputs_of(Desk("What does /answer do?\n/answer x\n"))[0] == "What does /answer do?"


def test_help_and_tests_are_shown_and_take_no_turn() -> None:
    desk = Desk("/help\n/tests\n/answer x\n")
    game = played(desk)
    assert len(game.episode.turns) == 1
    assert desk.screen.count("Enter sends.") == 2
    assert "price(1)" in desk.screen


def test_the_debrief_shows_the_reference_but_no_worth_where_nobody_knows_it() -> None:
    desk = Desk("By weight?\n/answer x\n")
    show_debrief(played(desk).debrief(None), desk.terminal)
    assert "return 5" in desk.screen
    assert "chance of success" not in desk.screen


def test_control_characters_of_a_model_do_not_reach_the_screen() -> None:
    desk = Desk("Yes.\n\n")
    reply_of(desk, history=(ASKED[0], Message(Role.ASSISTANT, "\x1b[2Jgone [bold]not markup[/bold]")))
    assert "\x1b" not in desk.screen
    assert "[bold]not markup[/bold]" in desk.screen


def test_records_call_people_human() -> None:
    desk = Desk("/answer x\n")
    assert played(desk).episode.agent == PersonCollaborator(desk.terminal).name == "human"
