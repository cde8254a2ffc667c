import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains import sources
from sweetrl.domains.frontend.mini_frontend import make_tasks
from sweetrl.domains.sources import count_tasks, load_tasks, read_tasks
from sweetrl.errors import DataError, UsageError
from sweetrl.types import FrontendSecret, Kind, Task

PUBLISHED = {"problem_description": "A shop.", "ground_truth": "<html></html>"}
OURS = Task(id="ours", kind=Kind.FRONTEND, request="A shop.", secret=FrontendSecret(page="<p>"))


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
    assert complaint(tmp_path / "no.jsonl") == f"{tmp_path}/no.jsonl: no such file"


def test_a_folder_is_refused(tmp_path):
    assert complaint(tmp_path) == f"{tmp_path}: is a folder, a file of JSON lines was expected"


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_tasks_is_refused(file_of, content):
    path = file_of(content)
    assert complaint(path) == f"{path}: has no tasks"


def test_a_truncated_line_is_told_by_its_number(file_of):
    path = file_of(OURS, encoded(PUBLISHED)[:-9])
    assert complaint(path).startswith(f"{path}:2: not valid JSON: ")
    assert complaint(path).endswith("was the file cut off?)")


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
        ({"schema": "task/1", "id": "x"}, "Object missing required field `kind`"),
        ({"schema": "episode/1"}, "Invalid enum value 'episode/1' - at `$.schema`"),
        (
            {"task": {}, "dialogue_history": []},
            "neither a sweetrl task nor a published ColBench task (its fields: task, dialogue_history)",
        ),
    ],
)
def test_a_wrong_line_is_told_by_file_line_and_field(file_of, line, reason):
    path = file_of(OURS, line)
    assert complaint(path) == f"{path}:2: {reason}"


def test_a_secret_of_the_other_kind_is_refused(file_of):
    line = {**json.loads(encoded(OURS)), "kind": "backend"}
    path = file_of(line)
    assert complaint(path) == f"{path}:1: a backend task cannot have the secret of the other kind"


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


@pytest.mark.parametrize("name", ["mini-frontend:test", "mini-frontend:test:0", "mini-frontend:test:5:x"])
def test_half_a_built_in_name_is_told_how_to_go_on(name):
    with pytest.raises(UsageError, match=r"write mini-frontend:SPLIT:N or mini-frontend:SPLIT:N:SEED"):
        read_tasks(name)


def test_tasks_are_counted_without_making_them(file_of, monkeypatch):
    assert count_tasks(file_of(OURS, PUBLISHED)) == 2
    monkeypatch.setattr(sources, "GENERATORS", dict.fromkeys(sources.GENERATORS))
    assert count_tasks("mini-backend:train:1000000:3") == 1_000_000
    with pytest.raises(UsageError, match="write mini-backend:SPLIT:N"):
        count_tasks("mini-backend:train")
