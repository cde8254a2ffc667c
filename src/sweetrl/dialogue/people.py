"""People: a person at a terminal plays the agent of a game, or the collaborator through the same seam as a model."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from sweetrl.dialogue.game import HUMAN, Debrief, Game
from sweetrl.domains.registry import domain_of
from sweetrl.errors import UsageError
from sweetrl.types import Message, Reply, Role, Task, Turn

HELP = """\
Enter sends. Pasted lines, and lines between ``` and ```, are one message.
/quit    leave; the dialogue is not recorded (so does Ctrl-D)
/help    show this again"""
ANSWER_HELP = """\
/answer  hand in your answer: beside it, or below it up to an empty line
/file    /file PATH, or /answer /file PATH, sends what is in a file
/tests   show the calls that will test your answer; models never see them"""

_FENCE = "```"
_ANSWER = "/answer"
_EXCERPT = 60
"""Characters of a turn in the debrief."""


class PersonLeft(UsageError):  # noqa: N818  nothing is wrong
    """The person got up in the middle of a dialogue, which leaves no record."""

    def __init__(self) -> None:
        super().__init__("the person left the dialogue")


class Terminal:
    """Where a person reads and writes."""

    def __init__(
        self,
        console: Console,
        read_line: Callable[[], str],
        *,
        more_is_waiting: Callable[[], bool] = lambda: False,
    ) -> None:
        """`read_line` gives a line with its newline, and an empty text at the end of input.

        `more_is_waiting` says whether another line is there already: then it was pasted together with the last one.
        """
        self._console = console
        self._read_line = read_line
        self._more_is_waiting = more_is_waiting

    def show(self, title: str, text: str, *, style: str, language: str | None = None) -> None:
        """A titled box with text, or with code."""
        text = _printable(text)
        body = Text(text) if language is None else Syntax(text, language, word_wrap=True)
        self._console.print(Panel(body, title=title, title_align="left", border_style=style))

    def note(self, text: str) -> None:
        """A remark in small print."""
        self._console.print(_printable(text), style="dim", markup=False, highlight=False)

    def ask(self, prompt: str, commands: Mapping[str, Callable[[], str]]) -> str:
        """A message; asked for again while it is empty or one of the `commands`, whose text is shown."""
        while True:
            self._console.print(f"{prompt} ", end="", style="bold", markup=False, highlight=False)
            text = self._message().strip()
            if text in commands:
                self.note(commands[text]())
            elif text:
                return text

    def _message(self) -> str:
        lines: list[str] = []
        while True:
            line = self._read_line()
            if (not line and not lines) or line.strip() == "/quit":
                raise PersonLeft
            lines.append(line)
            if not line or not (_is_open(lines) or self._more_is_waiting()):
                return "".join(lines)


def _is_open(lines: Sequence[str]) -> bool:
    """Whether more lines belong to the message: a block of code is open, or an answer that begins below `/answer`."""
    if sum(line.lstrip().startswith(_FENCE) for line in lines) % 2:
        return True
    first, last = lines[0].strip(), lines[-1].strip()
    return first.startswith(_ANSWER) and first.endswith((_ANSWER, ":")) and last not in ("", _FENCE)


def _printable(text: str) -> str:
    """Without characters that could move the cursor: the text may be a model's."""
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in text)


# ---------------------------------------------------------------- as the agent


async def play_game(game: Game, terminal: Terminal, read_file: Callable[[str], str]) -> None:
    """Let a person speak as the agent until the dialogue is over.

    `read_file` gives the content of a file that the person names; `UsageError` if it cannot.
    """
    commands = {
        "/help": lambda: f"{HELP}\n{ANSWER_HELP}",
        "/tests": lambda: game.tests() or "there are no tests to show on this task",
    }
    terminal.show("request", game.task.request, style="cyan")
    terminal.note(f"Your goal: {game.goal}\n{commands['/help']()}")
    while not game.is_over:
        text = terminal.ask(f"Turn {game.turn} of {game.turn_limit} >", commands)
        try:
            said = _with_file(text.removeprefix(_ANSWER).strip(), read_file)
        except UsageError as error:
            terminal.note(str(error))
            continue
        reply = await game.say(said, answer=text.startswith(_ANSWER))
        if isinstance(reply, Reply):
            terminal.show("collaborator", reply.text, style="green")


def _with_file(text: str, read_file: Callable[[str], str]) -> str:
    """The message, or what is in the file that it names."""
    return read_file(text.removeprefix("/file ").strip()) if text.startswith("/file ") else text


def show_debrief(debrief: Debrief, terminal: Terminal) -> None:
    """Show what the player missed, and what each turn was worth."""
    for title, text, language in debrief.parts[:1]:
        terminal.show(title, text, style="red", language=language)
    if debrief.missed:
        terminal.note("You did not find out:\n" + "\n".join(f"  {each}" for each in debrief.missed))
    elif debrief.advantages is not None:
        terminal.note("You asked about everything that mattered.")
    if debrief.advantages is not None:
        terminal.note(
            "What each turn did to the chance of success (exact, for the benchmark's own programmer):"
        )
        for number, (turn, worth) in enumerate(
            zip(debrief.episode.turns, debrief.advantages, strict=True), start=1
        ):
            terminal.note(f"  turn {number}  {100 * worth:+6.1f} points  {_excerpt(turn)}")


def _excerpt(turn: Turn) -> str:
    said = " ".join(turn.said.split())
    return said if len(said) <= _EXCERPT else f"{said[: _EXCERPT - 1]}…"


# ---------------------------------------------------------------- as the collaborator


class PersonCollaborator:
    """A person who knows the reference and answers the agent's questions."""

    name = HUMAN

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:  # noqa: ARG002
        """The person's reply."""
        if sum(message.role is Role.ASSISTANT for message in history) == 1:
            self._introduce(task)
        self._terminal.show("agent", history[-1].text, style="magenta")
        text = self._terminal.ask("Your reply, in plain words >", {"/help": lambda: HELP})
        limit = domain_of(task).reply_limit
        if len(text) > limit:
            self._terminal.note(f"(the agent sees the first {limit} of your {len(text)} characters)")
        return Reply(text)

    def _introduce(self, task: Task) -> None:
        self._terminal.show("request", task.request, style="cyan")
        title, text, language = domain_of(task).parts_of(task)[0]
        self._terminal.show(f"{title}: for your eyes only", text, style="red", language=language)
        self._terminal.note(HELP)
