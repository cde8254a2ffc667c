import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains import colbench
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import parse_task, read_tasks
from sweetrl.errors import DataError
from sweetrl.types import Task

BACKEND = {"problem_description": "Add.", "ground_truth": "def f(): ...", "test_cases": {"test1": "f()"}}
FRONTEND = {"problem_description": "A shop.", "ground_truth": "<html></html>"}


def parse(fields, *, ascii_only=True):
    return colbench.parse_task(fields, position_id="file-0", split="test", ascii_only=ascii_only)


def through_our_format(task: Task) -> Task:
    return parse_task(msgspec.json.decode(msgspec.json.encode(task)))


@pytest.mark.parametrize("name", ["backend_dev.jsonl", "frontend_dev.jsonl"])
def test_the_real_files_come_back_byte_for_byte(colbench_dir, name):
    published = (colbench_dir / name).read_bytes()
    tasks = [through_our_format(task) for task in read_tasks(colbench_dir / name)]
    assert len(tasks) == 500
    assert b"".join(map(colbench.published_line, tasks)) == published


def test_a_line_with_tests_is_a_backend_task():
    task = parse(BACKEND)
    assert task.domain == "backend"
    assert task.request == "Add."
    assert task.secret == BackendSecret(reference="def f(): ...", tests={"test1": "f()"})
    assert (task.id, task.split) == ("file-0", "test")


def test_a_line_without_tests_is_a_frontend_task():
    task = parse(FRONTEND)
    assert task.domain == "frontend"
    assert task.secret == FrontendSecret(page="<html></html>")


def test_the_line_s_own_id_wins_and_is_written_back_in_its_place():
    fields = {"problem_description": "A shop.", "id": "shop", "ground_truth": "<html></html>"}
    task = parse(fields)
    assert task.id == "shop"
    assert colbench.published_line(task) == json.dumps(fields).encode() + b"\n"


def test_hidden_information_is_kept_once_if_it_repeats_the_reference():
    fields = {**BACKEND, "hidden_information": BACKEND["ground_truth"]}
    task = parse(fields)
    assert task.extra == {colbench.LAYOUT: {"keys": list(fields)}}
    assert colbench.published_line(task) == json.dumps(fields).encode() + b"\n"


def test_hidden_information_of_its_own_is_kept_as_it_is():
    fields = {**BACKEND, "hidden_information": "something else"}
    assert colbench.published_line(parse(fields)) == json.dumps(fields).encode() + b"\n"


def test_a_changed_task_is_exported_as_changed():
    task = msgspec.structs.replace(parse(BACKEND), request="Subtract.")
    assert json.loads(colbench.published_line(task))["problem_description"] == "Subtract."


def test_a_task_of_another_origin_is_exported_with_its_id():
    task = Task(
        id="mine", domain="backend", request="Add.", secret=BackendSecret(reference="r", tests={"a": "f()"})
    )
    line = json.loads(colbench.published_line(task))
    assert line == {
        "id": "mine",
        "problem_description": "Add.",
        "ground_truth": "r",
        "test_cases": {"a": "f()"},
    }
    assert parse(line).id == "mine"


@pytest.mark.parametrize("layout", ["x", {}, {"keys": 3}])
def test_a_layout_that_is_none_is_refused(layout):
    task = msgspec.structs.replace(parse(BACKEND), extra={colbench.LAYOUT: layout})
    with pytest.raises(DataError, match=r"^task file-0: extra\.colbench is not a layout: "):
        colbench.published_line(task)


def test_a_layout_that_lists_a_field_without_value_is_refused():
    task = msgspec.structs.replace(parse(BACKEND), extra={colbench.LAYOUT: {"keys": ["colour"]}})
    with pytest.raises(DataError, match=r"lists the field 'colour' but has no value"):
        colbench.published_line(task)


# JSON that our own format can carry: 64-bit integers, finite floats, text without lone surrogates.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
filled = text.filter(bool)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def published(draw) -> dict:
    fields = draw(st.dictionaries(text, values, max_size=4))
    for used in ("test_cases", "id"):
        fields.pop(used, None)
    fields["problem_description"] = draw(filled)
    fields["ground_truth"] = draw(filled)
    if draw(st.booleans()):
        fields["test_cases"] = draw(st.dictionaries(text, filled, min_size=1, max_size=3))
    if draw(st.booleans()):
        fields["id"] = draw(filled)
    if draw(st.booleans()):
        fields["hidden_information"] = draw(st.just(fields["ground_truth"]) | values)
    return {key: fields[key] for key in draw(st.permutations(list(fields)))}


@given(published(), st.booleans())
def test_any_line_of_json_dumps_comes_back_byte_for_byte(fields, escaped):
    line = json.dumps(fields, ensure_ascii=escaped).encode() + b"\n"
    decoded = msgspec.json.decode(line)
    task = parse(decoded, ascii_only=line.isascii())
    assert colbench.published_line(task) == line
    assert colbench.published_line(through_our_format(task)) == line
