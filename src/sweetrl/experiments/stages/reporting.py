"""What a stage reports while it works."""

# ruff: noqa: ARG002  who keeps silent uses nothing of what is told

from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sweetrl.experiments.stages.rollout import Status


class Advance(Protocol):
    """Called with the number of items that are newly done, and what the work waits for, if it does."""

    def __call__(self, count: int, waits_for: str = "", /) -> None:
        """Take it."""


class Reporter:
    """Receives what a stage reports. This one ignores all of it; the command line has one that prints."""

    def note(self, text: str) -> None:
        """Take one line for people."""

    def warn(self, text: str) -> None:
        """Take one line that even those who want no notes should see."""

    def progress(
        self,
        label: str,
        total: int | None,
        *,
        done: int = 0,
    ) -> AbstractContextManager[Advance]:
        """A context for the length of the work; it yields a function to call as items get done.

        `done` items of `total` were there before, so they count for the progress but not for the rate.
        """
        return nullcontext(lambda _, __="": None)

    def dialogues(self, status: "Status") -> AbstractAsyncContextManager[None]:
        """The length of a rollout; its status is kept up to date."""
        return nullcontext()


SILENT = Reporter()
