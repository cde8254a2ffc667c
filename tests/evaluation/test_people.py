"""Agreement between a critic and people, with the sums done by hand."""

import pytest

from sweetrl.errors import DataError
from sweetrl.evaluation.people import PeopleAgreement, agreement_with_people
from sweetrl.types import Annotation, TurnCredit


def mark(turn: int, word: str, task: str = "t", author: str = "one") -> Annotation:
    return Annotation(episode_id=f"{task}#0", task_id=task, turn=turn, mark=word, author=author)  # type: ignore[arg-type]


def judged(turn: int, advantage: float | None, task: str = "t", critic: str = "c") -> TurnCredit:
    return TurnCredit(episode_id=f"{task}#0", task_id=task, turn=turn, critic=critic, advantage=advantage)


def figures(found: PeopleAgreement) -> tuple[float | None, float | None]:
    return found.sign.value, found.auc.value


def test_turns_and_pairs_that_the_critic_sees_as_people_do_are_counted() -> None:
    marks = [mark(0, "helped"), mark(1, "hurt"), mark(2, "helped"), mark(3, "hurt")]
    credit = [judged(0, 0.5), judged(1, 0.2), judged(2, -0.1), judged(3, -0.4)]
    found = agreement_with_people(marks, credit)
    # Signs: turns 0 and 3 of 4. Pairs of a helpful and a harmful turn: 0>1, 0>3, 2>3, but not 2>1.
    assert figures(found) == (0.5, 0.75)
    assert (found.turns, found.helped, found.missing) == (4, 2, 0)


def test_pairs_are_made_within_a_dialogue_only() -> None:
    marks = [mark(0, "helped", "a"), mark(0, "hurt", "b")]
    found = agreement_with_people(marks, [judged(0, 0.1, "a"), judged(0, 0.9, "b")])
    assert figures(found) == (0.5, None)


def test_a_turn_on_which_people_are_divided_counts_for_nothing() -> None:
    marks = [mark(0, "helped"), mark(0, "hurt", author="two"), mark(1, "hurt"), mark(1, "hurt", author="two")]
    found = agreement_with_people(marks, [judged(0, -1.0), judged(1, -1.0)])
    assert (found.turns, found.sign.value) == (1, 1.0)


def test_a_turn_without_an_advantage_is_missing_not_wrong() -> None:
    found = agreement_with_people([mark(0, "helped"), mark(1, "helped")], [judged(0, None)])
    assert (found.turns, found.missing, found.sign.value) == (0, 2, None)


def test_two_critics_in_one_file_are_refused() -> None:
    with pytest.raises(DataError, match="one critic at a time"):
        agreement_with_people(
            [mark(0, "helped"), mark(1, "hurt")], [judged(0, 1.0), judged(1, 1.0, critic="d")]
        )
