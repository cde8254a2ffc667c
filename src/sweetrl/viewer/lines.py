"""One line of a record file as a row of the index: only the fields that lists are filtered and sorted by.

Records are decoded into lean structs, thousands of lines at a time; whole ones are read when a dialogue is opened.
"""

import hashlib
from collections.abc import Iterator, Sequence
from enum import IntFlag
from itertools import accumulate
from math import inf
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from sweetrl.domains.chat.logs import name_in_log
from sweetrl.records import decode_json

T = TypeVar("T")

Line = tuple[T, int, int]
"""What a line holds, where it starts in its file, and its length."""
REQUEST_CHARACTERS = 200
"""Of a request that lists show."""
Name = Annotated[str, Meta(max_length=4000)]
"""Short enough for an address; lines with a longer one count as unreadable."""


class Defect(IntFlag):
    """What went wrong in a dialogue or its scoring; a dialogue may have several."""

    FAILED = 1
    """The dialogue broke down through no fault of the agent."""
    NO_REPLY = 2
    """The agent's words made a reply impossible, or broke something else."""
    CUT_OFF = 4
    """The token limit ended an output."""
    NO_ANSWER = 8
    UNSCORED = 16
    RAISED = 32
    """A hidden test raised an error."""
    TIMED_OUT = 64
    UNUSABLE = 128

    @property
    def label(self) -> str:
        """How it is written for people and in addresses."""
        return (self.name or "").lower().replace("_", " ")


_OUTCOMES = {"raised": Defect.RAISED, "timed_out": Defect.TIMED_OUT, "unusable": Defect.UNUSABLE}


class _Reply(Struct, gc=False):
    text: str = ""
    excuse: str = ""


class _Turn(Struct, gc=False):
    said: str
    reply: _Reply | None = None
    unfinished: bool = False
    trouble: str = ""


class _Extra(Struct, gc=False):
    chat: msgspec.Raw = msgspec.Raw(b"")


class EpisodeLine(Struct, gc=False):
    """What the index keeps of an episode."""

    task_id: Name
    attempt: Annotated[int, Meta(ge=0, le=10**9)]
    request: str
    turns: list[_Turn]
    ending: Name
    answer: str | None = None
    extra: _Extra = field(default_factory=_Extra)

    @property
    def name(self) -> str:
        """The id of the episode."""
        return f"{self.task_id}#{self.attempt}"

    @property
    def called(self) -> str:
        """The id that a chat log gives it; empty for dialogues that are from none."""
        return name_in_log(msgspec.json.decode(self.extra.chat)) if self.extra.chat else ""

    @property
    def text(self) -> str:
        """What is searched: the id, the request, and what both sides said."""
        words = [self.name, self.called, self.request]
        for turn in self.turns:
            words.append(turn.said)
            if turn.reply is not None:
                words.append(turn.reply.text)
        return "\n".join(words)

    @property
    def defects(self) -> int:
        """What went wrong in the dialogue."""
        found = 0
        if self.ending == "failed":
            found |= Defect.FAILED
        elif self.answer is None:
            found |= Defect.NO_ANSWER
        for turn in self.turns:
            if turn.trouble or (turn.reply is not None and turn.reply.excuse):
                found |= Defect.NO_REPLY
            if turn.unfinished:
                found |= Defect.CUT_OFF
        return int(found)


class _Check(Struct, gc=False):
    outcome: str


class VerdictLine(Struct, gc=False):
    """What the index keeps of a verdict."""

    episode_id: str
    scorer: Name
    reward: float | None
    success: bool
    checks: list[_Check] = []

    @property
    def defects(self) -> int:
        """What went wrong in scoring."""
        found = int(Defect.UNSCORED) if self.reward is None else 0
        for check in self.checks:
            found |= _OUTCOMES.get(check.outcome, 0)
        return found


class TurnLine(Struct, gc=False):
    """What the index keeps of credit, candidates or values of one turn."""

    episode_id: str
    turn: Annotated[int, Meta(ge=0, le=10**9)]
    advantage: float | None = None
    critic: str = ""


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "episode": msgspec.json.Decoder(EpisodeLine),
    "verdict": msgspec.json.Decoder(VerdictLine),
    "credit": msgspec.json.Decoder(TurnLine),
    "candidates": msgspec.json.Decoder(TurnLine),
    "values": msgspec.json.Decoder(TurnLine),
}


def decode_line(kind: str, line: bytes) -> Any:
    """The line as a row; None if it is not a record of its kind."""
    try:
        return decode_json(_DECODERS[kind], line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode_lines(kind: str, whole: bytes, start: int) -> tuple[Sequence[Line[Any]], int]:
    """All rows of whole lines that start at `start` of a file, and how many lines are no records."""
    lines = whole.removesuffix(b"\n").split(b"\n")
    rows = _decode_at_once(kind, whole, len(lines))
    if rows is None:  # some line is blank, or not a record
        rows = [decode_line(kind, line) for line in lines]
    lengths = [len(line) for line in lines]
    positions = accumulate((length + 1 for length in lengths), initial=start)
    found = [line for line in zip(rows, positions, lengths, strict=False) if line[0] is not None]
    lost = len(rows) - len(found)
    return found, lost - sum(not line.strip() for line in lines) if lost else 0


def _decode_at_once(kind: str, whole: bytes, count: int) -> list[Any] | None:
    # Inside of JSON no object follows another directly: if all lines meet so, each has at least one value.
    if whole.count(b"}\n{") != count - 1 or not whole.startswith(b"{"):
        return None
    try:
        rows = _DECODERS[kind].decode_lines(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return rows if len(rows) == count else None


class TurnBlock(NamedTuple):
    """Lines about the turns of one dialogue that follow each other in a file."""

    episode_id: str
    position: int
    length: int
    worst: dict[str, tuple[float, int]]
    """The lowest advantage by each critic, and its turn; without those that gave none."""


def turns_by_episode(lines: Sequence[Line[TurnLine]]) -> Iterator[TurnBlock]:
    """The blocks of a file, in order."""
    name, start, end = "", 0, 0
    worst: dict[str, tuple[float, int]] = {}
    critic, least = "", inf  # of the line before: looked up again only where the critic changes
    for row, position, length in lines:
        if row.episode_id != name or not end:
            if end:
                yield TurnBlock(name, start, end - start, worst)
            name, start, worst, least = row.episode_id, position, {}, inf
        if row.critic != critic:
            critic = row.critic
            least = worst[critic][0] if critic in worst else inf
        if row.advantage is not None and row.advantage < least:
            least = row.advantage
            worst[critic] = least, row.turn
        end = position + length
    if end:
        yield TurnBlock(name, start, end - start, worst)


def key_of(run: int, name: str) -> int:
    """One number for an episode of a run: 63 bits of a digest.

    Two of a million have the same with probability 5e-8.
    """
    raw = b"%d:%s" % (run, name.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big") >> 1
