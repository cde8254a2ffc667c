import pytest

from sweetrl.errors import ConfigError
from sweetrl.learning.settings import CriticKind, Method, default_settings


@pytest.mark.parametrize(
    ("method", "batch", "epochs"),
    [(Method.RFT, 32, 4), (Method.DPO, 8, 4), (Method.CRITIC, 8, 4), (Method.POLICY, 8, 1)],
)
def test_the_defaults_are_those_of_the_papers_table(method: Method, batch: int, epochs: int) -> None:
    settings = default_settings(method)
    assert (settings.batch_size, settings.epochs) == (batch, epochs)
    assert (settings.learning_rate, settings.beta, settings.nll) == (2e-7, 0.1, 0.01)
    assert (settings.warmup, settings.floor, settings.adam_betas) == (0.03, 0.1, (0.9, 0.95))
    assert settings.max_tokens == 16384


def test_nothing_said_leaves_a_default() -> None:
    settings = default_settings(Method.POLICY, epochs=None, beta=0.5)
    assert (settings.epochs, settings.beta) == (1, 0.5)


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0.0}, {"epochs": 0}, {"warmup": 1.5}, {"kind": "oracle"}, {"rate": 1}]
)
def test_an_impossible_number_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        default_settings(Method.CRITIC, **wrong)


def test_what_a_method_needs_follows_from_it() -> None:
    assert not default_settings(Method.RFT).needs_reference
    assert default_settings(Method.POLICY).needs_reference
    assert default_settings(Method.CRITIC).needs_reference
    value = default_settings(Method.CRITIC, kind=CriticKind.VALUE)
    assert value.has_head
    assert not value.needs_reference
