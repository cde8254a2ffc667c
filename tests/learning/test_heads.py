from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaForCausalLM

from models.tiny_llama import save_tiny_llama, tiny_config
from sweetrl.errors import DataError
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.heads import (
    SCORE_HEAD_FILE,
    add_score_head,
    candidate_scores,
    load_score_head,
    save_score_head,
    turn_scores,
)
from sweetrl.learning.losses import bradley_terry, value_bce
from sweetrl.learning.settings import CriticKind
from sweetrl.learning.tokens import EncodedCandidates, EncodedSequence

KINDS = (CriticKind.VALUE, CriticKind.REGRESSION)


def scored_llama(**changes: Any) -> Any:
    """A random Llama with a random head."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(tiny_config(**changes)).eval()
    add_score_head(model)
    torch.nn.init.normal_(model.score_head.weight)
    torch.nn.init.normal_(model.score_head.bias)
    return model


def tokens(length: int, seed: int) -> list[int]:
    return torch.randint(4, 400, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


TWO_TURNS = EncodedSequence(tokens(20, 0), [-1] * 5 + [0] * 4 + [-1] * 6 + [1] * 5)
ONE_TURN = EncodedSequence(tokens(9, 1), [-1] * 3 + [0] * 6)


def hidden(model: Any, ids: list[int]) -> Tensor:
    with torch.no_grad():
        states: Tensor = model.model(torch.tensor([ids])).last_hidden_state[0]
    return states


def by_hand(model: Any, sequence: EncodedSequence, kind: CriticKind) -> list[float]:
    found = []
    for turn in sorted(set(sequence.turns) - {-1}):
        end = max(at for at, mark in enumerate(sequence.turns) if mark == turn) + 1
        states = hidden(model, sequence.ids[:end])
        read = states[-1] if kind is CriticKind.VALUE else states.mean(0)
        found.append(float(read @ model.score_head.weight[0].detach() + model.score_head.bias.detach()[0]))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("branch", [False, True])
def test_a_turn_is_scored_by_all_that_was_said_up_to_its_end_and_nothing_after(
    kind: CriticKind, branch: bool
) -> None:
    model = scored_llama()
    fork = EncodedSequence(TWO_TURNS.ids[:15] + tokens(4, 2), TWO_TURNS.turns[:5] + [-1] * 10 + [2] * 4)
    examples = [Example("a", (TWO_TURNS, fork), branch=branch), Example("b", (ONE_TURN,))]
    batch = collate(examples, pad=0)
    assert batch.branches is branch
    with torch.no_grad():
        found = turn_scores(model, batch, kind).tolist()
    wanted = [number for each in (TWO_TURNS, fork, ONE_TURN) for number in by_hand(model, each, kind)]
    assert found == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_that_share_a_history_get_the_scores_of_whole_sequences(kind: CriticKind) -> None:
    model = scored_llama()
    prefix, continuations = tokens(30, 3), [tokens(size, size) for size in (4, 11, 1)]
    [found] = candidate_scores(model, [EncodedCandidates(prefix, continuations)], kind)
    wanted = [
        by_hand(model, EncodedSequence(prefix + each, [-1] * 30 + [0] * len(each)), kind)[0]
        for each in continuations
    ]
    assert found == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["score_head.weight", "model.layers.0.mlp.up_proj.weight"])
def test_gradients_agree_with_finite_differences(kind: CriticKind, which: str) -> None:
    model = scored_llama(num_hidden_layers=1).double()
    batch = collate([Example("a", (TWO_TURNS,), (ONE_TURN,))], pad=0)
    weight = model.get_parameter(which)

    def loss() -> Tensor:
        first, second, other = turn_scores(model, batch, kind).double()
        if kind is CriticKind.VALUE:
            return value_bce(torch.stack([first, other]), torch.tensor([True, False])).sum()
        return bradley_terry(first + second, other, beta=1.0)

    loss().backward()
    torch.manual_seed(1)
    direction, step = torch.randn_like(weight), 1e-4
    with torch.no_grad():
        weight += step * direction
        above = loss()
        weight -= 2 * step * direction
        below = loss()
    slope = float(above - below) / (2 * step)
    assert float((weight.grad * direction).sum()) == pytest.approx(slope, rel=0.02, abs=0.01)


def test_a_new_head_is_undecided_and_the_old_one_is_frozen() -> None:
    model = LlamaForCausalLM(tiny_config())
    add_score_head(model)
    batch = collate([Example("a", (TWO_TURNS,))], pad=0)
    scores = turn_scores(model, batch, CriticKind.REGRESSION)
    assert scores.tolist() == [0, 0]
    scores.sum().backward()
    without = [
        name for name, weight in model.named_parameters() if weight.requires_grad and weight.grad is None
    ]
    assert without == []
    assert not model.lm_head.weight.requires_grad


def test_embeddings_that_double_as_the_old_head_go_on_learning() -> None:
    model = LlamaForCausalLM(tiny_config(tie_word_embeddings=True))
    add_score_head(model)
    assert model.get_input_embeddings().weight.requires_grad


def test_a_saved_head_comes_back_beside_a_plain_language_model(tmp_path: Path) -> None:
    save_tiny_llama(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    add_score_head(model)
    torch.nn.init.normal_(model.score_head.weight)
    save_score_head(model, tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    load_score_head(again, tmp_path)
    turns = [EncodedCandidates(tokens(10, 0), [tokens(4, 1), tokens(6, 2)])]
    [found], [wanted] = (candidate_scores(each, turns, CriticKind.VALUE) for each in (again, model))
    assert max(map(abs, wanted)) > 0.01
    assert found == wanted


def test_a_missing_or_broken_head_is_one_clear_line(tmp_path: Path) -> None:
    model = LlamaForCausalLM(tiny_config())
    with pytest.raises(DataError, match=r"score_head.safetensors: cannot read the critic's head"):
        load_score_head(model, tmp_path)
    (tmp_path / SCORE_HEAD_FILE).write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"score_head.safetensors: cannot read the critic's head"):
        load_score_head(model, tmp_path)


def test_a_head_of_another_size_is_refused(tmp_path: Path) -> None:
    save_score_head(scored_llama(hidden_size=32), tmp_path)
    with pytest.raises(DataError, match="the head belongs to a model of another size than the llama"):
        load_score_head(LlamaForCausalLM(tiny_config()), tmp_path)
