from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.learning.batches import CHOSEN, REJECTED, BatchSampler, Example, Step, collate
from sweetrl.learning.tokens import EncodedSequence

SIZES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 50), st.integers(0, 9)), min_size=1, max_size=80)
"""Of examples: their sequences, the length of each, and their group."""


def made(sizes: list[tuple[int, int, int]]) -> list[Example]:
    """Examples without anything in common, the last groups left open."""
    return [
        Example(
            str(number),
            tuple(EncodedSequence([number, at, *[1] * length], [-1, 0, *[0] * length]) for at in range(rows)),
            group=f"g{group}" if group < 7 else "",
        )
        for number, (rows, length, group) in enumerate(sizes)
    ]


def singles(lengths: Iterable[int]) -> list[Example]:
    return made([(1, length, 9) for length in lengths])


def indices(step: Step) -> list[int]:
    """The examples that count in a step."""
    return sorted(index for passes in step for each in passes if each.counted for index in each.indices)


@given(SIZES, st.integers(1, 9), st.integers(10, 300), st.integers(1, 4), st.integers(0, 5))
def test_an_epoch_deals_every_example_once(sizes, batch_size, budget, processes, seed) -> None:
    sampler = BatchSampler(made(sizes), batch_size=batch_size, budget=budget, processes=processes, seed=seed)
    steps = list(sampler.epoch(0))
    assert len(steps) == sampler.steps_per_epoch
    assert Counter(index for step in steps for index in indices(step)) == Counter(range(len(sizes)))
    assert all(len(indices(step)) <= batch_size for step in steps)


@given(SIZES, st.integers(1, 9), st.integers(10, 300), st.integers(1, 4))
def test_all_processes_make_the_same_number_of_passes_within_the_budget(
    sizes, batch_size, budget, processes
) -> None:
    sampler = BatchSampler(made(sizes), batch_size=batch_size, budget=budget, processes=processes)
    for step in sampler.epoch(0):
        assert len({len(passes) for passes in step}) == 1
        assert len(step) == processes
        for each in (each for passes in step for each in passes):
            padded = collate([sampler.examples[at] for at in each.indices], pad=0).ids.numel()
            assert padded <= budget or len(each.indices) == 1


@given(SIZES, st.integers(1, 9), st.integers(0, 3))
def test_neither_processes_nor_memory_change_what_a_step_learns_from(sizes, batch_size, epoch) -> None:
    one = BatchSampler(made(sizes), batch_size=batch_size, budget=1000).epoch(epoch)
    other = BatchSampler(made(sizes), batch_size=batch_size, budget=60, processes=3).epoch(epoch)
    assert list(map(indices, one)) == list(map(indices, other))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    examples = singles(range(1, 65))
    orders = [
        [indices(step) for step in BatchSampler(examples, batch_size=4, budget=999, seed=seed).epoch(epoch)]
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (0, 0))
    ]
    assert orders[0] == orders[3]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]


@given(SIZES, st.integers(1, 9), st.integers(0, 5))
def test_which_examples_meet_in_a_step_depends_on_chance_alone(sizes, batch_size, seed) -> None:
    """Neither on their lengths nor on their groups."""
    plain = singles([1] * len(sizes))
    ours, others = (
        list(map(indices, BatchSampler(each, batch_size=batch_size, budget=10**6, seed=seed).epoch(0)))
        for each in (made(sizes), plain)
    )
    assert ours == others


def test_examples_of_similar_length_share_the_passes_of_a_step() -> None:
    lengths = [10 if index % 2 else 1000 for index in range(64)]
    [step] = BatchSampler(singles(lengths), batch_size=64, budget=5000).epoch(0)
    mixed = [each for each in step[0] if len({lengths[index] for index in each.indices}) > 1]
    assert len(step[0]) >= 9
    assert not mixed


def test_examples_of_a_group_that_meet_in_a_step_share_a_pass() -> None:
    examples = made([(1, 9, 0)] * 3 + [(1, 20, 1)] * 3 + [(1, 30, 2)] * 2)
    [step] = BatchSampler(examples, batch_size=8, budget=100).epoch(0)
    passes = [each.indices for dealt in step for each in dealt]
    assert len(passes) == 3
    for group in range(3):
        members = {index for index, each in enumerate(examples) if each.group == f"g{group}"}
        assert len([each for each in passes if members & set(each)]) == 1


