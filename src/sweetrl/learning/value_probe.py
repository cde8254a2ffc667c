"""A value function for few dialogues: a logistic regression on features of the agent's turns, fitted to the outcomes.

    V(t) = sigmoid(bias + sum over the turns s up to t of w . x(s))

A dialogue is valued by fits that were made without it (cross-fitting), so its values do not know its outcome. How
strong the penalty is, and which features are used, is decided within the dialogues that a fit is made on. Fits see
dialogues after each of their turns, so that a turn gets credit for what it changes and not for what follows it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Block = Sequence[Floats]
"""One kind of features: of each dialogue, (turns, features)."""
Mix = tuple[float, ...]
"""The weight of each kind of features."""

FOLDS = 5
INNER_FOLDS = 3
"""Folds of the training dialogues on which features and penalty are chosen."""
REPEATS = 3
"""Different divisions into folds, over which values are averaged; one is enough for many dialogues."""
MANY = 300
PENALTIES = (1.0, 0.3, 0.1, 0.03)
"""On the squared weights, beside the mean loss."""
_STEPS = 20
_CLOSE = 1e-6


@dataclass(frozen=True)
class CrossFitted:
    """The values of dialogues, by fits that never saw their outcomes."""

    values: tuple[Floats, ...]
    """For each dialogue: the value before the first turn, and after each turn."""
    used: tuple[float, ...]
    """In which share of the fits each kind of features was used."""

    @cached_property
    def scores(self) -> Floats:
        """The value at the end of each dialogue."""
        return np.array([values[-1] for values in self.values])

    def advantages(self, dialogue: int) -> list[float]:
        """How much each turn of a dialogue changed its value."""
        return [float(each) for each in np.diff(self.values[dialogue])]


def cross_fit(
    blocks: Sequence[Block], success: Sequence[bool | None], groups: Sequence[str], *, seed: int = 0
) -> CrossFitted:
    """Value dialogues after each turn; those of one group are held out together. None: outcome unknown."""
    outcomes = np.array([np.nan if each is None else float(each) for each in success])
    known = np.flatnonzero(~np.isnan(outcomes))
    names = np.array(groups)
    prepared = [_standardised(block) for block in blocks]
    sums: list[Floats] = [np.zeros(len(turns) + 1) for turns in blocks[0]]
    fits, used = np.zeros(len(sums)), np.zeros(len(blocks))
    mixed = {mix: _mixed(prepared, mix) for mix in _mixes(len(blocks))}
    for held_out in _folds(names[known].tolist(), outcomes[known], _repeats(len(known)), seed):
        training = known[~held_out]
        mix, penalty = _chosen(mixed, outcomes, training, names[training].tolist(), seed)
        features = mixed[mix]
        fit = _fit(*_prefixes(features, outcomes, training), penalty)
        used += np.array(mix) > 0
        for at in (*known[held_out], *np.flatnonzero(np.isnan(outcomes))):
            sums[at] += _values(fit, features[at])
            fits[at] += 1
    values = tuple(each / count for each, count in zip(sums, fits, strict=True))
    return CrossFitted(values, tuple(float(each) for each in used / max(1, _repeats(len(known)) * FOLDS)))


def _repeats(dialogues: int) -> int:
    return 1 if dialogues > MANY else REPEATS


def _folds(
    groups: Sequence[str], outcomes: Floats, repeats: int, seed: int, count: int = FOLDS
) -> Iterator[NDArray[np.bool_]]:
    """The held-out dialogues, fold by fold; groups stay together, and outcomes are spread evenly."""
    names = sorted(set(groups))
    members = {name: [at for at, group in enumerate(groups) if group == name] for name in names}
    for repeat in range(repeats):
        order = np.random.default_rng((seed, repeat)).permutation(len(names))
        # A stable sort of a shuffled list: equal outcomes are dealt out one after the other.
        dealt = sorted((names[at] for at in order), key=lambda name: float(outcomes[members[name]].mean()))
        for fold in range(count):
            held_out = np.zeros(len(groups), np.bool_)
            for name in dealt[fold::count]:
                held_out[members[name]] = True
            yield held_out


def _chosen(
    mixed: Mapping[Mix, Block],
    outcomes: Floats,
    training: NDArray[np.intp],
    groups: Sequence[str],
    seed: int,
) -> tuple[Mix, float]:
    """The best features and penalty within the training part, by the loss on its own held-out folds."""
    losses = {(mix, penalty): 0.0 for mix in mixed for penalty in PENALTIES}
    for out in _folds(groups, outcomes[training], 1, seed, INNER_FOLDS):
        inside, outside = training[~out], training[out]
        if not len(outside) or len(set(outcomes[inside].tolist())) < 2:
            continue
        for mix, features in mixed.items():
            known, unseen = (_prefixes(features, outcomes, part) for part in (inside, outside))
            for penalty in PENALTIES:
                losses[mix, penalty] += _loss(_fit(*known, penalty), *unseen)
    return min(losses, key=losses.__getitem__)


def _mixes(blocks: int) -> list[Mix]:
    """Each kind of features alone, and all together."""
    alone = [tuple(float(at == chosen) for at in range(blocks)) for chosen in range(blocks)]
    return alone if blocks == 1 else [*alone, (1 / blocks,) * blocks]


# ---------------------------------------------------------------- features


def _standardised(block: Block) -> Block:
    """Each feature with mean 0 and spread 1 over all turns, and a turn of length 1 on average."""
    everything = np.concatenate(list(block))
    centre, spread = everything.mean(0), everything.std(0)
    scale = np.where(spread > 1e-6, spread, np.inf) * np.sqrt(max(1, everything.shape[1]))
    return [(turns - centre) / scale for turns in block]


def _mixed(blocks: Sequence[Block], mix: Mix) -> Block:
    """The features of all kinds side by side, turned so that there are no more of them than turns."""
    kept = [(block, weight) for block, weight in zip(blocks, mix, strict=True) if weight]
    whole = np.concatenate([np.sqrt(weight) * np.concatenate(list(block)) for block, weight in kept], axis=1)
    if whole.shape[1] > whole.shape[0]:
        whole = whole @ np.linalg.svd(whole, full_matrices=False)[2].T
    return np.split(whole, np.cumsum([len(turns) for turns in blocks[0]])[:-1])


def _prefixes(features: Block, outcomes: Floats, which: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """The dialogues after each of their turns: summed features, the outcome, and a weight that adds up to 1."""
    lengths = [len(features[at]) for at in which]
    weights = np.concatenate([np.full(length, 1 / length) for length in lengths])
    return (
        np.concatenate([np.cumsum(features[at], axis=0) for at in which]),
        np.repeat(outcomes[which], lengths),
        weights,
    )


# ---------------------------------------------------------------- one fit


@dataclass(frozen=True)
class _Fit:
    weights: Floats
    bias: float


def _fit(features: Floats, outcomes: Floats, shares: Floats, penalty: float) -> _Fit:
    """Newton's method."""
    design = np.column_stack([features, np.ones(len(features))])
    ridge = np.full(design.shape[1], penalty * shares.sum())
    ridge[-1] = _CLOSE
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = _sigmoid(design @ weights)
        slope = design.T @ (shares * (chance - outcomes)) + ridge * weights
        curvature = (design * (shares * chance * (1 - chance))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        weights -= step
        if np.abs(step).max() < _CLOSE:
            break
    return _Fit(weights[:-1], float(weights[-1]))


def _values(fit: _Fit, turns: Floats) -> Floats:
    """Before the first turn, and after each."""
    return _sigmoid(fit.bias + np.concatenate([[0.0], np.cumsum(turns @ fit.weights)]))


def _loss(fit: _Fit, features: Floats, outcomes: Floats, shares: Floats) -> float:
    logits = features @ fit.weights + fit.bias
    return float((shares * (np.logaddexp(0, logits) - outcomes * logits)).sum())


def _sigmoid(logits: Floats) -> Floats:
    return np.exp(-np.logaddexp(0, -logits))
