from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaForCausalLM

from learning.stored_records import Records
from models.tiny_llama import tiny_config, tiny_tokenizer
from sweetrl.learning.batches import Example, TokenBatch, collate, rows_of
from sweetrl.learning.datasets import Encoding, dialogue_pairs, turn_pairs
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.rows import can_branch, lay_out
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence

TOKENS = st.lists(st.integers(1, 3), min_size=2, max_size=12)


@st.composite
def sequences(draw: st.DrawFn) -> EncodedSequence:
    ids = draw(TOKENS)
    learned = draw(st.integers(1, len(ids) - 1))
    return EncodedSequence(ids, [-1] * learned + [0] * (len(ids) - learned))


@given(st.lists(sequences(), min_size=1, max_size=5))
def test_every_sequence_can_be_read_back_from_its_row(given: list[EncodedSequence]) -> None:
    found = {}
    for row in lay_out(dict(enumerate(given)), branch=True):
        trunk = row.pieces[0]
        assert trunk.leaves == 0
        for piece in row.pieces:
            for sequence in piece.sequences:
                found[sequence] = [*trunk.ids[: piece.leaves], *piece.ids]
                assert -1 not in piece.turns or piece.leaves <= list(given[sequence].turns).index(0)
    assert found == {index: each.ids for index, each in enumerate(given)}


@given(st.lists(sequences(), min_size=1, max_size=5))
def test_rows_are_never_longer_than_separate_ones(given: list[EncodedSequence]) -> None:
    assert sum(row.length for row in lay_out(dict(enumerate(given)), branch=True)) <= sum(
        len(each.ids) for each in given
    )
    assert [row.length for row in lay_out(dict(enumerate(given)), branch=False)] == sorted(
        (len(ids) for ids, _ in {(tuple(each.ids), tuple(each.turns)) for each in given}), reverse=True
    )


def test_sequences_that_show_different_pictures_are_not_the_same() -> None:
    plain = EncodedSequence([1, 2], [-1, 0])
    seeing = [replace(plain, picture=Path(name)) for name in ("a.png", "b.png", "a.png")]
    rows = lay_out(dict(enumerate([plain, *seeing])), branch=False)
    assert [row.pieces[0].sequences for row in rows] == [(0,), (1, 3), (2,)]


@pytest.fixture(scope="module")
def network() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(tiny_config()).eval()


def batches(pairs: str) -> tuple[TokenBatch, TokenBatch]:
    """The same examples with and without branches."""
    records, made = Records(3), []
    for branch in (True, False):
        encoding = Encoding(DialogueEncoder(tiny_tokenizer(), max_tokens=512), branch=branch)
        if pairs == "turns":
            examples = turn_pairs(records.turn_pairs, encoding).examples
        else:
            examples = dialogue_pairs(records.pairs, records.episodes, encoding).examples
        made.append(collate(examples, pad=0))
    return made[0], made[1]


@pytest.mark.parametrize("pairs", ["turns", "dialogues"])
def test_branches_change_neither_log_probabilities_nor_gradients(
    network: LlamaForCausalLM, pairs: str
) -> None:
    branched, separate = batches(pairs)
    assert branched.branches
    assert not separate.branches
    assert branched.tokens < separate.tokens
    results = []
    for batch in (branched, separate):
        network.zero_grad()
        found = turn_logprobs(network, batch)
        (found.means * torch.arange(1.0, batch.span_count + 1)).sum().backward()
        results.append((found, [weight.grad.clone() for weight in network.parameters()]))
    (one, gradients), (other, expected) = results
    assert torch.equal(one.counts, other.counts)
    torch.testing.assert_close(one.sums, other.sums, rtol=0, atol=1e-4)
    for found, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_branch_does_not_see_its_neighbours(network: LlamaForCausalLM) -> None:
    history = list(range(10, 30))
    turns = [-1] * len(history) + [0, 0, 0]
    chosen = EncodedSequence([*history, 40, 41, 3], turns)
    sums = []
    for other in ([50, 51, 3], [60, 61, 3]):
        example = Example("x", (chosen,), (EncodedSequence([*history, *other], turns),), branch=True)
        assert len(rows_of([example])) == 1
        sums.append(turn_logprobs(network, collate([example], pad=0)).sums.tolist())
    assert sums[0][0] == pytest.approx(sums[1][0], abs=1e-5)
    assert sums[0][1] != pytest.approx(sums[1][1], abs=1e-2)


def test_models_that_look_through_a_window_do_not_branch() -> None:
    config = tiny_config()
    config._attn_implementation = "sdpa"
    assert can_branch(config)
    config.sliding_window = 128
    assert not can_branch(config)
    other = tiny_config()
    other._attn_implementation = "flash_attention_2"
    assert not can_branch(other)
