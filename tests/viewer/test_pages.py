"""What pages say, read without a browser."""

from pathlib import Path

import msgspec
import pytest

from report.reading import Node, read
from report.samples import credit, episode, verdict
from sweetrl.types import Failure, TokenCredit
from sweetrl.viewer.dialogues import Dialogue, find_dialogue
from sweetrl.viewer.pages.compare import compare_page
from sweetrl.viewer.pages.dialogue import Around, dialogue_page
from sweetrl.viewer.pages.listing import list_page
from sweetrl.viewer.queries import Query
from viewer.stored_runs import indexed, write_pages, write_records, write_run


def found(folder: Path, name: str) -> Dialogue:
    dialogue = find_dialogue(indexed(folder), folder.name, name)
    assert dialogue is not None
    return dialogue


def shown(dialogue: Dialogue, *, show_hidden: bool = False) -> Node:
    return read(dialogue_page(dialogue, None, Around("/", "/", show_hidden=show_hidden)))


def test_the_wanted_page_needs_no_tasks_but_the_switch(tmp_path: Path) -> None:
    dialogue = found(write_pages(tmp_path / "run", "p"), "p#0")
    assert len(shown(dialogue, show_hidden=True).one(class_="slider").all("img")) == 2
    before = shown(dialogue)
    assert before.all(class_="slider") == []
    assert len(before.one(class_="answer").all("img")) == 1


def test_a_failure_that_ended_dialogue_and_scoring_is_told_once(tmp_path: Path) -> None:
    failure = Failure("collaborator", "RenderError", "no stylesheet")
    write_records(
        tmp_path / "run" / "episodes.jsonl", [msgspec.structs.replace(episode("a"), failure=failure)]
    )
    unscored = msgspec.structs.replace(verdict("a", None), failure=failure)
    write_records(tmp_path / "run" / "verdicts.jsonl", [unscored])
    assert shown(found(tmp_path / "run", "a#0")).text.count("no stylesheet") == 1


def test_a_person_who_played_is_named(tmp_path: Path) -> None:
    played = msgspec.structs.replace(episode("a"), extra={"play": {"player": "Ada"}})
    write_records(tmp_path / "run" / "episodes.jsonl", [played])
    assert "played by Ada" in shown(found(tmp_path / "run", "a#0")).one(class_="headline").text


def test_bars_of_two_dialogues_have_one_key_that_says_so(tmp_path: Path) -> None:
    left, right = (
        found(write_run(tmp_path / name, {"a": 1.0}, worst=worst), "a#0")
        for name, worst in (("one", -0.5), ("two", -2.0))
    )
    page = read(compare_page(left, right, None, "/", show_hidden=False))
    key = page.one(class_="credit-key").text
    assert "The longest bar is the strongest turn of both dialogues." in key
    assert "Words are shaded" in key


@pytest.mark.parametrize(
    ("scorer", "reward", "text"), [("backend-module/2", 0.2, "20.0 %"), ("chat-outcome", 4.0, "4.00")]
)
def test_the_reward_of_a_row_has_its_unit(tmp_path: Path, scorer: str, reward: float, text: str) -> None:
    write_records(tmp_path / "run" / "episodes.jsonl", [episode("a")])
    write_records(tmp_path / "run" / "verdicts.jsonl", [verdict("a", reward, scorer=scorer)])
    reader = indexed(tmp_path / "run")
    page = read(list_page(Query(), reader.rows(Query()), 1, reader.runs(), [], {}))
    assert page.one(class_="earned").text == text


def test_the_sign_for_the_end_of_a_turn_stands_in_its_place(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    tokens = tuple(TokenCredit(text, 0.1) for text in ("Question", " 1?", "<|im_end|>", "\n"))
    [first, _] = credit("a", [0.4, 0.1])
    write_records(folder / "credit.jsonl", [msgspec.structs.replace(first, tokens=tokens)])
    page = shown(found(folder, "a#0"))
    assert page.one(class_="tokens").text == "Question 1?⏎"
    assert "im_end" not in page.text
