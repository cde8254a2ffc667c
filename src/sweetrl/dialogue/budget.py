"""Budgets: whether a run may spend more tokens, money or time."""

import time

from sweetrl.models.meter import Meter


class Budget:
    """Limits on what one run may spend; the clock runs from the moment it is made."""

    def __init__(
        self,
        meter: Meter,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        time_limit: float | None = None,
    ) -> None:
        """`time_limit` is in seconds; None means no limit."""
        self._meter = meter
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._deadline = None if time_limit is None else time.monotonic() + time_limit

    def exhausted(self) -> str | None:
        """Which limit has been reached, in words; None while there is some left."""
        if self._max_tokens is not None and self._meter.tokens >= self._max_tokens:
            return f"the budget of {self._max_tokens} tokens is spent"
        if self._max_cost is not None and self._meter.cost >= self._max_cost:
            return f"the budget of {self._max_cost:g} is spent"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "the time limit is reached"
        return None

    def seconds_left(self) -> float | None:
        """Seconds until the time limit; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def affords(self, turns_ahead: float, *, turns_done: int) -> bool:
        """Whether this many more turns are likely to fit the budget, at the mean cost of the turns so far.

        An estimate: later turns read longer dialogues. `exhausted` stays the limit.
        """
        if turns_done == 0:
            return True
        scale = 1 + turns_ahead / turns_done
        limits = ((self._meter.tokens, self._max_tokens), (self._meter.cost, self._max_cost))
        return all(limit is None or spent * scale <= limit for spent, limit in limits)
