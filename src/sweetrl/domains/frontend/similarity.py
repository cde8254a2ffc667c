"""How alike two rendered pages are: the seam between the frontend scorer and what it measures with."""

from typing import Protocol

from msgspec import Struct

from sweetrl.types import Shot


class SimilarityScore(Struct, frozen=True):
    """The similarity of an answer's page to the reference's."""

    score: float
    """From 0 to 1, which only a page that looks like the reference gets."""
    parts: dict[str, float] = {}
    """What the score is made of, each part from 0 to 1."""


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
        """Release what it holds; safe to call twice."""
        ...
