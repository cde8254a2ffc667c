"""Habits: phrases of the assistant that are much more frequent in successes than in failures, or the reverse."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control, hypergeom  # type: ignore[import-untyped]

from sweetrl.domains.logged import LoggedDialogue
from sweetrl.evaluation.turning_points import Habit

Array = np.ndarray[Any, Any]

SURE = 0.05
"""Significance level of a habit, after correction for all phrases that were tested."""
HABITS = 8
PHRASE_WORDS = 3
RARE = 0.1
"""Phrases in fewer dialogues than this share are not tested, nor those that fewer dialogues lack."""
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def find_habits(dialogues: Sequence[LoggedDialogue]) -> list[Habit]:
    """Phrases of the assistant that separate successes from failures, the clearest first."""
    known = [each for each in dialogues if each.success is not None]
    good = np.array([bool(each.success) for each in known], np.bool_)
    names, has = _patterns(_phrases(known))
    if not names or not good.any() or good.all():
        return []
    among_good, total = has[:, good].sum(1), has.sum(1)
    rest = (len(known), int(good.sum()), total)
    tails = np.minimum(hypergeom.cdf(among_good, *rest), hypergeom.sf(among_good - 1, *rest))
    p = false_discovery_control(np.minimum(1.0, 2 * tails))
    shares = among_good / good.sum(), (total - among_good) / (~good).sum()
    order = sorted(np.flatnonzero(p < SURE).tolist(), key=lambda at: (p[at], names[at]))
    return [
        Habit(names[at], float(shares[0][at]), float(shares[1][at]), float(p[at]))
        for at in _without_parts(order, names, has)[:HABITS]
    ]


def _patterns(phrases: Sequence[set[str]]) -> tuple[list[str], Array]:
    """The phrases that some dialogues have and some have not, and which; of several that the same have, the longest."""
    counts = Counter(name for own in phrases for name in own)
    several = [
        name for name, count in counts.items() if RARE * len(phrases) <= count <= (1 - RARE) * len(phrases)
    ]
    found: dict[tuple[bool, ...], str] = {}
    for name in sorted(several, key=lambda name: (-len(name), name)):
        found.setdefault(tuple(name in own for own in phrases), name)
    return list(found.values()), np.array(list(found), np.bool_).reshape(len(found), len(phrases))


def _phrases(dialogues: Sequence[LoggedDialogue]) -> list[set[str]]:
    """One to three words in a row that the assistant says, for each dialogue."""
    found = []
    for each in dialogues:
        own: set[str] = set()
        for turn in each.episode.turns:
            words = _WORD.findall(turn.said.lower())
            for length in range(1, PHRASE_WORDS + 1):
                own |= {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
        found.append(own)
    return found


def _without_parts(order: Sequence[int], names: Sequence[str], has: Array) -> list[int]:
    """Leave out phrases that share a word with an earlier one and occur in nearly the same dialogues."""
    kept: list[int] = []
    for at in order:
        words = set(names[at].split())
        if not any(
            words & set(names[other].split()) and (has[at] == has[other]).mean() > 0.8 for other in kept
        ):
            kept.append(at)
    return kept
