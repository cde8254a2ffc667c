"""An agent for `mini-frontend` that starts from a plain page and does what the scripted designer asks for."""

import re
from collections.abc import Sequence

import msgspec

from sweetrl.domains.frontend.colours import colour_name
from sweetrl.domains.frontend.mini_frontend import BUSINESSES, DARK, LIGHT, PAGE_COLOURS, Design, page_of
from sweetrl.types import Message, Role

HEX = {
    "white": "#ffffff", "gray-800": "#1f2937", "gray-200": "#e5e7eb", "gray-100": "#f3f4f6",
    "red-600": "#dc2626", "red-100": "#fee2e2", "blue-600": "#2563eb", "blue-100": "#dbeafe",
    "blue-50": "#eff6ff", "green-600": "#059669", "green-100": "#d1fae5", "green-50": "#ecfdf5",
    "purple-600": "#7c3aed", "purple-100": "#ede9fe", "indigo-800": "#3730a3", "pink-600": "#db2777",
    "yellow-200": "#fde68a", "yellow-50": "#fffbeb",
}  # fmt: skip


def first_design(request: str) -> Design:
    about = next((each for each in BUSINESSES if each.what in request or each.name in request), BUSINESSES[0])
    return Design(
        business=about, sections=("hero", "cards"), page_colour="white", header_colour="gray-800",
        navigation="right", bar_colour="white", hero_colour="gray-200", hero_align="center", hero_padding=16,
        heading_size="4xl", button_colour="blue-600", card_count=3, card_colour="white", card_pictures=False,
        table_rows=3, table_colour="gray-800", form_fields=2, form_width="1/2", footer_colour="gray-800",
        footer_align="center",
    )  # fmt: skip


def revise(design: Design, reply: str) -> Design:
    """The design after a remark, as far as it is understood."""
    changed: dict[str, object] = {}
    sections = list(design.sections)
    if asked := re.search(r"background of the page should be ([a-z ]+) instead", reply):
        changed["page_colour"] = _shade(asked[1], PAGE_COLOURS, design.page_colour)
    for noun, field in (("header", "header_colour"), ("footer", "footer_colour")):
        if asked := re.search(rf"[Tt]he {noun} should be ([a-z ]+) instead", reply):
            changed[field] = _shade(asked[1], DARK + LIGHT, getattr(design, field))
    for noun in ("table", "form"):
        if re.search(rf"\ba {noun} [a-z ]+ is missing", reply, re.IGNORECASE) and noun not in sections:
            sections.append(noun)
        if re.search(rf"the {noun} should not be there", reply, re.IGNORECASE):
            sections.remove(noun)
    if re.search(r"a footer [a-z ]+ is missing", reply, re.IGNORECASE):
        changed["footer_colour"] = "gray-800"
    if re.search(r"the footer should not be there", reply, re.IGNORECASE):
        changed["footer_colour"] = ""
    return msgspec.structs.replace(design, sections=tuple(sections), **changed)


def _shade(name: str, choices: Sequence[str], known: str) -> str:
    return next((choice for choice in choices if colour_name(HEX[choice]) == name), known)


def draft(history: Sequence[Message], seed: int = 0, *, turns: int = 4) -> str:
    """A `Script` for `ScriptedAgent`: the page after all remarks so far; at last it answers."""
    design = first_design(history[0].text)
    remarks = [message.text for message in history[1:] if message.role is Role.USER]
    for remark in remarks:
        design = revise(design, remark)
    marker = "I WANT TO ANSWER:\n" if len(remarks) >= turns - 1 else ""
    return marker + page_of(design)
