"""Colours as people call them."""

import functools
import math

_NAMED = {
    "black": ("#000000", "#111827"),
    "dark grey": ("#374151", "#1f2937"),
    "grey": ("#8b929e", "#6b7280"),
    "light grey": ("#e2e4e8", "#f3f4f6", "#d1d5db"),
    "white": ("#ffffff",),
    "red": ("#ef4444", "#dc2626", "#b91c1c", "#f87171"),
    "dark red": ("#7f1d1d", "#991b1b"),
    "light red": ("#fecaca", "#fee2e2"),
    "orange": ("#f97316", "#fb923c"),
    "brown": ("#854d0e", "#92400e", "#b45309"),
    "yellow": ("#fbbf24", "#f59e0b", "#fcd34d"),
    "light yellow": ("#fef3c7", "#fde68a"),
    "green": ("#10b981", "#059669", "#047857", "#34d399"),
    "dark green": ("#065f46", "#064e3b"),
    "light green": ("#d1fae5", "#a7f3d0"),
    "blue": ("#3b82f6", "#2563eb", "#1d4ed8", "#60a5fa"),
    "dark blue": ("#1e3a8a", "#1e40af"),
    "light blue": ("#dbeafe", "#bfdbfe"),
    "indigo": ("#6366f1", "#4f46e5", "#4338ca"),
    "purple": ("#8b5cf6", "#7c3aed", "#6d28d9", "#a78bfa"),
    "dark purple": ("#4c1d95", "#5b21b6", "#312e81"),
    "light purple": ("#ddd6fe", "#ede9fe"),
    "pink": ("#ec4899", "#db2777", "#be185d", "#f472b6"),
    "dark pink": ("#831843", "#9d174d"),
    "light pink": ("#fbcfe8", "#fce7f3"),
}
"""Names of colours, each with examples."""
_LIGHTNESS_STEP = 3.0
"""In CIELAB: a difference in lightness that can be named."""


def colour_name(colour: str) -> str:
    """The nearest of a few dozen names."""
    return min(_NAMED, key=lambda name: min(distance(colour, example) for example in _NAMED[name]))


def wish(wanted: str, shown: str) -> str:
    """A request about a colour: `white instead of red`, or `a darker green` where both have one name."""
    names = colour_name(wanted), colour_name(shown)
    if names[0] != names[1]:
        return f"{names[0]} instead of {names[1]}"
    lighter = _lab(wanted)[0] - _lab(shown)[0]
    if abs(lighter) < _LIGHTNESS_STEP:
        return f"another shade of {names[0]}"
    return f"a {'lighter' if lighter > 0 else 'darker'} shade of {names[0]}"


def distance(one: str, other: str) -> float:
    """In CIELAB: 2 can hardly be seen, 100 is black and white."""
    return math.dist(_lab(one), _lab(other))


@functools.lru_cache(maxsize=4096)
def _lab(colour: str) -> tuple[float, float, float]:
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    x = _curve((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505)
    y = _curve(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = _curve((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _linear(part: float) -> float:
    return float(((part + 0.055) / 1.055) ** 2.4) if part > 0.04045 else part / 12.92


def _curve(part: float) -> float:
    return math.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116
