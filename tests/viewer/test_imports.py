"""Published files and chat logs are shown like runs of ours."""

import json
from pathlib import Path

import pytest

from sweetrl.domains.logged import read_logged
from sweetrl.errors import SweetError
from sweetrl.types import Annotation, TurnCredit
from sweetrl.viewer.annotations import append_annotation
from sweetrl.viewer.dialogues import Dialogue, find_dialogue
from sweetrl.viewer.imports import with_imports
from sweetrl.viewer.index import Index
from sweetrl.viewer.queries import Query, Reader, Row
from sweetrl.viewer.secrets import Secrets
from sweetrl.viewer.sources import Given, parse_words
from viewer.stored_runs import write_records, write_run

CHAT = {
    "messages": [
        {"role": "user", "content": "Where is my parcel?"},
        {"role": "assistant", "content": "Which number?"},
        {"role": "user", "content": "12."},
        {"role": "assistant", "content": "It is lost."},
    ],
    "reference": "It is on its way.",
    "outcome": 0,
}
PUBLISHED = {
    "task": {
        "problem_description": "Double a number.",
        "ground_truth": "def double(x):\n    return 2 * x",
        "test_cases": {"test1": "double(2)"},
    },
    "dialogue_history": [
        {"role": "user", "content": "Double a number."},
        {"role": "assistant", "content": "Which one?", "input": "", "output": "Which one?"},
        {"role": "user", "content": "Any."},
        {
            "role": "assistant",
            "content": "I WANT TO ANSWER: def double(x): ...",
            "input": "",
            "output": "I WANT",
        },
    ],
    "answer": "def double(x): ...",
    "reward": 1.0,
}


def opened(place: Path, *words: str) -> tuple[list[Given], Reader]:
    given = with_imports(parse_words(words), place / "imported")
    with Index(place / "i.sqlite", given) as index:
        index.extend()
    return given, Reader(place / "i.sqlite")


def shown(reader: Reader, row: Row) -> Dialogue:
    found = find_dialogue(reader, row.run, row.id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("content", "said", "success", "reference"),
    [
        (json.dumps(CHAT) + "\n", "It is lost.", False, "It is on its way."),
        (json.dumps([CHAT]), "It is lost.", False, "It is on its way."),
        (json.dumps(CHAT, indent=2), "It is lost.", False, "It is on its way."),
        (json.dumps(PUBLISHED) + "\n", "I WANT TO ANSWER: def double(x): ...", True, "return 2 * x"),
    ],
)
def test_a_file_of_another_format_is_shown_with_its_outcome_and_reference(
    tmp_path: Path, content: str, said: str, success: bool, reference: str
) -> None:
    (tmp_path / "log.json").write_text(content)
    given, reader = opened(tmp_path, str(tmp_path / "log.json"))
    [row] = reader.rows(Query())
    assert (row.run, row.success) == ("log", success)
    assert shown(reader, row).episode.turns[-1].said == said
    hidden = Secrets((), [each.root for each in given]).of(row.task)
    assert hidden is not None
    assert reference in hidden.reference


def test_annotations_stay_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(CHAT) + "\n")
    _, reader = opened(tmp_path, str(tmp_path / "log.jsonl"))
    [row] = reader.rows(Query())
    assert shown(reader, row).folder == tmp_path
    mark = Annotation(episode_id=row.id, task_id=row.task, turn=0, mark="helped")
    append_annotation(tmp_path, mark)
    assert shown(reader, row).annotations == (mark,)


def test_the_credit_of_a_log_is_shown_with_it(tmp_path: Path) -> None:
    log, credit = tmp_path / "log.jsonl", tmp_path / "credit.jsonl"
    log.write_text((json.dumps(CHAT) + "\n") * 2)
    last = read_logged(log).dialogues[-1].episode
    judged = TurnCredit(episode_id=last.id, task_id=last.task_id, turn=1, critic="c", advantage=-0.5)
    write_records(credit, [judged])
    _, reader = opened(tmp_path, str(log), str(credit))
    row, _ = reader.rows(Query(sort="hurt"))
    assert (row.id, row.worst_turn, row.worst_advantage) == (last.id, 1, -0.5)
    assert shown(reader, row).credit == (judged,)


@pytest.mark.parametrize(("name", "title"), [("ticket-10", "ticket-10"), (10, "10"), (None, "#0")])
def test_a_chat_is_called_as_its_log_calls_it(tmp_path: Path, name: object, title: str) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps({**CHAT, "id": name}) + "\n")
    _, reader = opened(tmp_path, str(tmp_path / "log.jsonl"))
    [row] = reader.rows(Query())
    assert row.title.endswith(title)
    assert shown(reader, row).title == row.title
    if row.called:
        assert reader.rows(Query(text=row.called)) == [row]


def test_a_log_that_has_changed_is_read_again(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(CHAT) + "\n")
    opened(tmp_path, str(log))
    log.write_text((json.dumps(CHAT) + "\n") * 2)
    _, reader = opened(tmp_path, str(log))
    assert [row.id[-2:] for row in reader.rows(Query())] == ["#0", "#1"]


def test_a_log_and_a_run_are_shown_together(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(CHAT) + "\n")
    run = write_run(tmp_path / "run", {"a": 1.0})
    _, reader = opened(tmp_path, f"mine={tmp_path / 'log.jsonl'}", str(run))
    assert {row.run for row in reader.rows(Query())} == {"mine", "run"}


@pytest.mark.parametrize("content", ["Buy milk.\n", "[]", '{"a": 1}\n'])
def test_a_file_that_has_no_dialogues_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "notes.txt").write_text(content)
    with pytest.raises(SweetError, match="expected"):
        opened(tmp_path, str(tmp_path / "notes.txt"))


@pytest.mark.parametrize("content", ["", '{"schema":"episode/1","task_i'])
def test_a_file_of_ours_that_has_just_begun_is_waited_for(tmp_path: Path, content: str) -> None:
    (tmp_path / "episodes.jsonl").write_text(content)
    _, reader = opened(tmp_path, str(tmp_path / "episodes.jsonl"))
    assert reader.rows(Query()) == []
