import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains import registry
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.frontend.mini_frontend import make_tasks
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import count_tasks, fingerprint_of_tasks, load_tasks, parse_task, read_tasks
from sweetrl.errors import DataError, UsageError
from sweetrl.types import Task

PUBLISHED = {"problem_description": "A shop.", "ground_truth": "<html></html>"}
OURS = Task(id="ours", domain="frontend", request="A shop.", secret=FrontendSecret(page="<p>"))


@pytest.fixture
def file_of(tmp_path):
    """Writes a file of lines: bytes as they are, records in our format, anything else as JSON."""

    def write(*lines, name="tasks.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"".join(encoded(line) for line in lines))
        return path

    return write


def encoded(line) -> bytes:
    return line if isinstance(line, bytes) else msgspec.json.encode(line) + b"\n"


def complaint(path) -> str:
    with pytest.raises(DataError) as caught:
        list(read_tasks(path))
    return str(caught.value)


def test_published_lines_without_id_are_named_by_file_and_line_from_0(file_of):
    path = file_of(PUBLISHED, b"\n", PUBLISHED, name="shops.jsonl")
    assert list(load_tasks(path)) == ["shops-0", "shops-2"]


def test_our_lines_come_back_as_they_are(file_of):
    assert load_tasks(file_of(OURS)) == {"ours": OURS}


def test_both_formats_may_share_a_file(file_of):
    assert list(load_tasks(str(file_of(OURS, PUBLISHED)))) == ["ours", "tasks-1"]


def test_tasks_are_read_one_at_a_time(file_of):
    assert next(read_tasks(file_of(OURS, b"junk"))) == OURS


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.jsonl", "train"),
        ("backend_test.jsonl", "test"),
        ("my_validation.jsonl", "validation"),
        ("latest.jsonl", ""),
        ("backend_dev.jsonl", ""),
    ],
)
def test_the_split_of_published_tasks_is_told_by_the_file_name(file_of, name, split):
    (task,) = read_tasks(file_of(PUBLISHED, name=name))
    assert task.split == split


def test_the_split_of_our_tasks_is_their_own(file_of):
    (task,) = read_tasks(file_of(OURS, name="test.jsonl"))
    assert task.split == ""


def test_a_missing_file_is_named(tmp_path):
    assert (
        complaint(tmp_path / "no.jsonl")
        == f"{tmp_path}/no.jsonl: no such file; give the path of one that exists"
    )


def test_a_folder_is_refused(tmp_path):
    assert complaint(tmp_path) == (f"{tmp_path}: is a folder where a file was expected; name a file in it")


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_tasks_is_refused(file_of, content):
    path = file_of(content)
    assert complaint(path) == f"{path}: has no tasks; give a file with one JSON object a line"


def test_a_truncated_line_is_told_by_its_number(file_of):
    path = file_of(OURS, encoded(PUBLISHED)[:-9])
    assert complaint(path).startswith(f"{path}:2: not valid JSON: ")
    assert complaint(path).endswith("was the file cut off?); fix or remove the line")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ([1, 2], "Expected `object`, got `array`"),
        ({**PUBLISHED, "ground_truth": 3}, "Expected `str`, got `int` - at `$.ground_truth`"),
        ({**PUBLISHED, "test_cases": ["f()"]}, "Expected `object`, got `array` - at `$.test_cases`"),
        ({**PUBLISHED, "test_cases": {"a": 1}}, "Expected `str`, got `int` - at `$.test_cases[...]`"),
        ({**PUBLISHED, "test_cases": {}}, "Expected `object` of length >= 1 - at `$.test_cases`"),
        (
            {**PUBLISHED, "problem_description": ""},
            "Expected `str` of length >= 1 - at `$.problem_description`",
        ),
        ({**PUBLISHED, "id": 7}, "Expected `str`, got `int` - at `$.id`"),
        ({"problem_description": "x"}, "Object missing required field `ground_truth`"),
        ({"schema": "task/1", "id": "x"}, "Object missing required field `domain`"),
    ],
)
def test_a_wrong_line_is_told_by_file_line_and_field(file_of, line, reason):
    path = file_of(OURS, line)
    assert complaint(path) == f"{path}:2: {reason}; fix or remove the line"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            {"schema": "episode/1"},
            "a record of schema episode/1, where task/2 was expected; is it the right file?",
        ),
        (
            {"task": {}, "dialogue_history": []},
            "neither a sweetrl task nor a published ColBench task (its fields: task, dialogue_history); "
            "if it is in a format of its domain, name that with --domain",
        ),
    ],
)
def test_a_line_that_is_no_task_is_told_by_file_and_line(file_of, line, reason):
    path = file_of(OURS, line)
    assert complaint(path) == f"{path}:2: {reason}"


