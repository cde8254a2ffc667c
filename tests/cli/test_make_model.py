"""`sweetrl make-model`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from conftest import Finished
from sweetrl.domains.frontend.plain_pages import make_tasks
from sweetrl.domains.frontend.secret import frontend_secret
from sweetrl.learning import mini, mini_corpora

Sweetrl = Callable[..., Finished]


def test_the_model_of_pages_is_made_by_name_and_loads_like_any_model(
    sweetrl: Sweetrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mini_corpora, "VOCABULARY_TASKS", 400)
    monkeypatch.setitem(mini.SIZES, "mini-page", replace(mini.SIZES["mini-page"], tasks=96))
    ended = sweetrl("make-model", "mini-page", "--steps", 2, "-o", tmp_path / "page")
    assert ended.code == 0, ended.err
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "page")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "page")
    assert 0.5e6 < sum(weight.numel() for weight in model.parameters()) < 2e6
    [task] = make_tasks("test", 1, 3)
    assert len(tokenizer(frontend_secret(task).page)["input_ids"]) == 15


def test_an_unknown_model_is_refused_with_the_names_that_there_are(sweetrl: Sweetrl, tmp_path: Path) -> None:
    ended = sweetrl("make-model", "maxi", "-o", tmp_path / "maxi")
    assert ended.code == 2
    assert "there is mini, mini-large, mini-long, mini-page" in ended.err
