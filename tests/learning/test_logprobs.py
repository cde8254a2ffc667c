import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Cohere2Config,
    Gemma2Config,
    GPT2Config,
    GraniteConfig,
    LlamaForCausalLM,
    MistralConfig,
    Qwen3Config,
)

from models.tiny_llama import tiny_config, tiny_tokenizer
from sweetrl.errors import UsageError
from sweetrl.learning import logprobs
from sweetrl.learning.batches import Example, TokenBatch, collate
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.types import Reply, Turn

SIZES = {
    "vocab_size": 120,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}
ARCHITECTURES: dict[str, Any] = {
    "llama": tiny_config(),
    "tied llama": tiny_config(tie_word_embeddings=True),
    "gemma2, capped logits": Gemma2Config(
        **SIZES, head_dim=8, final_logit_softcapping=3.0, sliding_window=16
    ),
    "cohere2, scaled logits": Cohere2Config(**SIZES, logit_scale=0.25, sliding_window=16),
    "granite, divided logits": GraniteConfig(**SIZES, logits_scaling=4.0),
    "mistral, sliding window": MistralConfig(**SIZES, sliding_window=8),
    "qwen3": Qwen3Config(**SIZES, head_dim=8),
    "gpt2": GPT2Config(vocab_size=120, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3),
}


def network(config: Any) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(copy.deepcopy(config)).eval()


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    return network(tiny_config())


