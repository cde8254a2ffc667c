"""HTML that is safe by construction: whatever is not `Markup` is escaped when it is put into an element.

Beyond the escaping of markup, text from models loses what could deceive the reader or is not allowed in HTML:
control characters and those that reorder a line are made visible, halves of surrogate pairs are replaced.
"""

import html
import re
from collections.abc import Iterable

VOID = frozenset({"br", "img", "input", "link", "meta"})
CUT = 6000
"""Characters of one text that are shown."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REORDERING = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_NOT_A_CHARACTER = re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Any text as HTML that shows it."""
    value = _CONTROL.sub(_picture_of_control, with_plain_newlines(value))
    value = _REORDERING.sub(lambda found: f"[U+{ord(found[0]):04X}]", value)
    return Markup(html.escape(_NOT_A_CHARACTER.sub("\ufffd", value), quote=True))


def with_plain_newlines(value: str) -> str:
    """The text with `\\n` as its only line break."""
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _picture_of_control(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def element(name: str, /, *children: str | None, **attributes: str | float | bool | None) -> Markup:
    """`<name ...>children</name>`; children that are not markup are escaped, as are all attributes.

    `class_` is `class`, `data_tip` is `data-tip`; None and False leave an attribute out, True gives an empty one.
    """
    opening = "".join(
        f" {key.rstrip('_').replace('_', '-')}{_assigned(value)}"
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{opening}>")
    return Markup(f"<{name}{opening}>{join(children)}</{name}>")


def join(children: Iterable[str | None], separator: str = "") -> Markup:
    """Children one after the other; plain text among them is escaped."""
    shown = (child if isinstance(child, Markup) else text(child) for child in children if child is not None)
    return Markup(separator.join(shown))


def _assigned(value: str | float) -> str:
    if value is True:
        return ""
    return f'="{text(value if isinstance(value, str) else short_number(value))}"'


def short_number(value: float) -> str:
    """As few characters as a drawing needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def cut(value: str, limit: int = CUT) -> tuple[str, int]:
    """The text as far as it is shown, and how many characters are left out."""
    # A few more are no reason to cut.
    if len(value) <= limit * 1.1:
        return value, 0
    return value[:limit], len(value) - limit


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def excerpt(value: str, limit: int) -> str:
    """One line of at most `limit` characters."""
    line = " ".join(value[: 4 * limit].split())
    return line if len(line) <= limit and len(value) <= 4 * limit else line[: limit - 1].rstrip() + "…"
