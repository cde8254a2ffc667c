import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.models.local.draw import draw
from sweetrl.types import Sampling

PROBABILITIES = [0.5, 0.25, 0.15, 0.1]
LOGITS = torch.tensor(PROBABILITIES).log() + 3.0


def shares(sampling: Sampling, count: int = 2000) -> list[float]:
    """How often each token is drawn when the random numbers are spread evenly over [0, 1)."""
    uniforms = [(index + 0.5) / count for index in range(count)]
    tokens, _ = draw(LOGITS.expand(count, -1), [sampling] * count, uniforms)
    return [tokens.count(token) / count for token in range(len(PROBABILITIES))]


def test_tokens_are_drawn_as_often_as_the_model_says() -> None:
    assert shares(Sampling()) == pytest.approx(PROBABILITIES, abs=1e-3)


def test_the_temperature_divides_the_logits() -> None:
    flattened = [math.sqrt(p) for p in PROBABILITIES]
    expected = [p / sum(flattened) for p in flattened]
    assert shares(Sampling(temperature=2.0)) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("temperature", [0.0, 1e-6])
def test_without_temperature_the_likeliest_token_is_drawn(temperature: float) -> None:
    assert shares(Sampling(temperature=temperature)) == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.01, [0.5]), (0.49, [0.5]), (0.51, [0.5, 0.25]), (0.76, [0.5, 0.25, 0.15]), (0.95, PROBABILITIES)],
)
def test_the_nucleus_is_the_fewest_likeliest_tokens_with_that_mass(top_p: float, kept: list[float]) -> None:
    expected = [p / sum(kept) for p in kept] + [0.0] * (len(PROBABILITIES) - len(kept))
    assert shares(Sampling(top_p=top_p)) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(temperature=0.5, top_p=0.6)])
def test_log_probabilities_are_the_models_own(sampling: Sampling) -> None:
    tokens, logprobs = draw(LOGITS[None], [sampling], [0.999])
    assert logprobs == pytest.approx([math.log(PROBABILITIES[tokens[0]])], abs=1e-6)


@given(uniform=st.floats(0, 1, exclude_max=True), dead=st.sets(st.integers(0, 9), max_size=9))
def test_an_impossible_token_is_never_drawn(uniform: float, dead: set[int]) -> None:
    logits = torch.zeros(1, 10)
    logits[0, list(dead)] = -torch.inf
    tokens, _ = draw(logits, [Sampling()], [uniform])
    assert tokens[0] not in dead


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=6), st.integers(0, 2**31))
def test_a_row_does_not_depend_on_the_other_rows(uniforms: list[float], seed: int) -> None:
    logits = torch.randn(len(uniforms), 50, generator=torch.Generator().manual_seed(seed))
    kinds = [Sampling(), Sampling(temperature=0), Sampling(temperature=0.7, top_p=0.8)]
    samplings = [kinds[row % 3] for row in range(len(uniforms))]
    together, _ = draw(logits, samplings, uniforms)
    alone = [
        draw(logits[row : row + 1], samplings[row : row + 1], uniforms[row : row + 1])[0][0]
        for row in range(len(uniforms))
    ]
    assert together == alone
