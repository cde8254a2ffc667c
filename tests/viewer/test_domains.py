"""Domains that the viewer knows nothing of are shown by what their `Domain` says."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sweetrl
from conftest import CHECKOUT
from report.reading import read
from report.samples import episode
from sweetrl.domains import registry
from sweetrl.experiments.stages.rollout import open_episodes
from sweetrl.viewer.dialogues import find_dialogue
from sweetrl.viewer.imports import with_imports
from sweetrl.viewer.pages.dialogue import Around, dialogue_page
from sweetrl.viewer.queries import Query
from sweetrl.viewer.secrets import Secrets
from sweetrl.viewer.sources import parse_words
from viewer.stored_runs import indexed, write_records


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[sweetrl.Task]:
    monkeypatch.syspath_prepend(CHECKOUT / "examples/sql_domain/src")
    sweetrl.use_domain("sweetrl_sql:SQL")
    yield sweetrl.load_tasks("mini-sql:test:1")[0]
    registry.forget()


def test_a_dialogue_of_another_domain_is_shown_with_its_secret(task: sweetrl.Task, tmp_path: Path) -> None:
    answer = "SELECT COUNT(*) FROM nowhere"
    held = msgspec.structs.replace(episode(task.id), request=task.request, answer=answer)
    write_records(tmp_path / "run" / "episodes.jsonl", [held])
    write_records(tmp_path / "run" / "tasks.jsonl", [task])
    found = find_dialogue(indexed(tmp_path / "run"), "run", held.id)
    hidden = Secrets((), [tmp_path / "run"]).of(task.id)
    assert found is not None
    assert hidden is not None
    shown = dialogue_page(found, hidden, Around("/", "/", show_hidden=True))
    assert f"Difference to the {hidden.domain.labels.reference}" in shown
    assert '<span class="code-keyword">SELECT</span>' in shown
    assert hidden.parts[0].title.lower() in shown.lower()
    secret_word = hidden.reference.split()[-1].rstrip(";")
    assert secret_word not in dialogue_page(found, None, Around("/", "/")).replace(task.request, "")


def test_what_was_hidden_in_a_plain_run_is_found_by_its_card(tmp_path: Path) -> None:
    source = "mini-backend:test:2"
    [first, _] = tasks = sweetrl.load_tasks(source)
    held = [msgspec.structs.replace(episode(each.id), request=each.request) for each in tasks]
    with open_episodes(tmp_path / "run", "rollout", {"seed": 0}, source) as log:
        for each in held:
            log.append(each.id, each)
    with open_episodes(tmp_path / "run", "rollout", {"seed": 0}, f"elsewhere/{source}"):
        pass  # the same tasks may come from elsewhere
    reader = indexed(tmp_path)
    hidden = Secrets((), [tmp_path], reader.folders).of(first.id)
    assert hidden is not None
    assert hidden.task == first


def test_a_chat_without_a_reference_is_not_compared_with_one(tmp_path: Path) -> None:
    chat = {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}],
        "outcome": 1,
    }
    (tmp_path / "chats.jsonl").write_text(json.dumps(chat) + "\n")
    given = with_imports(parse_words([str(tmp_path / "chats.jsonl")]), tmp_path / "imported")
    reader = indexed(given[0].path, f"chats={given[0].path}")
    [row] = reader.rows(Query())
    found = find_dialogue(reader, row.run, row.id)
    hidden = Secrets((), [given[0].root]).of(row.task)
    assert found is not None
    assert hidden is not None
    shown = read(dialogue_page(found, hidden, Around("/", "/", show_hidden=True)))
    assert "Nothing: this task has no reference." in shown.one(class_="hidden-parts").text
    assert "Difference" not in shown.text