def test_a_secret_of_another_domain_is_refused(file_of):
    line = {**json.loads(encoded(OURS)), "domain": "backend"}
    path = file_of(line)
    assert (
        complaint(path) == f"{path}:1: Invalid value 'frontend' - at `$.secret.kind`; fix or remove the line"
    )


def test_a_duplicate_id_names_both_lines(file_of):
    path = file_of(OURS, PUBLISHED, {**PUBLISHED, "id": "ours"})
    assert complaint(path) == f"{path}:3: the id 'ours' was used before, in line 1; ids must differ"


@given(st.binary())
def test_junk_is_never_more_than_a_data_error(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "junk.jsonl"
    path.write_bytes(b"\x80" + junk)
    assert complaint(path).startswith(f"{path}:1: not valid JSON: ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
fields = st.sampled_from(["problem_description", "ground_truth", "test_cases", "id", "secret", "request"])


@given(st.dictionaries(fields, json_values))
def test_any_json_object_is_a_task_or_a_data_error_at_its_line(tmp_path_factory, line):
    path = tmp_path_factory.mktemp("odd") / "odd.jsonl"
    path.write_text(json.dumps(line) + "\n")
    where = f"{path}:1: "
    try:
        (found,) = (task.request for task in read_tasks(path))
    except DataError as error:
        found = str(error)[: len(where)]
    assert found in (line.get("problem_description"), where)


def test_a_built_in_name_with_split_size_and_seed_is_a_source():
    assert list(read_tasks("mini-frontend:test:7:3")) == list(make_tasks("test", 7, 3))
    assert list(load_tasks("mini-frontend:train:2")) == [task.id for task in make_tasks("train", 2, 0)]


@pytest.mark.parametrize("name", ["mini-frontend:5", "mini-frontend:test:0", "mini-frontend:test:5:x"])
def test_half_a_built_in_name_is_told_how_to_go_on(name):
    with pytest.raises(UsageError, match=r"write mini-frontend:SPLIT:N or mini-frontend:SPLIT:N:SEED"):
        read_tasks(name)


def test_tasks_are_counted_without_making_them(file_of, monkeypatch):
    assert count_tasks(file_of(OURS, PUBLISHED)) == 2
    monkeypatch.setattr(registry, "find_generator", lambda _: pytest.fail)
    assert count_tasks("mini-backend:train:1000000:3") == 1_000_000
    assert count_tasks("mini-backend:train") == 100
    with pytest.raises(UsageError, match="write mini-backend:SPLIT:N"):
        count_tasks("mini-backend:train:many")


def test_a_name_alone_is_a_hundred_test_tasks_and_a_limit_takes_the_first():
    whole = list(make_tasks("test", 100, 0))
    assert list(read_tasks("mini-frontend")) == list(read_tasks("mini-frontend:test")) == whole
    assert list(read_tasks("mini-frontend", 3)) == whole[:3]
    assert list(load_tasks("mini-frontend:train:5", 2)) == [task.id for task in make_tasks("train", 2, 0)]


# ---------------------------------------------------------------- tasks of ours

words = st.text(min_size=1)
extras = st.dictionaries(
    st.text(), st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.lists(st.text())
)
backend_secrets = st.builds(BackendSecret, words, st.dictionaries(st.text(), words, min_size=1, max_size=3))
tasks_of_ours = (
    st.builds(
        Task,
        id=words,
        domain=st.just("backend"),
        request=words,
        secret=backend_secrets,
        split=st.text(),
        extra=extras,
    )
    | st.builds(
        Task, id=words, domain=st.just("frontend"), request=words, secret=st.builds(FrontendSecret, words)
    )
    | st.builds(
        Task, id=words, domain=st.just("chat"), request=words, secret=st.builds(ChatSecret, st.text())
    )
)
FIELDS = {
    "id": "a",
    "domain": "backend",
    "request": "r",
    "secret": {"kind": "backend", "reference": "def f(): ...", "tests": {"test1": "f()"}},
}
FIRST_EDITION = {
    "schema": "task/1",
    "id": "a",
    "kind": "backend",
    "split": "test",
    "request": "r",
    "secret": {"kind": "backend", "reference": "def f(): ...", "tests": {"test1": "f()"}},
    "extra": {},
}


@given(tasks_of_ours)
def test_a_task_comes_back_from_json_as_it_was(task: Task) -> None:
    assert parse_task(msgspec.json.decode(msgspec.json.encode(task))) == task


def test_a_task_of_the_first_edition_is_read_as_one_of_this(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(msgspec.json.encode(FIRST_EDITION) + b"\n")
    [task] = read_tasks(path)
    assert task == Task(
        id="a",
        domain="backend",
        split="test",
        request="r",
        secret=BackendSecret("def f(): ...", {"test1": "f()"}),
    )
    assert task.schema == "task/2"


def test_the_fingerprints_of_tasks_are_those_of_the_first_edition() -> None:
    task = parse_task(FIRST_EDITION)
    assert fingerprint_of_tasks([task]) == "1 tasks f1b097e23433cd54"


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (FIELDS | {"id": ""}, "length >= 1 - at `$.id`"),
        (FIELDS | {"request": ""}, "length >= 1 - at `$.request`"),
        (FIELDS | {"domain": "backed"}, "there is no domain 'backed'; did you mean 'backend'?"),
        (FIELDS | {"domain": "sql"}, "the domain 'sql' is not installed; install the package that has it"),
        (FIELDS | {"domain": "os:system"}, "the domain 'os:system' is not installed"),
        (FIELDS | {"domain": "frontend"}, "Invalid value 'backend' - at `$.secret.kind`"),
        (FIELDS | {"reference": "def f(): ..."}, "unknown field `reference`"),
        (FIELDS | {"secret": {"reference": "x", "tests": {}}}, "at `$.secret.tests`"),
        (FIELDS | {"secret": {"reference": "x", "tests": {"t": 1}}}, "at `$.secret.tests"),
        (FIELDS | {"secret": {"reference": "x", "tests": {"t": "1"}, "more": 1}}, "unknown field `more`"),
        (FIELDS | {"secret": "x"}, "Expected `object`, got `str` - at `$.secret`"),
        (
            FIELDS | {"schema": "task/9"},
            "written by another version of sweetrl: schema task/9, this one reads task/2",
        ),
        ({key: value for key, value in FIELDS.items() if key != "secret"}, "missing required field `secret`"),
        (
            {key: value for key, value in FIELDS.items() if key != "domain"},
            'the task has no field `domain`; add "domain": "backend", or the name of your domain, to each line',
        ),
    ],
)
def test_a_wrong_field_of_a_task_is_refused_and_named(
    tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b"\n" + msgspec.json.encode(fields) + b"\n")
    with pytest.raises(DataError) as caught:
        list(read_tasks(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert complaint in str(caught.value)
