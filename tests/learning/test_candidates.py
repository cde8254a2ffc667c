from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import Lfm2Config, LlamaForCausalLM

from learning.test_logprobs import ARCHITECTURES, SIZES, batch_of, network
from models.tiny_llama import tiny_config, tiny_tokenizer
from sweetrl.learning import candidates
from sweetrl.learning.candidates import candidate_logprobs, candidate_states
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.tokens import DialogueEncoder, EncodedCandidates
from sweetrl.models.local.network import GROUPED_ATTENTION
from sweetrl.types import Message, Role


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    return network(tiny_config())


def tokens(length: int, seed: int = 0) -> list[int]:
    return torch.randint(4, 120, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def turn(prefix: list[int], *lengths: int) -> EncodedCandidates:
    return EncodedCandidates(prefix, [tokens(size, seed=100 + size) for size in lengths])


TURNS = [
    turn(tokens(37), 9, 1, 14, 9),
    turn(tokens(21, seed=1), 3, 30),
    turn(tokens(37)[:12], 5),
    turn(tokens(40, seed=2), 70, 2, 2),
]
"""Of different lengths; one candidate was drawn twice, one history begins another, one candidate fills a row."""


def naive(model: Any, each: EncodedCandidates) -> list[Tensor]:
    """From the logits of each whole sequence alone."""
    found = []
    for continuation in each.continuations:
        with torch.no_grad():
            table = model(torch.tensor([[*each.prefix, *continuation]])).logits[0].log_softmax(-1)
        before = table[len(each.prefix) - 1 : -1]
        found.append(before.gather(1, torch.tensor(continuation)[:, None])[:, 0])
    return found


def assert_same(found: Sequence[list[Tensor]], wanted: Sequence[list[Tensor]], tolerance: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert [len(each) for each in one] == [len(each) for each in other]
        for mine, theirs in zip(one, other, strict=True):
            assert torch.allclose(mine, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("turns", [TURNS[:1], TURNS], ids=["one turn", "several"])
def test_sharing_runs_gives_what_separate_runs_give(name: str, turns: list[EncodedCandidates]) -> None:
    model = network(ARCHITECTURES[name])
    assert_same(candidate_logprobs(model, turns), [naive(model, each) for each in turns], 1e-4)


def test_the_attention_that_critics_use_gives_the_same() -> None:
    model = network(tiny_config())
    wanted = [naive(model, each) for each in TURNS]
    model.set_attn_implementation(GROUPED_ATTENTION)
    assert_same(candidate_logprobs(model, TURNS), wanted, 1e-4)


@pytest.mark.filterwarnings("default")
def test_a_network_that_remembers_more_than_keys_and_values_reads_each_whole() -> None:
    model = network(Lfm2Config(**SIZES, layer_types=["conv", "full_attention"]))
    assert_same(candidate_logprobs(model, TURNS), [naive(model, each) for each in TURNS], 1e-4)


@given(order=st.permutations(range(4)), cut=st.integers(0, 4))
@settings(max_examples=15)
def test_any_grouping_gives_the_same(llama: LlamaForCausalLM, order: list[int], cut: int) -> None:
    alone = [candidate_logprobs(llama, [each])[0] for each in TURNS]
    shuffled = [TURNS[at] for at in order]
    found = candidate_logprobs(llama, shuffled[:cut]) if cut else []
    found += candidate_logprobs(llama, shuffled[cut:]) if cut < 4 else []
    assert_same(found, [alone[at] for at in order], 1e-5)


@pytest.mark.parametrize(
    ("bound", "size"),
    [
        ("CACHED_TOKENS_AT_ONCE", 1),
        ("CACHED_TOKENS_AT_ONCE", 250),
        ("TOKENS_AT_ONCE", 1),
        ("TOKENS_AT_ONCE", 150),
        ("ROW_TOKENS", 1),
        ("ROW_TOKENS", 1000),
    ],
)
def test_bounds_on_a_run_change_nothing(
    llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch, bound: str, size: int
) -> None:
    wanted = candidate_logprobs(llama, TURNS)
    monkeypatch.setattr(candidates, bound, size)
    assert_same(candidate_logprobs(llama, TURNS), wanted, 1e-5)


def read_by(model: LlamaForCausalLM, turns: list[EncodedCandidates]) -> list[tuple[int, ...]]:
    """The shape of the tokens of each run."""
    read: list[tuple[int, ...]] = []
    hook = model.model.embed_tokens.register_forward_hook(lambda _, ids, __: read.append(tuple(ids[0].shape)))
    candidate_logprobs(model, turns)
    hook.remove()
    return read


def test_a_history_is_run_once_for_all_candidates(llama: LlamaForCausalLM) -> None:
    different = EncodedCandidates(tokens(30), [tokens(9, seed=n) for n in range(16)])
    assert read_by(llama, [different]) == [(1, 30), (2, 64)]


def test_equal_candidates_are_run_once(llama: LlamaForCausalLM) -> None:
    assert read_by(llama, [EncodedCandidates(tokens(30), [tokens(9)] * 16)]) == [(1, 30), (1, 8)]


def test_turns_share_runs_and_histories_that_begin_one_another(llama: LlamaForCausalLM) -> None:
    dialogue = [turn(tokens(length), 6, 9) for length in (10, 20, 30)]
    other = turn(tokens(25, seed=3), 6)
    assert read_by(llama, [*dialogue, other]) == [(2, 30), (4, 13)]


def test_an_empty_continuation_has_no_log_probabilities(llama: LlamaForCausalLM) -> None:
    [found] = candidate_logprobs(llama, [EncodedCandidates([5, 6, 7], [[], [8, 9]])])
    assert [len(each) for each in found] == [0, 2]


def test_hidden_states_come_back_in_the_order_of_the_continuations(llama: LlamaForCausalLM) -> None:
    [states] = candidate_states(llama, [EncodedCandidates([5, 6, 7], [[8], [9, 10, 11]])])
    assert [tuple(each.shape) for each in (states.prefix, *states.continuations)] == [
        (3, 64),
        (1, 64),
        (3, 64),
    ]


def test_messages_of_a_history_share_their_tokens_with_candidates(llama: LlamaForCausalLM) -> None:
    encoder = DialogueEncoder(tiny_tokenizer(), max_tokens=500)
    history = [Message(Role.USER, "Write a function.")]
    encoded = encoder.candidates(history, ["Which one?", "def f(): pass"])
    [found] = candidate_logprobs(llama, [encoded])
    for output, each in zip(["Which one?", "def f(): pass"], found, strict=True):
        with torch.no_grad():
            alone = turn_logprobs(llama, batch_of(encoder.turn(history, output)))
        assert float(each.sum()) == pytest.approx(float(alone.sums[0]), abs=1e-4)
        assert len(each) == alone.counts[0]
