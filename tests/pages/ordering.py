"""Whether a similarity puts mutated pages in the right order, and before the pages of other tasks."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from pages.mutations import chain, reworded
from sweetrl.domains.frontend.similarity import Similarity
from sweetrl.protocols import Renderer
from sweetrl.types import Shot

GRADES = (1, 2, 4, 8, 16)
FAMILIES = ("words kept", "all words replaced")


@dataclass(frozen=True)
class Series:
    """A page and what became of it."""

    reference: Shot
    mutants: dict[tuple[str, int], Shot]
    """By family and number of changes."""


@dataclass(frozen=True)
class Ordering:
    """How well a similarity orders."""

    spearman: float
    """Of the number of changes and the score, turned round: within a page and family, and the mean of those."""
    pooled_spearman: float
    """The same over the mutants of all pages at once: pages that lose more by a change than others count against it."""
    centred_spearman: float
    """Pooled, once the mean score of each page is taken off."""
    auc: float
    """How often a mutant scores higher than the page of another task, over all pairs of such scores."""
    mean_by_grade: dict[int, float]
    mean_other: float


async def make_series(renderer: Renderer, pages: Sequence[str], *, seed: int = 0) -> list[Series]:
    """Each page with its mutants; a greater grade goes on from a smaller one."""
    return list(await asyncio.gather(*(_series(renderer, page, (seed, at)) for at, page in enumerate(pages))))


async def _series(renderer: Renderer, page: str, seed: tuple[int, int]) -> Series:
    mutants = {}
    for family in FAMILIES:
        for grade in GRADES:
            mutant = chain(page, random.Random(f"{seed} {family}"), grade)
            if family != FAMILIES[0]:
                mutant = reworded(mutant, random.Random(f"{seed} words"))
            mutants[family, grade] = await renderer.render(mutant)
    return Series(await renderer.render(page), mutants)


async def order(similarity: Similarity, series: Sequence[Series], *, others: int = 8) -> Ordering:
    """Measure a similarity; each page is also compared with the next `others` pages."""
    correlations, mutated, foreign = [], [], []
    by_grade: dict[int, list[float]] = {grade: [] for grade in GRADES}
    for place, each in enumerate(series):
        for family in FAMILIES:
            scores = [
                (await similarity.compare(each.reference, each.mutants[family, grade])).score
                for grade in GRADES
            ]
            # A change that cannot be seen leaves the score at 1; if none can, there is nothing to order.
            if len(set(scores)) > 1:
                correlations.append(float(-spearmanr(GRADES, scores).statistic))
            mutated += scores
            for grade, score in zip(GRADES, scores, strict=True):
                by_grade[grade].append(score)
        for step in range(1, min(others, len(series) - 1) + 1):
            other = series[(place + step) % len(series)].reference
            foreign.append((await similarity.compare(each.reference, other)).score)
    return Ordering(
        spearman=float(np.mean(correlations)),
        pooled_spearman=_pooled(by_grade),
        centred_spearman=_pooled(_centred(by_grade)),
        auc=area_under_curve(mutated, foreign),
        mean_by_grade={grade: float(np.mean(scores)) for grade, scores in by_grade.items()},
        mean_other=float(np.mean(foreign)),
    )


def _centred(by_grade: dict[int, list[float]]) -> dict[int, list[float]]:
    """Scores less the mean of their page; each page has as many in a row as there are families."""
    scores = np.array(list(by_grade.values())).reshape(len(by_grade), -1, len(FAMILIES))
    less = (scores - scores.mean((0, 2), keepdims=True)).reshape(len(by_grade), -1)
    return dict(zip(by_grade, less.tolist(), strict=True))


def _pooled(by_grade: dict[int, list[float]]) -> float:
    pairs = [(grade, score) for grade, scores in by_grade.items() for score in scores]
    grades, scores = zip(*pairs, strict=True)
    return float(-spearmanr(grades, scores).statistic)


def area_under_curve(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The share of pairs in which the positive one is higher; ties count half."""
    one, other = np.array(positive)[:, None], np.array(negative)[None, :]
    return float((one > other).mean() + (one == other).mean() / 2)