PAIR = Example(
    "pair",
    (EncodedSequence([5, 6, 7, 8, 9], [-1, 0, 0, -1, 1]),),
    (EncodedSequence([5, 6, 3], [-1, -1, 0]),),
    reference=(-1.0, -2.0, -3.0),
)
SINGLE = Example("single", (EncodedSequence([5, 4], [-1, 0]),), weight=3.0)


def test_a_batch_says_where_each_learned_token_is_predicted() -> None:
    batch = collate([PAIR, SINGLE], pad=0)
    assert batch.ids.tolist() == [[5, 6, 7, 8, 9], [5, 6, 3, 0, 0], [5, 4, 0, 0, 0]]
    assert batch.attention.sum(1).tolist() == [5, 3, 2]
    assert batch.predictors.tolist() == [0, 1, 3, 6, 10]
    assert batch.targets.tolist() == [6, 7, 9, 3, 4]
    assert batch.spans.tolist() == [0, 0, 1, 2, 3]
    assert batch.ends.tolist() == [2, 4, 7, 11]
    assert batch.owners.tolist() == [0, 0, 0, 1]
    assert batch.sides.tolist() == [CHOSEN, CHOSEN, REJECTED, CHOSEN]
    assert batch.reference.tolist() == [-1.0, -2.0, -3.0, 0.0]
    assert batch.weights.tolist() == [1.0, 3.0]
    assert batch.tokens == 10


def test_a_branch_is_predicted_from_where_it_leaves_the_trunk() -> None:
    example = Example(
        "branched",
        (EncodedSequence([1, 2, 3, 4, 5], [-1, -1, -1, 0, 0]),),
        (EncodedSequence([1, 2, 3, 6], [-1, -1, -1, 0]),),
        branch=True,
    )
    batch = collate([example], pad=0)
    assert batch.ids.tolist() == [[1, 2, 3, 4, 5, 6]]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 4, 3]]
    assert batch.predictors.tolist() == [2, 3, 2]
    assert batch.attention[0, 0, 5].tolist() == [True, True, True, False, False, True]
    assert batch.attention[0, 0, 4].tolist() == [True] * 5 + [False]
    assert batch.tokens == 6


def test_an_equal_sequence_of_the_group_is_computed_once_and_counts_for_all() -> None:
    other = replace(PAIR, id="other", rejected=(EncodedSequence([5, 6, 2], [-1, -1, 0]),))
    batch = collate([replace(PAIR, group="g"), replace(other, group="g")], pad=0)
    assert batch.ids.tolist() == [[5, 6, 7, 8, 9], [5, 6, 3, 0, 0], [5, 6, 2, 0, 0]]
    assert batch.predictors.tolist() == [0, 1, 3, 6, 11]
    assert batch.spans.tolist() == [0, 0, 1, 2, 5]
    assert batch.computed_as.tolist() == [0, 1, 2, 0, 1, 5]
    assert batch.ends.tolist() == [2, 4, 7, 2, 4, 12]
    assert batch.owners.tolist() == [0, 0, 0, 1, 1, 1]
    assert batch.sides.tolist() == [CHOSEN, CHOSEN, REJECTED] * 2
    assert batch.reference.tolist() == [-1.0, -2.0, -3.0] * 2


def test_a_batch_moves_with_all_its_tensors() -> None:
    batch = replace(collate([PAIR], pad=0), vision={"pixel_values": torch.zeros(1)})
    moved = vars(batch.to(torch.device("meta")))
    tensors = [*moved.pop("vision").values(), *moved.values()]
    assert {value.device.type for value in tensors} == {"meta"}


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_a_process_without_an_example_makes_a_pass_that_counts_for_nothing(processes: int) -> None:
    [step] = BatchSampler(singles([5]), batch_size=4, budget=99, processes=processes).epoch(0)
    assert [each.counted for passes in step for each in passes].count(True) == 1
    assert all(len(passes) == 1 for passes in step)
