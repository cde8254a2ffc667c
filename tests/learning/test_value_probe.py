"""Value functions that are fitted to other dialogues than they value."""

import numpy as np
import pytest

from sweetrl.evaluation.intervals import area_under_curve
from sweetrl.learning.value_probe import Block, cross_fit

COUNT = 40
SUCCESS = [number % 2 == 0 for number in range(COUNT)]
OWN = [str(number) for number in range(COUNT)]


def noise(seed: int, features: int = 6, turns: int = 4) -> Block:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(turns, features)) for _ in range(COUNT)]


def planted(turn: int = 2) -> Block:
    """Noise, and a feature that failures have at one turn."""
    block = [each.copy() for each in noise(1)]
    for dialogue, success in zip(block, SUCCESS, strict=True):
        dialogue[:, 0] = 0.0
        dialogue[turn, 0] = 0.0 if success else 4.0
    return block


def auc(block: Block, success: list[bool | None] = SUCCESS, groups: list[str] = OWN) -> float:
    found = cross_fit([block], success, groups)
    known = [at for at, each in enumerate(success) if each is not None]
    area = area_under_curve(found.scores[known], [bool(success[at]) for at in known]).value
    assert area is not None
    return area


def test_what_goes_with_failure_is_found_in_dialogues_that_were_held_out() -> None:
    assert auc(planted()) > 0.95


def test_the_turn_that_has_it_gets_the_lowest_advantage() -> None:
    found = cross_fit([planted(turn=2)], SUCCESS, OWN)
    failed = [at for at, success in enumerate(SUCCESS) if not success]
    assert all(np.argmin(found.advantages(at)) == 2 for at in failed)


def test_a_dialogue_does_not_know_its_own_outcome() -> None:
    # A mark of its own would let a fit that has seen a dialogue tell its outcome without fail.
    marks = [np.concatenate([np.eye(COUNT)[[at]] * 5, np.zeros((1, COUNT))]) for at in range(COUNT)]
    assert auc(marks) < 0.6


def test_dialogues_of_a_group_are_held_out_together() -> None:
    pairs = [str(number // 4) for number in range(COUNT)]
    success = [number // 4 % 2 == 0 for number in range(COUNT)]
    marks = [np.eye(COUNT // 4)[[at // 4]] * 5.0 for at in range(COUNT)]
    assert auc(marks, success, OWN) > 0.95
    assert auc(marks, success, pairs) < 0.6


def test_outcomes_that_mean_nothing_are_not_predicted() -> None:
    assert auc(noise(3)) < 0.7


def test_advantages_add_up_to_the_change_in_value() -> None:
    found = cross_fit([planted()], SUCCESS, OWN)
    for at, values in enumerate(found.values):
        assert sum(found.advantages(at)) == pytest.approx(values[-1] - values[0])
        assert np.all((values > 0) & (values < 1))


def test_dialogues_without_an_outcome_are_valued_too() -> None:
    unknown: list[bool | None] = [None, None, *SUCCESS[2:]]
    found = cross_fit([planted()], unknown, OWN)
    assert found.scores[0] > 0.5 > found.scores[1]


def test_features_that_do_not_help_are_left_out() -> None:
    found = cross_fit([planted(), noise(9, features=60)], SUCCESS, OWN)
    assert found.used[0] == 1.0
    assert found.used[1] < 0.5


def test_features_that_never_vary_do_no_harm() -> None:
    constant = [np.ones((3, 2)) for _ in range(COUNT)]
    assert auc(constant) == pytest.approx(0.5, abs=0.3)


def test_the_same_seed_gives_the_same_values() -> None:
    one, same, other = (cross_fit([planted()], SUCCESS, OWN, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.scores, same.scores)
    assert not np.array_equal(one.scores, other.scores)
