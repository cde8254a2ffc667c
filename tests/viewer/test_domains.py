"""Domains that the viewer knows nothing of are shown by what their `Domain` says."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sweetrl
from conftest import CHECKOUT
from report.samples import episode
from sweetrl.domains import registry
from sweetrl.domains.sources import parse_task
from sweetrl.experiments.stages.rollout import open_episodes
from sweetrl.viewer.dialogues import find_dialogue
from sweetrl.viewer.pages.dialogue import Around, dialogue_page
from sweetrl.viewer.secrets import Secrets
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


def test_a_chat_without_a_reference_has_no_empty_box_for_it(tmp_path: Path) -> None:
    chat = parse_task({"id": "chat-1", "domain": "chat", "request": "Hello?", "secret": {}})
    held = msgspec.structs.replace(episode(chat.id), request=chat.request, answer="Good day.")
    write_records(tmp_path / "run" / "episodes.jsonl", [held])
    write_records(tmp_path / "run" / "tasks.jsonl", [chat])
    found = find_dialogue(indexed(tmp_path / "run"), "run", held.id)
    hidden = Secrets((), [tmp_path / "run"]).of(chat.id)
    assert found is not None
    assert hidden is not None
    shown = dialogue_page(found, hidden, Around("/", "/", show_hidden=True))
    assert "Difference to the" not in shown
    assert f"This task has no {hidden.domain.labels.reference}." in shown