def sequence(
    length: int, spans: Sequence[tuple[int, int]], *, seed: int = 0, vocabulary: int = 120
) -> EncodedSequence:
    """Random tokens, of which those in the n-th span belong to turn n."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, vocabulary, (length,), generator=generator).tolist()
    marks = [-1] * length
    for turn, (start, stop) in enumerate(spans):
        marks[start:stop] = [turn] * (stop - start)
    return EncodedSequence(ids, marks)


def batch_of(*sequences: EncodedSequence) -> TokenBatch:
    return collate([Example(str(index), (each,)) for index, each in enumerate(sequences)], pad=0)


def naive(model: Any, each: EncodedSequence) -> list[float]:
    """The sum for each turn, from the logits of the whole sequence alone."""
    with torch.no_grad():
        table = model(torch.tensor([each.ids])).logits[0].log_softmax(-1)
    return [
        sum(float(table[at - 1, each.ids[at]]) for at, mark in enumerate(each.turns) if mark == turn)
        for turn in sorted(set(each.turns) - {-1})
    ]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_sums_and_means_of_turns_are_those_of_the_whole_softmax(name: str) -> None:
    model = network(ARCHITECTURES[name])
    first, second = sequence(40, [(5, 12), (30, 40)]), sequence(23, [(20, 23)], seed=1)
    found = turn_logprobs(model, batch_of(first, second))
    wanted = naive(model, first) + naive(model, second)
    assert found.sums.tolist() == pytest.approx(wanted, abs=1e-4)
    assert found.counts.tolist() == [7, 10, 3]
    assert found.means.tolist() == pytest.approx([wanted[0] / 7, wanted[1] / 10, wanted[2] / 3], abs=1e-5)


LENGTHS = st.lists(st.integers(4, 60), min_size=2, max_size=5)


@given(lengths=LENGTHS)
@settings(max_examples=15)
def test_neither_batch_size_nor_padding_matters(llama: LlamaForCausalLM, lengths: list[int]) -> None:
    rows = [sequence(size, [(size // 3 + 1, size)], seed=size) for size in lengths]
    with torch.no_grad():
        together = turn_logprobs(llama, batch_of(*rows)).means
        alone = torch.cat([turn_logprobs(llama, batch_of(row)).means for row in rows])
        padding = sequence(150, [(100, 150)])
        padded = turn_logprobs(llama, batch_of(*rows, padding)).means[:-1]
    assert torch.allclose(together, alone, rtol=0, atol=1e-5)
    assert torch.allclose(padded, alone, rtol=0, atol=1e-5)


def test_gradients_do_not_depend_on_batch_size_or_padding(llama: LlamaForCausalLM) -> None:
    rows = [sequence(size, [(4, size)], seed=size) for size in (6, 33, 60)]

    def gradients(batches: list[TokenBatch]) -> list[Tensor]:
        llama.zero_grad()
        for batch in batches:
            turn_logprobs(llama, batch).means.sum().backward()
        return [weight.grad.clone() for weight in llama.parameters() if weight.grad is not None]

    together, alone = gradients([batch_of(*rows)]), gradients([batch_of(row) for row in rows])
    largest = max(float(each.abs().max()) for each in alone)
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("logits_at_once", [1, 400 * 3, 400 * 1000])
def test_the_size_of_the_chunks_changes_neither_values_nor_gradients(
    llama: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch, logits_at_once: int
) -> None:
    batch = batch_of(sequence(30, [(3, 10), (20, 30)]))

    def run() -> tuple[Tensor, Tensor]:
        llama.zero_grad()
        sums = turn_logprobs(llama, batch).sums
        sums.sum().backward()
        return sums.detach(), llama.lm_head.weight.grad.clone()

    sums, gradient = run()
    monkeypatch.setattr(logprobs, "LOGITS_AT_ONCE", logits_at_once)
    chunked_sums, chunked_gradient = run()
    assert torch.allclose(sums, chunked_sums, atol=1e-5)
    assert torch.allclose(gradient, chunked_gradient, atol=1e-5)


def test_no_logits_are_kept_for_the_backward_pass(llama: LlamaForCausalLM) -> None:
    batch = batch_of(sequence(50, [(10, 50)]))
    kept: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        is_weight = tensor.data_ptr() == llama.lm_head.weight.data_ptr()
        if tensor.dim() > 1 and tensor.shape[-1] == llama.config.vocab_size and not is_weight:
            kept.append(tensor.numel() // tensor.shape[-1])
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        llama(batch.ids).logits.log_softmax(-1).gather(2, batch.ids[:, :, None])
    assert max(kept) == 50
    kept.clear()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        turn_logprobs(llama, batch)
    # One row at most, by which the model's way with logits is checked.
    assert max(kept, default=0) <= 1


def test_only_predictions_of_what_the_agent_said_carry_a_gradient() -> None:
    encoder = DialogueEncoder(tiny_tokenizer(), max_tokens=500)
    dialogue = [Turn("Which items?", "Which items?", Reply("All prices.")), Turn("Done.", "Done.")]
    [encoded] = encoder.dialogue("Write it.", dialogue, system="Be kind.").sequences
    model = network(tiny_config())
    states: list[Tensor] = []

    def keep(_: Any, __: Any, output: Any) -> None:
        output.last_hidden_state.retain_grad()
        states.append(output.last_hidden_state)

    model.model.register_forward_hook(keep)
    turn_logprobs(model, batch_of(encoded)).sums.sum().backward()
    has_gradient = (states[0].grad[0] != 0).any(-1).tolist()
    predicts_agent = [mark >= 0 for mark in encoded.turns[1:]] + [False]
    assert has_gradient == predicts_agent
    assert 0 < sum(predicts_agent) < len(encoded.ids) / 2


def test_another_word_of_the_user_after_the_last_turn_changes_no_gradient() -> None:
    model = network(tiny_config())

    def gradient(ending: list[int]) -> Tensor:
        model.zero_grad()
        base = sequence(20, [(10, 20)])
        longer = EncodedSequence(base.ids + ending, base.turns + [-1] * len(ending))
        turn_logprobs(model, batch_of(longer)).sums.sum().backward()
        return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    assert torch.allclose(gradient([7, 8, 9]), gradient([50, 51, 52]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("which", ["embedding", "attention", "head"])
def test_gradients_of_log_probabilities_agree_with_finite_differences(which: str) -> None:
    model = network(
        tiny_config(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_key_value_heads=4)
    ).double()
    weight = {
        "embedding": model.model.embed_tokens.weight,
        "attention": model.model.layers[0].self_attn.q_proj.weight,
        "head": model.lm_head.weight,
    }[which]
    batch = batch_of(sequence(12, [(3, 6), (9, 12)]))

    def value() -> Tensor:
        means = turn_logprobs(model, batch).means
        return (means * torch.tensor([1.0, -2.0])).sum()

    value().backward()
    torch.manual_seed(1)
    direction, step = torch.randn_like(weight), 1e-4
    with torch.no_grad():
        weight += step * direction
        above = value()
        weight -= 2 * step * direction
        below = value()
    slope = float(above - below) / (2 * step)
    # The last step is in single precision, as in training.
    assert float((weight.grad * direction).sum()) == pytest.approx(slope, rel=0.01, abs=0.01)


# ---------------------------------------------------------------- models that cannot be used


def test_an_architecture_that_changes_its_logits_in_an_unknown_way_is_refused() -> None:
    class Odd(LlamaForCausalLM):
        def forward(self, *arguments: Any, **options: Any) -> Any:
            output = super().forward(*arguments, **options)
            output.logits = output.logits * 0.5
            return output

    model = Odd(tiny_config()).eval()
    with pytest.raises(UsageError, match="llama: the architecture changes its logits"):
        turn_logprobs(model, batch_of(sequence(12, [(3, 6)])))


def test_the_model_is_left_as_it_was(llama: LlamaForCausalLM) -> None:
    turn_logprobs(llama, batch_of(sequence(12, [(3, 6)])))
    assert llama(torch.tensor([[5, 6, 7]])).logits.shape == (1, 3, 400)
    with pytest.raises(IndexError):
        turn_logprobs(llama, batch_of(EncodedSequence([10_000, 5], [-1, 0])))
    assert llama(torch.tensor([[5, 6, 7]])).logits.shape == (1, 3, 400)
