"""Small design tasks made from a seed."""

import itertools
import re

import pytest

from sweetrl.domains.frontend.mini_frontend import BUSINESSES, DARK, LIGHT, SPLIT_SHARES, make_tasks, split_of
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import UsageError
from sweetrl.types import Task


def pages(split: str, count: int, seed: int = 0) -> list[str]:
    return [page_of_task(task) for task in make_tasks(split, count, seed)]


def page_of_task(task: Task) -> str:
    assert isinstance(task.secret, FrontendSecret)
    return task.secret.page


def test_a_seed_fixes_the_tasks_and_a_greater_count_only_adds() -> None:
    few, many = list(make_tasks("test", 5, 3)), list(make_tasks("test", 20, 3))
    assert many[:5] == few
    assert list(make_tasks("test", 5, 4)) != few


def test_ids_and_pages_differ() -> None:
    tasks = list(make_tasks("train", 300))
    assert len({task.id for task in tasks}) == len({page_of_task(task) for task in tasks}) == 300


def test_no_page_is_in_two_splits_whatever_the_seeds() -> None:
    by_split = {split: {p for seed in range(3) for p in pages(split, 100, seed)} for split in SPLIT_SHARES}
    for one, other in itertools.combinations(SPLIT_SHARES, 2):
        assert by_split[one].isdisjoint(by_split[other])
    assert all(split_of(page) == split for split, found in by_split.items() for page in found)


def test_a_request_gives_none_of_the_hidden_choices_away() -> None:
    hidden = {shade.split("-")[0] for shade in DARK + LIGHT} | {"left", "right", "footer", "table", "form"}
    for task in make_tasks("train", 200):
        assert not hidden & set(re.findall(r"[a-z]+", task.request.lower()))
        assert len(task.request.splitlines()) == 1


def test_the_same_request_leads_to_different_pages() -> None:
    by_request: dict[str, set[str]] = {}
    for task in make_tasks("train", 400):
        by_request.setdefault(task.request, set()).add(page_of_task(task))
    assert max(len(found) for found in by_request.values()) > 3
    assert len(by_request) > len(BUSINESSES)


def test_every_choice_is_seen() -> None:
    text = "\n".join(pages("train", 300))
    tags = (
        "<header",
        "<nav",
        "<h2",
        "<table",
        "<form",
        "<footer",
        "<img",
        "grid-cols-4",
        "text-right",
        "w-1/3",
    )
    assert all(tag in text for tag in tags)
    assert all(f"bg-{colour} " in text for colour in DARK + LIGHT)


def test_an_unknown_split_is_a_usage_error_that_names_the_splits() -> None:
    with pytest.raises(UsageError, match="no split 'dev'; it has train, validation, test"):
        list(make_tasks("dev", 1))
