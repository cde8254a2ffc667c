import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sweetrl.errors import DataError
from sweetrl.preferences.turns import Ranked, extremes, halves, pair_turns, typical_spread
from sweetrl.types import CandidateSet, Message, Role, TurnPair, Unfinished

HISTORY = (Message(Role.USER, "Write it."),)


def candidates(advantages: list[float] | None, outputs: list[str] | None = None) -> CandidateSet:
    texts = outputs or [f"c{number}" for number in range(len(advantages or []))]
    return CandidateSet(
        episode_id="t#0",
        task_id="t",
        turn=2,
        outputs=tuple(texts),
        advantages=None if advantages is None else tuple(advantages),
        critic="k",
    )


def texts(pairs: list[TurnPair]) -> set[tuple[str, str]]:
    return {(pair.chosen, pair.rejected) for pair in pairs}


def test_the_chosen_are_of_the_top_half_and_the_rejected_of_the_bottom_half():
    pairs = pair_turns(candidates([0.1, 0.9, 0.5, 0.3]), HISTORY, pairs=100)
    assert texts(pairs) == {("c1", "c3"), ("c1", "c0"), ("c2", "c3"), ("c2", "c0")}


def test_the_middle_one_of_an_odd_number_is_in_neither_half():
    assert texts(pair_turns(candidates([3, 2, 1]), HISTORY, pairs=100)) == {("c0", "c2")}
    one = [Ranked("only", 1.0)]
    assert halves(one) == ([], [])


def test_a_turn_has_four_pairs_by_default():
    assert len(texts(pair_turns(candidates([float(n) for n in range(16)]), HISTORY))) == 4


def test_best_against_worst_is_one_pair():
    pairs = pair_turns(candidates([0.1, 0.9, 0.5, -0.3]), HISTORY, rule=extremes)
    assert texts(pairs) == {("c1", "c3")}
    assert pairs[0].margin == pytest.approx(1.2)


def test_pairs_within_the_margin_are_left_out():
    pairs = pair_turns(candidates([0.9, 0.5, 0.3, 0.0]), HISTORY, pairs=100, margin=0.55)
    assert texts(pairs) == {("c0", "c2"), ("c0", "c3")}


def test_the_spread_of_a_critic_is_within_turns_and_scales_with_it():
    turns = [candidates([1.0, 3.0]), candidates([101.0, 103.0]), candidates([5.0, 5.0, 5.0, 5.0])]
    assert typical_spread(turns) == pytest.approx(
        (4 / 8) ** 0.5
    )  # two turns of deviation 1, four numbers of none
    tenfold = [replace(each, advantages=tuple(10 * a for a in each.advantages or ())) for each in turns]
    assert typical_spread(tenfold) == pytest.approx(10 * typical_spread(turns))
    assert typical_spread([]) == 0.0


def test_equal_advantages_make_no_pair():
    assert pair_turns(candidates([0.5] * 16), HISTORY) == []


def test_equal_texts_make_no_pair_and_no_pair_comes_twice():
    same = candidates([4, 3, 2, 1], ["yes", "yes", "yes", "no"])
    assert texts(pair_turns(same, HISTORY, pairs=100)) == {("yes", "no")}
    assert len(pair_turns(same, HISTORY, pairs=100)) == 1


def test_a_pair_carries_the_turn_and_its_history():
    [pair] = pair_turns(candidates([2.0, 1.0]), HISTORY)
    assert pair == TurnPair(
        episode_id="t#0",
        task_id="t",
        turn=2,
        history=HISTORY,
        chosen="c0",
        rejected="c1",
        margin=1.0,
    )


def test_a_pair_tells_which_of_its_texts_a_limit_ended():
    drawn = replace(candidates([1.0, 0.0], ["good", "bad"]), unfinished=(1,))
    [pair] = pair_turns(drawn, HISTORY)
    assert (pair.chosen_unfinished, pair.rejected_unfinished) == (False, True)
    assert [isinstance(each, Unfinished) for each in pair.given] == [False, True]
    assert msgspec.json.decode(msgspec.json.encode(pair), type=TurnPair) == pair


def test_the_draw_is_fixed_by_the_seed():
    many = candidates([float(n) for n in range(16)])
    first = pair_turns(many, HISTORY, seed=1)
    assert pair_turns(many, HISTORY, seed=1) == first
    assert any(pair_turns(many, HISTORY, seed=seed) != first for seed in range(2, 5))


def test_every_allowed_pair_is_drawn_for_some_seed():
    four = candidates([4, 3, 2, 1])
    drawn = set(
        itertools.chain(*(texts(pair_turns(four, HISTORY, pairs=1, seed=seed)) for seed in range(100)))
    )
    assert drawn == {("c0", "c2"), ("c0", "c3"), ("c1", "c2"), ("c1", "c3")}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(-3, 3)), max_size=17),
    st.floats(0, 2),
    st.integers(1, 5),
    st.sampled_from([halves, extremes]),
)
def test_no_pair_breaks_its_promises(drawn, margin, pairs, rule):
    texts_, advantages = [text for text, _ in drawn], [advantage for _, advantage in drawn]
    made = pair_turns(candidates(advantages, texts_ or None), HISTORY, rule=rule, pairs=pairs, margin=margin)
    assert len(made) <= pairs
    assert len({pair.id for pair in made}) == len(made)
    for pair in made:
        assert pair.margin > margin
        assert pair.chosen != pair.rejected


def test_candidates_that_nobody_ranked_are_refused():
    with pytest.raises(DataError, match="t#0@2 are not ranked; run `sweetrl rank`"):
        pair_turns(candidates(None, ["a", "b"]), HISTORY)
