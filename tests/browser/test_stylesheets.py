"""The subset of a stylesheet that a page gets: everything that can apply to it, and little else."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.browser import BrowserPool, WebAssets
from sweetrl.browser.stylesheets import Stylesheet, words
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import load_tasks

SMALL = Stylesheet(
    "/*! a comment {} */*,::after{box-sizing:border-box}.flex{display:flex}"
    ".group:hover .group-hover\\:flex{display:flex}"
    ".w-1\\/2{width:50%}.space-y-2>:not([hidden])~:not(.x){margin:0}@keyframes spin{to{transform:none}}.a,.b{color:red}"
    "@media (min-width:640px){.flex{float:left}.sm\\:flex{display:flex}.\\32xl\\:flex{display:block}}.last{top:0}"
)
ALWAYS = "*,::after{box-sizing:border-box}@keyframes spin{to{transform:none}}"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>", ALWAYS),
        (
            "<p class=W-1/2>",
            "*,::after{box-sizing:border-box}.w-1\\/2{width:50%}@keyframes spin{to{transform:none}}",
        ),
        ("<p class='group-hover:flex'>", ALWAYS),
        (
            "<p class='last 2xl:flex'>",
            ALWAYS + "@media (min-width:640px){.\\32xl\\:flex{display:block}}.last{top:0}",
        ),
        ("<p class='b'>", ALWAYS + ".a,.b{color:red}"),
        ("<p class='&#98;'>", ALWAYS + ".a,.b{color:red}"),
    ],
)
def test_a_page_gets_the_rules_of_its_classes_in_their_order(page: str, expected: str) -> None:
    assert SMALL.for_page(page) == expected


def test_a_rule_of_two_classes_needs_both() -> None:
    assert "group-hover" in SMALL.for_page("<a class=group><b class='group-hover:flex'>")


def test_classes_in_a_negation_are_not_needed() -> None:
    assert ".space-y-2>" in SMALL.for_page("<p class=space-y-2>")


@given(st.lists(st.sampled_from(["flex", "w-1/2", "sm:flex", "hover:bg-red-500", "2xl:w-11/12", "py-0.5"])))
def test_every_class_of_a_page_is_among_its_words(classes: list[str]) -> None:
    for quote in ('"', "'"):
        assert set(classes) <= words(f"<DIV id=x CLASS={quote}{' '.join(classes).upper()}{quote}>text")


def test_a_page_of_tailwind_gets_a_small_part_of_it(tailwind: WebAssets) -> None:
    css = tailwind.stylesheet("tailwind").for_page("<body class='bg-gray-100 md:w-1/2 hover:text-white'>")
    assert ".bg-gray-100{" in css
    assert ".md\\:w-1\\/2{" in css
    assert ".hover\\:text-white:hover{" in css
    assert ".bg-gray-200{" not in css
    assert len(css) < 10_000


class Uncut(WebAssets):
    """Serves the whole stylesheet to every page."""

    def __init__(self) -> None:
        super().__init__()
        whole = (self.folder / "tailwindcss/dist/tailwind.min.css").read_text()
        self.stylesheet = lambda _: type("Whole", (), {"for_page": staticmethod(lambda _: whole)})()  # type: ignore


def test_a_page_looks_the_same_with_the_whole_stylesheet(
    colbench_dir: Path, run: Any, chromium: None, tailwind: WebAssets
) -> None:
    secrets = [task.secret for task in load_tasks(colbench_dir / "frontend_dev.jsonl").values()]
    pages = [secret.page for secret in secrets[5::90] if isinstance(secret, FrontendSecret)]

    async def pictures(assets: WebAssets) -> list[bytes]:
        async with BrowserPool(workers=2, assets=assets) as renderer:
            return [shot.png for shot in await asyncio.gather(*map(renderer.render, pages))]

    assert run(pictures(tailwind)) == run(pictures(Uncut()))
