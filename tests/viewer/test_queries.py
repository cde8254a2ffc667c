"""Filters, search and sorting."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from report.samples import credit, episode, verdict
from sweetrl.errors import UsageError
from sweetrl.types import Check, Ending, Outcome, Reply, Turn, TurnCredit
from sweetrl.viewer.queries import CRITICS, Query, Reader
from viewer.stored_runs import indexed, said, write_records, write_run


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tmp_path_factory.mktemp("queries") / "runs"
    write_run(folder / "base", {"a": 1.0, "b": 0.3, "c": None}, worst=-0.5)
    write_run(folder / "trained", {"a": 0.2, "b": 1.0}, worst=-2.0)
    odd = [
        said(episode("blue", turns=1), "Is it ocean blue?", "How “très” large?", "And deep?"),
        msgspec.structs.replace(
            episode("cut"),
            ending=Ending.TURN_LIMIT,
            answer=None,
            turns=(Turn("x", "x", Reply("Sorry.", excuse="too long"), unfinished=True),),
        ),
    ]
    write_records(folder / "odd" / "episodes.jsonl", odd)
    raised = msgspec.structs.replace(verdict("blue", 0.0), checks=(Check("test1", Outcome.RAISED),))
    write_records(folder / "odd" / "verdicts.jsonl", [raised])
    return indexed(folder)


def tasks(reader: Reader, **fields: object) -> list[str]:
    query = Query(**fields)  # type: ignore[arg-type]
    found, total = reader.page(query)
    rows = [f"{row.run}/{row.task}" for row in found]
    assert total == len(rows)
    return rows


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"runs": ("trained",)}, ["trained/a", "trained/b"]),
        ({"outcome": "success"}, ["base/a", "trained/b"]),
        ({"outcome": "unscored"}, ["base/c", "odd/cut"]),
        ({"outcome": "failure", "runs": ("base",)}, ["base/b"]),
        ({"ending": "turn_limit"}, ["odd/cut"]),
        ({"least_turns": 3}, ["odd/blue"]),
        ({"most_turns": 1}, ["odd/cut"]),
        ({"defect": "no reply"}, ["odd/cut"]),
        ({"defect": "cut off"}, ["odd/cut"]),
        ({"defect": "raised"}, ["odd/blue"]),
        ({"defect": "unscored"}, ["base/c"]),
        ({"task": "a"}, ["base/a", "trained/a"]),
        ({"text": "ocean"}, ["odd/blue"]),
        ({"text": "OCE"}, ["odd/blue"]),
        ({"text": "tres large"}, ["odd/blue"]),
        ({"text": '"ocean blue"'}, ["odd/blue"]),
        ({"text": '"blue ocean"'}, []),
        ({"text": "cut#0"}, ["odd/cut"]),
        ({"text": "ocean", "outcome": "success"}, []),
    ],
)
def test_a_filter_keeps_what_it_says(reader: Reader, fields: dict[str, object], found: list[str]) -> None:
    assert tasks(reader, **fields) == found


def test_the_most_hurt_dialogue_comes_first(reader: Reader) -> None:
    assert tasks(reader, sort="hurt")[:3] == ["trained/b", "trained/a", "base/c"]


def judged(task: str, critic: str, *advantages: float) -> list[TurnCredit]:
    return [msgspec.structs.replace(each, critic=critic) for each in credit(task, advantages)]


def test_critics_are_not_mixed_when_the_most_hurt_dialogue_comes_first(tmp_path: Path) -> None:
    write_records(tmp_path / "run" / "episodes.jsonl", [episode(task) for task in "abc"])
    small = [*judged("a", "small", 0.1, -0.1), *judged("b", "small", -0.2, 0.1), *judged("c", "small", 0.3)]
    large = [*judged("a", "large", -90.0, 5.0), *judged("b", "large", 7.0, -80.0)]
    write_records(tmp_path / "run" / "credit-1.jsonl", small)
    write_records(tmp_path / "run" / "credit-2.jsonl", large)
    both = indexed(tmp_path / "run")
    assert list(both.critics()) == ["small", "large"]
    for critic, found in (
        ("", [("b", 0, -0.2), ("a", 1, -0.1), ("c", 0, 0.3)]),
        ("large", [("a", 0, -90.0), ("b", 1, -80.0), ("c", None, None)]),
        ("nobody", [("b", 0, -0.2), ("a", 1, -0.1), ("c", 0, 0.3)]),
    ):
        rows = both.rows(Query(sort="hurt", critic=critic))
        assert [(row.task, row.worst_turn, row.worst_advantage) for row in rows] == found
    mixed = [line for pair in zip(small, large, strict=False) for line in pair]
    (tmp_path / "run" / "credit-2.jsonl").unlink()
    write_records(tmp_path / "run" / "credit-1.jsonl", [*mixed, *small[4:]])  # both in one file
    [first, *_] = indexed(tmp_path / "run").rows(Query(sort="hurt", critic="large"))
    assert (first.task, first.worst_turn, first.worst_advantage) == ("a", 0, -90.0)
    write_records(tmp_path / "run" / "credit-1.jsonl", small)
    assert list(indexed(tmp_path / "run").critics()) == ["small"]  # credit that has gone is not offered


def test_critics_may_be_called_anything(tmp_path: Path) -> None:
    names = ["", "x" * 5000, "é\0\u202e", "'; DROP TABLE worst; --", *map(str, range(50))]
    write_records(tmp_path / "run" / "episodes.jsonl", [episode("a")])
    records = [line for name in names for line in judged("a", name, -1.0)]
    write_records(tmp_path / "run" / "credit.jsonl", records)
    with (tmp_path / "run" / "credit.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(records[-1]).replace(b'"49"', rb'"\ud800"') + b"\n")
    reader = indexed(tmp_path / "run")
    assert list(reader.critics())[:3] == [names[0], *names[2:4]]  # one is too long for an address
    assert len(reader.critics()) == CRITICS
    assert [row.worst_advantage for row in reader.rows(Query(critic=names[3]))] == [-1.0]


def test_the_lowest_reward_comes_first_and_the_unscored_last(reader: Reader) -> None:
    assert tasks(reader, sort="reward") == [
        "odd/blue", "trained/a", "base/b", "base/a", "trained/b", "base/c", "odd/cut",
    ]  # fmt: skip


def test_an_unknown_filter_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="success, failure, unscored"):
        Query(outcome="won")


@given(st.text(max_size=60))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_can_be_searched_for(reader: Reader, text: str) -> None:
    reader.rows(Query(text=text.encode("utf-8", "replace").decode()))
