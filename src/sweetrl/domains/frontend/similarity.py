"""How alike two rendered pages are: the interface between the frontend scorer and its measures."""

from typing import Protocol

from msgspec import Struct

from sweetrl.types import Shot


class SimilarityScore(Struct, frozen=True):
    """The similarity of an answer's page to the reference's."""

    score: float
    """From 0 to 1, which only a page that looks like the reference gets."""
    parts: dict[str, float] = {}
    """The components of the score, each from 0 to 1."""


class Similarity(Protocol):
    """Measures the similarity of pages."""

    @property
    def name(self) -> str:
        """`name/version`; the version changes whenever a score could."""
        ...

    async def compare(self, reference: Shot, answer: Shot) -> SimilarityScore:
        """How alike the answer is to the reference.

        `PageError` if the answer's page cannot be compared, `StageError` if the measure itself or the reference fails.
        """
        ...

    async def close(self) -> None:
        """Release its resources; safe to call twice."""
        ...
