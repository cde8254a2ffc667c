from hypothesis import given
from hypothesis import strategies as st

from sweetrl.dialogue.budget import Budget
from sweetrl.models.meter import Meter


def test_a_budget_without_limits_is_never_exhausted() -> None:
    budget = Budget(Meter(prompt_tokens=10**12, cost=1e9))
    assert budget.exhausted() is None
    assert budget.seconds_left() is None
    assert budget.affords(1e9, turns_done=1)


def test_each_limit_is_named_when_it_is_reached() -> None:
    meter = Meter(prompt_tokens=60, completion_tokens=40, cost=2.5)
    assert Budget(meter, max_tokens=101).exhausted() is None
    assert Budget(meter, max_tokens=100).exhausted() == "the budget of 100 tokens is spent"
    assert Budget(meter, max_cost=2.6).exhausted() is None
    assert Budget(meter, max_cost=2.5).exhausted() == "the budget of 2.5 is spent"
    assert Budget(meter, time_limit=1000).exhausted() is None
    assert Budget(meter, time_limit=0).exhausted() == "the time limit is reached"


def test_turns_are_affordable_if_they_fit_at_the_mean_price_so_far() -> None:
    meter = Meter(prompt_tokens=400, completion_tokens=100, cost=5.0)
    # Fifty turns took 500 tokens and 5 units of money.
    assert Budget(meter, max_tokens=700).affords(20, turns_done=50)
    assert not Budget(meter, max_tokens=699).affords(20, turns_done=50)
    assert Budget(meter, max_cost=7).affords(20, turns_done=50)
    assert not Budget(meter, max_tokens=10**9, max_cost=6.9).affords(20, turns_done=50)


def test_the_first_turns_are_always_affordable() -> None:
    assert Budget(Meter(), max_tokens=1).affords(1000, turns_done=0)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.floats(0, 1e6), st.integers(1, 10**6))
def test_nothing_is_affordable_beyond_a_limit(spent: int, limit: int, ahead: float, done: int) -> None:
    affordable = Budget(Meter(prompt_tokens=spent), max_tokens=limit).affords(ahead, turns_done=done)
    assert affordable or spent > 0
    assert not affordable or spent <= limit
