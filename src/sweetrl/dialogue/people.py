"""People: a person at a terminal plays the agent or the collaborator, through the same seams as a model."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sweetrl.dialogue import rules
from sweetrl.domains.registry import domain_of
from sweetrl.errors import ConfigError, UsageError
from sweetrl.types import Message, Reply, Role, Task

if TYPE_CHECKING:
    from rich.console import Console

HUMAN = "human"
"""How records call a person."""

HELP = """\
An empty line sends your message; between lines of ``` empty lines belong to it.
/quit    leave; the dialogue is not recorded (Ctrl-D on an empty message does the same)
/help    show this again"""
ANSWER_HELP = """\
/answer  begin your message with it to hand in the rest as your answer
/file    write /file PATH, or /answer /file PATH, to send what is in a file"""

_FENCE = "```"


class PersonLeft(UsageError):  # noqa: N818  nothing is wrong
    """The person got up in the middle of a dialogue, which leaves no record."""

    def __init__(self) -> None:
        super().__init__("the person left the dialogue")


class Terminal:
    """Where a person reads and writes."""

    def __init__(self, console: "Console", read_line: Callable[[], str]) -> None:
        """`read_line` gives a line with its newline, and an empty text at the end of input."""
        self._console = console
        self._read_line = read_line

    def show(self, title: str, text: str, *, style: str, language: str | None = None) -> None:
        """A titled box with text, or with code."""
        from rich.panel import Panel
        from rich.syntax import Syntax
        from rich.text import Text

        text = _printable(text)
        body = Text(text) if language is None else Syntax(text, language, word_wrap=True)
        self._console.print(Panel(body, title=title, title_align="left", border_style=style))

    def note(self, text: str) -> None:
        """A remark in small print."""
        self._console.print(text, style="dim", markup=False, highlight=False)

    def ask(self, prompt: str) -> str:
        """A message of one or more lines; asked for again while it is empty."""
        while True:
            self._console.print(prompt, style="bold", markup=False, highlight=False)
            if text := self._message().strip():
                return text

    def _message(self) -> str:
        lines: list[str] = []
        fenced = False
        self._console.print("> ", end="", style="dim")
        while True:
            line = self._read_line()
            if (not line and not lines) or line.strip() == "/quit":
                raise PersonLeft
            if line.strip() == "/help":
                self.note(HELP)
                continue
            fenced ^= line.lstrip().startswith(_FENCE)
            if not line or (not line.strip() and not fenced):
                return "".join(lines)
            lines.append(line)


def _printable(text: str) -> str:
    """Without characters that could move the cursor: the text may be a model's."""
    return "".join(each if each.isprintable() or each in "\n\t" else " " for each in text)


class PersonAgent:
    """A person who works on the request and sees nothing else."""

    name = HUMAN

    def __init__(self, terminal: Terminal, read_file: Callable[[str], str]) -> None:
        """`read_file` gives the content of a file that the person names; `UsageError` if it cannot."""
        self._terminal = terminal
        self._read_file = read_file

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:  # noqa: ARG002
        """What the person says next."""
        if n != 1:
            raise ConfigError(f"a person gives one reply per turn, not {n}")
        turn = sum(message.role is Role.ASSISTANT for message in history)
        last = history[-1].text
        if turn == 0:
            self._terminal.show("request", last, style="cyan")
            self._terminal.note(f"{HELP}\n{ANSWER_HELP}")
        else:
            self._terminal.show("collaborator", last, style="green")
        while True:
            text = self._terminal.ask(f"Your message {turn + 1}:")
            try:
                return [self._filled(text)]
            except UsageError as error:
                self._terminal.note(str(error))

    def _filled(self, text: str) -> str:
        """What a message says, its commands carried out."""
        answers = text.startswith("/answer")
        body = text.removeprefix("/answer").strip() if answers else text
        if body.startswith("/file "):
            body = self._read_file(body.removeprefix("/file ").strip())
        return f"{rules.ANSWER_MARKER}\n{body}" if answers else body


class PersonCollaborator:
    """A person who knows the reference and answers the agent's questions."""

    name = HUMAN

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:  # noqa: ARG002
        """What the person answers."""
        if sum(message.role is Role.ASSISTANT for message in history) == 1:
            self._introduce(task)
        self._terminal.show("agent", history[-1].text, style="magenta")
        text = self._terminal.ask("Your reply, in plain words:")
        limit = domain_of(task).reply_limit
        if len(text) > limit:
            self._terminal.note(f"(the agent sees the first {limit} of your {len(text)} characters)")
        return Reply(text)

    def _introduce(self, task: Task) -> None:
        self._terminal.show("request", task.request, style="cyan")
        title, text, language = domain_of(task).parts_of(task)[0]
        self._terminal.show(f"{title}: for your eyes only", text, style="red", language=language)
        self._terminal.note(HELP)
