from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from models.tiny_llama import tiny_config
from sweetrl.errors import UsageError
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.reference import model_digest, reference_logprobs, sequence_key
from sweetrl.learning.settings import Precision
from sweetrl.learning.tokens import EncodedSequence


class CountingLlama(LlamaForCausalLM):
    """A Llama that remembers the shapes of what it was given."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.seen: list[tuple[int, ...]] = []

    def forward(self, *arguments: Any, **options: Any) -> Any:
        self.seen.append(tuple(options["input_ids"].shape))
        return super().forward(*arguments, **options)


def llama(seed: int = 0) -> CountingLlama:
    torch.manual_seed(seed)
    return CountingLlama(tiny_config()).eval()


def sequence(length: int, seed: int) -> EncodedSequence:
    ids = torch.randint(4, 400, (length,), generator=torch.Generator().manual_seed(seed)).tolist()
    return EncodedSequence(ids, [-1, -1, 0, 0, *[-1] * (length - 7), 1, 1, 1])


EXAMPLES = [Example(f"e{size}", (sequence(size, size),)) for size in (12, 30, 9, 21)]


def wanted(model: Any) -> list[tuple[float, ...]]:
    with torch.no_grad():
        return [tuple(turn_logprobs(model, collate([each], pad=0)).sums.tolist()) for each in EXAMPLES]


@pytest.mark.parametrize("tokens_per_pass", [1, 45, 10_000])
def test_each_turn_of_each_sequence_gets_its_own_sum_whatever_the_passes(tokens_per_pass: int) -> None:
    model = llama()
    found = reference_logprobs(model, EXAMPLES, tokens_per_pass=tokens_per_pass)
    for one, other in zip(found, wanted(model), strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_a_pass_holds_no_more_tokens_than_it_may() -> None:
    model = llama()
    reference_logprobs(model, EXAMPLES, tokens_per_pass=45)
    assert all(rows * width <= 45 for rows, width in model.seen)
    assert sum(rows for rows, _ in model.seen) == len(EXAMPLES)


def test_what_is_on_disk_is_not_computed_again(tmp_path: Path) -> None:
    model = llama()
    first = reference_logprobs(model, EXAMPLES[:3], tokens_per_pass=100, folder=tmp_path)
    model.seen.clear()
    again = reference_logprobs(model, EXAMPLES, tokens_per_pass=100, folder=tmp_path)
    assert model.seen == [(1, 21)]
    assert again[:3] == first


def test_equal_sequences_are_computed_once() -> None:
    model = llama()
    found = reference_logprobs(model, [EXAMPLES[0]] * 3, tokens_per_pass=1000)
    assert model.seen == [(1, 12)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("branch", [True, False])
def test_what_examples_of_a_group_have_in_common_is_computed_once(branch: bool) -> None:
    history = list(range(20, 40))
    said = [EncodedSequence([*history, at, 3], [-1] * 20 + [0, 0]) for at in (50, 60, 70)]
    examples = [
        Example(f"p{number}", (said[0],), (said[number],), group="turn", branch=branch) for number in (1, 2)
    ]
    model = llama()
    found = reference_logprobs(model, examples, tokens_per_pass=1000)
    assert model.seen == [(1, 26) if branch else (3, 22)]
    for example, sums in zip(examples, found, strict=True):
        alone = replace(example, branch=False)
        with torch.no_grad():
            assert sums == pytest.approx(
                turn_logprobs(model, collate([alone], pad=0)).sums.tolist(), abs=1e-4
            )


def test_other_weights_are_another_model(tmp_path: Path) -> None:
    one, other = llama(0), llama(1)
    reference_logprobs(one, EXAMPLES, tokens_per_pass=100, folder=tmp_path)
    found = reference_logprobs(other, EXAMPLES, tokens_per_pass=100, folder=tmp_path)
    assert found[0] == pytest.approx(wanted(other)[0], abs=1e-4)
    assert len(list(tmp_path.iterdir())) == 2


def test_one_changed_weight_or_another_precision_changes_the_digest() -> None:
    model = llama()
    before = model_digest(model)
    assert model_digest(llama()) == before
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, 5] += 1e-3
    assert model_digest(model) != before
    assert model_digest(llama().to(torch.bfloat16)) != before


def test_another_mask_or_token_is_another_sequence() -> None:
    one = EncodedSequence([1, 2, 3], [-1, -1, 0])
    keys = {sequence_key(one), sequence_key(EncodedSequence([1, 2, 3], [-1, 0, 0]))}
    keys |= {sequence_key(EncodedSequence([1, 2, 4], [-1, -1, 0]))}
    assert len(keys) == 3
    assert sequence_key(EncodedSequence([1, 2, 3], [-1, -1, 0], cut=2)) == sequence_key(one)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.99])
def test_a_file_that_broke_off_anywhere_is_mended(tmp_path: Path, kept: float) -> None:
    model = llama()
    first = reference_logprobs(model, EXAMPLES, tokens_per_pass=1, folder=tmp_path)
    [path] = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    for _ in range(2):
        model.seen.clear()
        found = reference_logprobs(model, EXAMPLES, tokens_per_pass=1, folder=tmp_path)
        assert found == [pytest.approx(each, abs=1e-6) for each in first]
    assert model.seen == []


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file"):
        reference_logprobs(llama(), EXAMPLES, tokens_per_pass=100, folder=tmp_path / "file")


def test_another_precision_of_computing_has_a_file_of_its_own(tmp_path: Path) -> None:
    options = {"tokens_per_pass": 100, "folder": tmp_path}
    full = reference_logprobs(llama(), EXAMPLES, **options)
    half = reference_logprobs(llama(), EXAMPLES, precision=Precision.BFLOAT16, **options)
    assert half != full
    assert half[0] == pytest.approx(full[0], rel=0.05)
    assert reference_logprobs(llama(), EXAMPLES, **options) == full
