"""Pairs of single turns, by the advantages that a critic gave their candidates (paper, section 4.2)."""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import fsum, sqrt
from typing import NamedTuple

from sweetrl.errors import DataError
from sweetrl.seeds import derive_seed
from sweetrl.types import CandidateSet, Message, TurnPair, Unfinished

PAIRS_PER_TURN = 4
"""As in the paper's public recipe."""


class Ranked(NamedTuple):
    """A candidate and its advantage."""

    output: str
    advantage: float


Rule = Callable[[Sequence[Ranked]], tuple[Sequence[Ranked], Sequence[Ranked]]]
"""Candidates, best first -> those that may be chosen and those that may be rejected."""


def halves(ranked: Sequence[Ranked]) -> tuple[Sequence[Ranked], Sequence[Ranked]]:
    """The paper's rule: the top and the bottom half. Of an odd number, the middle one is in neither."""
    half = len(ranked) // 2
    return ranked[:half], ranked[len(ranked) - half :]


def extremes(ranked: Sequence[Ranked]) -> tuple[Sequence[Ranked], Sequence[Ranked]]:
    """The best against the worst."""
    return ranked[:1], ranked[-1:]


def pair_turns(
    candidates: CandidateSet,
    history: Sequence[Message],
    *,
    rule: Rule = halves,
    pairs: int = PAIRS_PER_TURN,
    margin: float = 0.0,
    seed: int = 0,
) -> list[TurnPair]:
    """At most `pairs` different pairs of one turn, drawn at random from all that the rule allows.

    The advantages of a pair differ by more than `margin`, and so do its texts. The draw is fixed by the seed
    and the turn. `history` is what the agent had seen.
    """
    possible = _possible(_ranked(candidates), rule, margin)
    draw = random.Random(derive_seed(seed, candidates.id))  # noqa: S311  not a secret
    drawn = draw.sample(possible, min(pairs, len(possible)))
    return [
        TurnPair(
            episode_id=candidates.episode_id,
            task_id=candidates.task_id,
            turn=candidates.turn,
            history=tuple(history),
            chosen=str(chosen.output),
            rejected=str(rejected.output),
            chosen_unfinished=isinstance(chosen.output, Unfinished),
            rejected_unfinished=isinstance(rejected.output, Unfinished),
            margin=chosen.advantage - rejected.advantage,
        )
        for chosen, rejected in drawn
    ]


def typical_spread(ranked: Iterable[CandidateSet]) -> float:
    """The standard deviation of a critic's advantages within a turn, over all turns: the unit that it thinks in."""
    squares = count = 0.0
    for candidates in ranked:
        if candidates.failure is None:
            advantages = [each.advantage for each in _ranked(candidates)]
            mean = fsum(advantages) / len(advantages)
            squares += fsum((each - mean) ** 2 for each in advantages)
            count += len(advantages)
    return sqrt(squares / count) if count else 0.0


def _ranked(candidates: CandidateSet) -> list[Ranked]:
    """Best first; of equals, the one drawn first."""
    if candidates.advantages is None:
        raise DataError(f"the candidates of {candidates.id} are not ranked; run `sweetrl rank` first")
    both = zip(candidates.given, candidates.advantages, strict=True)
    return sorted((Ranked(*each) for each in both), key=lambda each: -each.advantage)


def _possible(ranked: Sequence[Ranked], rule: Rule, margin: float) -> list[tuple[Ranked, Ranked]]:
    """All pairs that the rule and the margin allow, the same two texts only once."""
    allowed: dict[tuple[str, str], tuple[Ranked, Ranked]] = {}
    for chosen, rejected in product(*rule(ranked)):
        differ = chosen.output != rejected.output
        if differ and chosen.advantage - rejected.advantage > margin:
            allowed.setdefault((chosen.output, rejected.output), (chosen, rejected))
    return list(allowed.values())
