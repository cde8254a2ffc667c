from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from models.tiny_gemma2 import save_tiny_gemma2
from models.tiny_llama import save_tiny_llama
from sweetrl.learning.loading import (
    load_config,
    load_model,
    switch_dropout_off,
)
from sweetrl.learning.rows import can_branch
from sweetrl.learning.settings import TrainingSettings


@pytest.fixture(scope="module")
def gemma2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_gemma2(tmp_path_factory.mktemp("gemma2"))


def test_pytorchs_attention_is_used_where_it_computes_what_the_model_does(
    gemma2: Path, tmp_path: Path
) -> None:
    assert load_config(str(save_tiny_llama(tmp_path)))._attn_implementation == "sdpa"
    assert load_config(str(gemma2))._attn_implementation == "eager"
    assert not can_branch(load_config(str(gemma2)))


def test_a_model_that_caps_the_logits_of_attention_is_loaded_as_it_computes(gemma2: Path) -> None:
    model = load_model(str(gemma2), TrainingSettings(algorithm="rft")).eval()
    plain = AutoModelForCausalLM.from_pretrained(gemma2, attn_implementation="eager").eval()
    ids = torch.arange(5, 65)[None]
    with torch.no_grad():
        assert torch.equal(model(ids).logits, plain(ids).logits)
        plain.config.attn_logit_softcapping = None
        for layer in plain.model.layers:
            layer.self_attn.attn_logit_softcapping = None
        assert not torch.allclose(model(ids).logits, plain(ids).logits, atol=0.01), "the cap does something"


@pytest.mark.parametrize(("method", "constant"), [("dpo", True), ("rft", False)])
def test_what_is_compared_with_a_reference_is_computed_without_dropout(
    tmp_path: Path, method: str, constant: bool
) -> None:
    path = str(save_tiny_llama(tmp_path, attention_dropout=0.5))
    model = load_model(path, TrainingSettings(algorithm=method)).train()
    ids = torch.arange(5, 65)[None]
    with torch.no_grad():
        assert torch.equal(model(ids).logits, model(ids).logits) is constant
    assert model.config.attention_dropout == 0.5


def test_layers_of_dropout_are_switched_off_too() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=80, n_embd=16, n_layer=1, n_head=2)).train()
    ids = torch.arange(5, 65)[None]
    with torch.no_grad():
        assert not torch.equal(model(ids).logits, model(ids).logits)
        switch_dropout_off(model)
        assert torch.equal(model(ids).logits, model(ids).logits)
