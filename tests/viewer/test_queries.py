"""Filters, search and sorting."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from report.samples import episode, verdict
from sweetrl.errors import UsageError
from sweetrl.types import Check, Ending, Outcome, Reply, Turn
from sweetrl.viewer.queries import Query, Reader
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
