"""The pages of docs/ say what the code does: examples, field tables and links."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields

from sweetrl import types
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import parse_task, read_tasks
from sweetrl.records import RunCard, Shard

CHECKOUT = Path(__file__).parent.parent
FORMATS = (CHECKOUT / "docs/data-formats.md").read_text()

EXAMPLES: list[tuple[str, str]] = re.findall(r"^```json ?(\S*)\n(.*?)^```", FORMATS, re.MULTILINE | re.DOTALL)
SECTIONS: dict[str, str] = dict(re.findall(r"^#+ (\w+)\n(.*?)(?=^#)", FORMATS, re.MULTILINE | re.DOTALL))
STRUCTS: dict[str, Any] = {name: each for name, each in vars(types).items() if name in SECTIONS} | {
    "RunCard": RunCard,
    "Shard": Shard,
    "BackendSecret": BackendSecret,
    "ChatSecret": ChatSecret,
    "FrontendSecret": FrontendSecret,
}
PUBLISHED = {
    "answer": {"task_id", "answer"},
    "published-dialogue": {"task", "dialogue_history", "answer", "reward"},
}


def described_fields(section: str) -> dict[str, bool]:
    """The fields of a section's table, and whether each is required."""
    rows = re.findall(r"^\| `(\w+)` \|.*?\| (required )?\|", SECTIONS[section], re.MULTILINE)
    return {name: bool(required) for name, required in rows}


def real_fields(struct: Any) -> dict[str, bool]:
    tag = {struct.__struct_config__.tag_field: False} if struct.__struct_config__.tag_field else {}
    return tag | {field.encode_name: field.required for field in fields(struct)}


def test_every_record_is_described() -> None:
    assert {"Task", "Episode", "Turn", "Verdict", "Check", "Failure", "Metric", "RunCard"} <= STRUCTS.keys()


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_a_field_table_lists_the_fields_of_its_record(name: str) -> None:
    assert described_fields(name) == real_fields(STRUCTS[name])


@pytest.mark.parametrize(("kind", "example"), EXAMPLES)
def test_an_example_is_what_it_is_said_to_be(kind: str, example: str, tmp_path: Path) -> None:
    if kind == "published-task":
        path = tmp_path / "tasks.jsonl"
        path.write_text(json.dumps(json.loads(example)))
        assert [task.id for task in read_tasks(path)] == ["tasks-0"]
    elif kind == "Task":
        parse_task(json.loads(example))
    elif kind in PUBLISHED:
        assert json.loads(example).keys() == PUBLISHED[kind]
    else:
        msgspec.json.decode(example, type=STRUCTS[kind])


def test_each_record_file_has_an_example() -> None:
    assert {"Task", "Episode", "Verdict", "Metric", "RunCard", *PUBLISHED} <= {kind for kind, _ in EXAMPLES}


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")]
    dead = [
        f"{page.relative_to(CHECKOUT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert dead == []
