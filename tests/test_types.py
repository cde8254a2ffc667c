"""The records: what they accept, what they refuse, and what they derive."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.errors import DataError
from sweetrl.records import LineDecoder
from sweetrl.types import (
    Check,
    Ending,
    Episode,
    Failure,
    Message,
    Outcome,
    Reply,
    Role,
    Turn,
    Verdict,
    digest,
    episode_id,
)

words = st.text(min_size=1)
extras = st.dictionaries(
    st.text(), st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.lists(st.text())
)
failures = st.builds(Failure, stage=st.text(), kind=st.text(), message=st.text())

turns = st.builds(
    Turn,
    output=st.text(),
    said=st.text(),
    reply=st.none() | st.builds(Reply, text=st.text(), screenshot=st.none() | st.text()),
)
episodes = st.builds(
    Episode,
    task_id=words,
    attempt=st.integers(0, 2**31),
    seed=st.integers(0, 2**31),
    agent=st.text(),
    collaborator=st.text(),
    request=st.text(),
    turns=st.lists(turns, max_size=3).map(tuple),
    ending=st.sampled_from(Ending),
    answer=st.none() | st.text(),
    failure=st.none() | failures,
    extra=extras,
)
verdicts = st.builds(
    Verdict,
    task_id=words,
    episode_id=words,
    scorer=st.text(),
    answer_digest=st.text(),
    reward=st.none() | st.floats(0, 1),
    success=st.booleans(),
    checks=st.lists(st.builds(Check, st.text(), st.sampled_from(Outcome), st.text()), max_size=3).map(tuple),
    failure=st.none() | failures,
)


@given(episodes | verdicts)
def test_a_record_comes_back_from_json_as_it_was(record: Episode | Verdict) -> None:
    line = msgspec.json.encode(record)
    assert b"\n" not in line
    assert LineDecoder(type(record), Path("records.jsonl"))(1, line) == record


@given(st.binary(max_size=64))
def test_images_come_back_from_json_as_they_were(image: bytes) -> None:
    message = Message(Role.USER, "look", (image,))
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


EPISODE: dict[str, Any] = {
    "task_id": "a",
    "attempt": 0,
    "seed": 1,
    "agent": "x",
    "collaborator": "y",
    "request": "r",
    "turns": [{"output": "o", "said": "s"}],
    "ending": "answered",
    "answer": None,
}
VERDICT: dict[str, Any] = {
    "task_id": "a",
    "episode_id": "a#0",
    "scorer": "backend/1",
    "answer_digest": "-",
    "reward": 0.5,
    "success": False,
    "checks": [{"name": "test1", "outcome": "wrong"}],
}


@pytest.mark.parametrize(("record_type", "fields"), [(Episode, EPISODE), (Verdict, VERDICT)])
def test_the_schema_is_optional_to_read_and_always_written(record_type: Any, fields: dict[str, Any]) -> None:
    record = msgspec.json.decode(msgspec.json.encode(fields), type=record_type)
    assert msgspec.json.decode(msgspec.json.encode(record))["schema"] == f"{record_type.__name__.lower()}/1"


@pytest.mark.parametrize(
    ("record_type", "fields", "complaint"),
    [
        (Episode, EPISODE | {"attempt": -1}, "at `$.attempt`"),
        (Episode, EPISODE | {"ending": "bored"}, "at `$.ending`"),
        (Episode, EPISODE | {"turns": [{"output": "o"}]}, "missing required field `said` - at `$.turns[0]`"),
        (Episode, EPISODE | {"secret": {"reference": "x"}}, "unknown field `secret`"),
        (Verdict, VERDICT | {"reward": "1"}, "at `$.reward`"),
        (Verdict, VERDICT | {"checks": [{"name": "t", "outcome": "odd"}]}, "at `$.checks[0].outcome`"),
        (Verdict, EPISODE | {"schema": "episode/1"}, "schema episode/1, where verdict/1 was expected"),
    ],
)
def test_a_wrong_field_is_refused_and_named(record_type: Any, fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        LineDecoder(record_type, Path("records.jsonl"))(4, msgspec.json.encode(fields))
    assert str(caught.value).startswith("records.jsonl:4: ")
    assert complaint in str(caught.value)


def test_records_are_frozen() -> None:
    verdict = msgspec.convert(VERDICT, Verdict)
    with pytest.raises(AttributeError):
        verdict.reward = 1.0  # type: ignore[misc]


def test_an_unscored_verdict_is_not_a_zero() -> None:
    fields = msgspec.json.decode(msgspec.json.encode(msgspec.convert(VERDICT | {"reward": None}, Verdict)))
    assert fields["reward"] is None


def test_an_episode_is_named_by_its_task_and_attempt() -> None:
    episode = msgspec.convert(EPISODE | {"task_id": "test-7", "attempt": 3}, Episode)
    assert episode.id == episode_id("test-7", 3) == "test-7#3"


def test_the_history_of_a_turn_is_what_was_said_before_it() -> None:
    spoken = [
        {"output": "thought OUTPUT: which one?", "said": "which one?", "reply": {"text": "the first"}},
        {"output": "hm OUTPUT: done", "said": "done"},
    ]
    episode = msgspec.convert(EPISODE | {"turns": spoken}, Episode)
    request = Message(Role.USER, "r")
    asked, told = Message(Role.ASSISTANT, "which one?"), Message(Role.USER, "the first")
    assert episode.history(0) == (request,)
    assert episode.history(1) == (request, asked, told)
    assert episode.history(2) == (request, asked, told, Message(Role.ASSISTANT, "done"))


def test_a_digest_tells_texts_apart_and_nothing_from_the_empty_text() -> None:
    assert digest(None) == "-"
    assert len({digest(""), digest("a"), digest("a "), digest("\ud800")}) == 4
    assert digest("a") == digest("a")
    assert len(digest("a")) == 16


def test_a_failure_names_its_kind_once():
    assert str(Failure("agent", "not_found", "not_found: HTTP 404")) == "agent: not_found: HTTP 404"
    assert str(Failure("score", "SandboxError", "gone")) == "score: SandboxError: gone"
