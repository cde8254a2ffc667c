import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweetrl.report.scales import Estimate, Scale, amount, estimate_of, extent, interval, plain, round_step
from sweetrl.types import Metric

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(NUMBERS, min_size=1), st.booleans())
def test_an_extent_holds_all_values_and_zero_if_asked_for(values, zero):
    low, high = extent(values, zero=zero)
    slack = 1e-6 * max(1.0, *map(abs, values))
    assert low - slack <= min(values) <= max(values) <= high + slack
    assert low < high
    assert not zero or low <= 0 <= high


@pytest.mark.parametrize("values", [[5e-324], [0.0, 5e-324]])
def test_numbers_too_small_to_be_divided_have_an_extent_too(values):
    assert extent(values) == (0, 1)


def test_an_extent_is_round_and_a_share_ends_at_one():
    assert extent([0.03, 0.37], zero=True) == (0, pytest.approx(0.4))
    assert extent([0.2, 0.97], zero=True, share=True) == (0, 1)
    assert extent([math.nan, math.inf]) == (0, 1)
    assert extent([3.0]) == pytest.approx((1.5, 4.5), abs=0.5)


@given(NUMBERS, NUMBERS, st.integers(2, 8))
def test_ticks_are_within_the_scale_and_not_many_more_than_wanted(low, high, about):
    assume(high - low > 1e-3)
    ticks = Scale(low, high, 0, 100).ticks(about)
    slack = (high - low) * 1e-6
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert len(ticks) <= about + 1


def test_a_scale_is_linear_and_keeps_to_its_ends():
    scale = Scale(0, 10, 100, 200)
    assert [scale(value) for value in (0, 5, 10, 20, -3)] == [100, 150, 200, 200, 100]
    assert Scale(1, 1, 0, 10)(1) == 5


def test_a_logarithmic_scale_gives_doublings_the_same_width():
    scale = Scale(1, 32, 0, 100, logarithmic=True)
    assert [scale(value) for value in (1, 2, 4, 32)] == pytest.approx([0, 20, 40, 100])
    assert scale.ticks(6) == [1, 2, 4, 8, 16, 32]
    assert Scale(1, 100_000, 0, 100, logarithmic=True).ticks(6) == [1, 10, 100, 1000, 10_000, 100_000]


@pytest.mark.parametrize(("rough", "step"), [(0.13, 0.2), (1, 1), (2.1, 5), (7, 10), (0, 1), (math.inf, 1)])
def test_steps_are_one_two_or_five(rough, step):
    assert round_step(rough) == pytest.approx(step)


def test_numbers_are_written_for_people():
    assert [plain(value) for value in (0, 3, 15000, -20, 0.30000001, 2e-7, 1234.5, math.nan)] == [
        "0", "3", "15,000", "−20", "0.3", "2e−07", "1,234", "–",
    ]  # fmt: skip
    assert (amount(0.404, percent=True), amount(4.6, percent=False)) == ("40.4", "4.60")
    assert (amount(0.05, percent=True, signed=True), amount(-0.05, percent=True)) == ("+5.0", "−5.0")
    assert interval(Estimate(0.4, 0.374, 0.435, 9), percent=True) == "37.4 to 43.5"


def test_a_metric_of_nothing_is_no_estimate():
    assert estimate_of(Metric("success", None, None, None, 0)) is None
    assert estimate_of(Metric("success", math.nan, 0.0, 1.0, 3)) is None
    assert estimate_of(None) is None
    assert estimate_of(Metric("success", 0.5, 0.4, 0.6, 3)) == Estimate(0.5, 0.4, 0.6, 3)
