"""From values to places on a drawing, and the numbers written along its edges."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from sweetrl.types import Metric


class Estimate(NamedTuple):
    """A metric that rests on something: none of its values is missing."""

    value: float
    low: float
    high: float
    items: int
    """How many it rests on."""


def estimate_of(metric: Metric | None) -> Estimate | None:
    """The values of a metric; None if it has none."""
    if metric is None or not metric.count:
        return None
    value, low, high = metric.value, metric.low, metric.high
    if value is None or low is None or high is None or not all(map(math.isfinite, (value, low, high))):
        return None
    return Estimate(value, low, high, metric.count)


@dataclass(frozen=True)
class Scale:
    """Maps the values `low..high` to the places `start..stop`."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Where a value is drawn; values outside end up at the edge."""
        value = min(max(value, self.low), self.high)
        return self.start + (self.stop - self.start) * self._share(value)

    def _share(self, value: float) -> float:
        if self.high == self.low:
            return 0.5
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, about: int) -> list[float]:
        """Round values within the scale, some `about` of them."""
        if self.logarithmic:
            return _powers(self.low, self.high, about)
        step = round_step((self.high - self.low) / max(about, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def roomy_ticks(scale: Scale, about: int, label: Callable[[float], str]) -> list[float]:
    """Ticks whose labels do not run into each other: fewer than `about` where there is no room."""
    for count in range(about, 0, -1):
        ticks = scale.ticks(count)
        if not collide(scale, ticks, label):
            return ticks
    return ticks[:1]


def collide(scale: Scale, ticks: Sequence[float], label: Callable[[float], str]) -> bool:
    """Whether labels centred at their ticks touch each other."""
    widths = [_CHARACTER * len(label(tick)) for tick in ticks]
    places = [scale(tick) for tick in ticks]
    return any(
        places[right] - places[left] < (widths[left] + widths[right]) / 2 + _CHARACTER
        for left, right in pairwise(range(len(ticks)))
    )


_CHARACTER = 7.0
"""Pixels of a digit on an axis, generously."""


def _powers(low: float, high: float, about: int) -> list[float]:
    """Powers of two if few doublings are shown, of ten otherwise."""
    base = 2 if high / low <= 2 ** (about + 2) else 10
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [float(base) ** number for number in range(first, last + 1)]


def round_step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `rough`."""
    if rough <= 0 or not math.isfinite(rough):
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough * (1 - 1e-9)), 10 * power)


_TINIEST = 1e-300
"""Numbers closer to each other cannot be divided into steps."""


def extent(values: Iterable[float], *, zero: bool = False, share: bool = False) -> tuple[float, float]:
    """Round ends of an axis that holds all values; with zero on it if asked for. A `share` ends at 1."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < _TINIEST:
        low, high = (0.0, 1.0) if abs(low) < _TINIEST else (low - abs(low) / 2, high + abs(high) / 2)
    step = round_step((high - low) / 5)
    bottom, top = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return bottom, min(top, 1.0) if share and high <= 1 else top


# ---------------------------------------------------------------- numbers as text


def plain(value: float) -> str:
    """A number of any size in a few characters."""
    if not math.isfinite(value):
        return "–"
    whole = abs(value) < 1e6 and (abs(value) >= 1e3 or abs(value - round(value)) < 1e-9)
    return (f"{value:,.0f}" if whole else f"{value:.3g}").replace("-", "\u2212")


def amount(value: float, *, percent: bool, signed: bool = False) -> str:
    """A value of a measure: per cent with one decimal, or a number with two."""
    if not math.isfinite(value):
        return "–"
    number = f"{100 * value:{'+' if signed else ''}.1f}" if percent else f"{value:{'+' if signed else ''}.2f}"
    return number.replace("-", "\u2212")


def advantage_text(value: float) -> str:
    """An advantage as people read it."""
    return f"{value:+.3f}".replace("-", "\u2212")


def interval(metric: Estimate, *, percent: bool, signed: bool = False) -> str:
    """The interval of a metric: `37.4 to 43.5`."""
    low, high = (amount(end, percent=percent, signed=signed) for end in (metric.low, metric.high))
    return f"{low} to {high}"
