"""References of design tasks that cannot be compared with."""

import asyncio

import msgspec
import pytest

from pages.painted import PaintedPages, body, paint, shop
from sweetrl.domains.frontend.defects import find_page_defects
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import PageError, RenderError
from sweetrl.types import Task

TASK = Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret("<html></html>"))


def defects(outcome):
    found = asyncio.run(find_page_defects(TASK, PaintedPages({"<html></html>": outcome})))
    return [(defect.reason, defect.detail) for defect in found]


def test_a_sound_page_has_none():
    assert defects(shop()) == []


@pytest.mark.parametrize(
    ("outcome", "reason", "detail"),
    [
        (PageError("too large"), "page_not_shown", "too large"),
        (paint(body("#ff0000")), "blank_page", "nothing can be seen"),
        (
            msgspec.structs.replace(shop(), blocked=("http://a/x", "http://b/y")),
            "incomplete_page",
            "http://a/x and 1",
        ),
        (msgspec.structs.replace(shop(), warnings=("cut at 8000 pixels",)), "incomplete_page", "cut at 8000"),
    ],
)
def test_a_defect_is_named_with_its_reason(outcome, reason, detail):
    [(found, said)] = defects(outcome)
    assert found == reason
    assert detail in said


def test_a_broken_browser_says_nothing_about_the_task():
    with pytest.raises(RenderError):
        defects(RenderError("gone"))
