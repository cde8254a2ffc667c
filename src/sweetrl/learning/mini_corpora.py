"""The corpora of the tiny models: dialogues of a mediocre agent on the training tasks of a benchmark.

Some of the dialogues follow their reference, as a critic will read them. In half of these the agent was played by
someone who had read it, so the tiny models learn to use a reference, as larger models can.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from transformers import PreTrainedTokenizerFast

from sweetrl.domains.backend import mini_backend
from sweetrl.domains.backend.domain import HERE as BACKEND
from sweetrl.domains.backend.mini_backend import corpus as programming
from sweetrl.domains.frontend import plain_pages
from sweetrl.domains.frontend.domain import HERE as FRONTEND
from sweetrl.domains.frontend.plain_pages import builder
from sweetrl.domains.registry import reference_text
from sweetrl.learning.mini_tokenizers import PAGE_PIECES, PIECES, bpe_tokenizer, word_tokenizer
from sweetrl.prompts import Prompt, load
from sweetrl.types import Message, Task

VOCABULARY_TASKS = 3000


@dataclass(frozen=True)
class Corpus:
    """The dialogues of one benchmark, and how they become tokens."""

    benchmark: str
    make_tasks: Callable[[str, int, int], Iterator[Task]]
    """(split, count, seed) -> tasks."""
    hold_dialogue: Callable[[Task, int, Any], list[Message]]
    """(task, seed, habits) -> a dialogue, request and answer included."""
    habits: Any
    """Habits of the agent that the model imitates."""
    knowing: Any
    """Habits of one that has read the reference."""
    prompt: Prompt
    """Puts the reference before a dialogue."""
    about: str
    """For the model's card: who the speakers are, and who uses the reference how."""
    pieces: str = PIECES
    """The texts that become one token each where tokens are whole pieces."""
    tokens: str = "whole words and lines\nof code"
    """The kind of `pieces`, for the model's card."""
    vocabulary: int | None = None
    """Tokens of a byte-level BPE; None for a token for each of the `pieces`."""

    def dialogue(self, task: Task, number: int, *, knows: bool = False) -> list[Message]:
        """One of the dialogues on a task; `knows`: of an agent that has read the reference."""
        return self.hold_dialogue(task, number, self.knowing if knows else self.habits)

    def told(self, task: Task) -> str:
        """The request after the reference, as critics read it."""
        return f"{self.prompt.render(hidden_information=reference_text(task))}\n\n{task.request}"

    @property
    def tokenizer_name(self) -> str:
        """For the model's card."""
        if self.vocabulary is None:
            return f"a tokenizer of {self.tokens}"
        return f"a byte-level BPE tokenizer of {self.vocabulary:,}\ntokens"

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of a model, made from dialogues on training tasks."""
        if self.vocabulary is None:
            return word_tokenizer(self._texts(), self.pieces)
        return bpe_tokenizer(self._spoken(), self.vocabulary)

    def _texts(self) -> Iterator[str]:
        for task in self.make_tasks("train", VOCABULARY_TASKS, 99):
            yield from (message.text for message in self.dialogue(task, 0))
            yield self.told(task)

    def _spoken(self) -> Iterator[str]:
        """All but the answers: most words become one token, and code is spelled in pieces."""
        for task in self.make_tasks("train", VOCABULARY_TASKS, 99):
            *spoken, _ = self.dialogue(task, 0)
            yield from (message.text for message in spoken)


def _programming(habits: programming.Habits, vocabulary: int | None = None) -> Corpus:
    return Corpus(
        benchmark=mini_backend.NAME,
        make_tasks=mini_backend.make_tasks,
        hold_dialogue=programming.hold_dialogue,
        habits=habits,
        knowing=replace(programming.KNOWING, phrasings=habits.phrasings, opener=habits.opener),
        prompt=load("privileged-mini", BACKEND),
        about="""\
dialogues of a scripted, mediocre programmer on training tasks only. It asks about hints of the request or
  about something else, and answers too early.
  {told} per cent of the dialogues stand after the finished function; in {knowing} per cent of
  these the programmer has read it and asks for just what it settles, in the others it ignores it.
- Its chat template leaves out system messages.
- It writes code only in the one way in which the benchmark writes it.""",
        vocabulary=vocabulary,
    )


PROGRAMMING = _programming(programming.HABITS)
ABLE_PROGRAMMING = _programming(programming.ABLE)
VARIED_PROGRAMMING = _programming(programming.VARIED, vocabulary=1024)
PAGES = Corpus(
    benchmark=plain_pages.NAME,
    make_tasks=plain_pages.make_tasks,
    hold_dialogue=builder.hold_dialogue,
    habits=builder.HABITS,
    knowing=builder.KNOWING,
    prompt=load("privileged-mini-page", FRONTEND),
    about="""\
dialogues of a scripted, mediocre page builder with the scripted designer, on training tasks only. It
  understands half of the designer's words, spoils what was right, and hands in too early.
  {told} per cent of the dialogues stand after the finished page; in {knowing} per cent of
  these the builder has read it and comes nearer to it than the remarks explain, in the others it ignores it.
- Its chat template leaves out system messages.
- It writes pages only of the one kind that the benchmark has.""",
    pieces=PAGE_PIECES,
    tokens="whole words, choices and the\nparts of a page between them",
)
