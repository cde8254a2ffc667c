import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from sweetrl.errors import ConfigError, UsageError
from sweetrl.learning import algorithms as registry
from sweetrl.learning.algorithms import algorithm_named, algorithm_of, default_settings
from sweetrl.learning.settings import CriticKind


@pytest.mark.parametrize(
    ("method", "batch", "epochs"),
    [("rft", 32, 4), ("dpo", 8, 4), ("critic", 8, 4), ("policy", 8, 1)],
)
def test_the_defaults_are_those_of_the_papers_table(method: str, batch: int, epochs: int) -> None:
    settings = default_settings(method)
    assert (settings.batch_size, settings.epochs) == (batch, epochs)
    assert (settings.learning_rate, settings.beta, settings.nll) == (2e-7, 0.1, 0.01)
    assert (settings.warmup, settings.floor, settings.adam_betas) == (0.03, 0.1, (0.9, 0.95))
    assert settings.max_tokens == 16384


def test_nothing_said_leaves_a_default() -> None:
    settings = default_settings("policy", epochs=None, beta=0.5)
    assert (settings.epochs, settings.beta) == (1, 0.5)


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0.0}, {"epochs": 0}, {"warmup": 1.5}, {"kind": "oracle"}, {"rate": 1}]
)
def test_an_impossible_number_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        default_settings("critic", **wrong)


def test_what_an_algorithm_needs_follows_from_its_settings() -> None:
    def compares(name: str, **changes: object) -> bool:
        settings = default_settings(name, **changes)
        return algorithm_of(settings).compares(settings)

    assert [compares(name) for name in ("rft", "dpo", "critic", "policy", "kto")] == [
        False,
        True,
        True,
        True,
        True,
    ]
    value = default_settings("critic", kind=CriticKind.VALUE)
    assert algorithm_of(value).has_head(value)
    assert not compares("critic", kind=CriticKind.VALUE)


def test_every_file_of_the_folder_is_an_algorithm_of_its_name() -> None:
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")} - {"__init__"}
    assert registry.algorithms().keys() == files


def test_an_unknown_algorithm_gets_a_suggestion() -> None:
    assert algorithm_named("sweet").name == "policy"
    with pytest.raises(UsageError, match="there is no algorithm 'kot'; did you mean 'kto'"):
        algorithm_named("kot")


def test_an_installed_package_adds_an_algorithm_but_replaces_none(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = [replace(registry.algorithms()["rft"], name=name, label="theirs") for name in ("best", "rft")]
    announced = [SimpleNamespace(load=lambda each=each: each) for each in theirs]
    monkeypatch.setattr(registry, "entry_points", lambda group: announced if group == registry.GROUP else [])
    found = registry.algorithms.__wrapped__()
    assert found["best"].label == "theirs"
    assert found["rft"].label == "Policy by rejection fine-tuning"


def test_hyperparameters_of_one_algorithm_are_kept_apart() -> None:
    settings = default_settings("kto", desirable_weight=1.5)
    assert settings.options == {"desirable_weight": 1.5, "undesirable_weight": 1.0}
    with pytest.raises(ConfigError, match="desirable_weight"):
        default_settings("dpo", desirable_weight=1.5)


def test_the_registries_need_no_torch() -> None:
    code = (
        "import sys\n"
        "from sweetrl.critics import critic_types\n"
        "from sweetrl.learning.algorithms import algorithms\n"
        "algorithms(), critic_types()\n"
        "print(sorted({'torch', 'transformers', 'numpy'} & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
