"""What would go to the hub, what stays at home, and what is said of it there."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import msgspec
import pytest
from huggingface_hub import parse_eval_result_entries

from sweetrl.errors import DataError, UsageError
from sweetrl.experiments.publishing import CARD, RESULTS, plan_publication, publish
from sweetrl.types import Metric, RunMetrics


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "checkpoints" / "step-10").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "sweetrl.json", CARD, "keys.env", "notes.txt"):
        (folder / name).write_text("{}")
    (folder / "checkpoints" / "step-10" / "optimizer.json").write_text("{}")
    return folder


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "episodes.jsonl"
    path.write_text('{"schema": "episode/1"}\n{"schema": "episode/1"}\n')
    return path


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    success = Metric(name="success", value=0.5, low=0.4, high=0.6, count=100)
    metrics = RunMetrics(tasks=100, dialogues=100, failed=0, unscored=0, metrics={"success": success})
    (tmp_path / "metrics.json").write_bytes(msgspec.json.encode(metrics))
    return tmp_path


def test_checkpoints_and_unknown_files_of_a_model_stay_at_home(model: Path) -> None:
    planned = plan_publication(model, "me/model")
    assert (planned.kind, set(planned.files)) == (
        "model",
        {"config.json", "model.safetensors", "sweetrl.json", CARD},
    )


def test_results_are_told_in_the_format_of_the_hub(model: Path, scored: Path) -> None:
    planned = plan_publication(model, "me/model", results=scored, benchmark="someone/bench")
    told = planned.files[RESULTS]
    assert isinstance(told, bytes)
    [entry] = parse_eval_result_entries(json.loads(told))
    assert (entry.dataset_id, entry.value) == ("someone/bench", 50.0)
    assert entry.notes == "100 dialogues, 95 % interval 40.0 to 60.0"


def test_records_get_a_card_that_counts_them(records: Path) -> None:
    planned = plan_publication(records, "me/data", licence="cc-by-4.0")
    card = planned.files[CARD]
    assert isinstance(card, bytes)
    assert "| `episodes.jsonl` | 2 | `episode/1` | not known: it has no run card |" in card.decode()
    assert "license: cc-by-4.0" in card.decode()


@pytest.mark.parametrize("repository", ["data", "a/b/c", ""])
def test_a_repository_has_an_owner_and_a_name(records: Path, repository: str) -> None:
    with pytest.raises(UsageError, match="write OWNER/NAME"):
        plan_publication(records, repository)


def test_results_need_the_benchmark_that_they_are_on(model: Path, scored: Path) -> None:
    with pytest.raises(UsageError, match="belong together"):
        plan_publication(model, "me/model", results=scored)


def test_a_folder_with_nothing_to_publish_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither a model nor record files"):
        plan_publication(tmp_path, "me/data")


class FakeApi:
    """Takes down what the hub is asked."""

    asked: list[tuple[str, dict[str, Any]]]

    def __init__(self, **_: Any) -> None:
        pass

    def create_repo(self, _: str, **options: Any) -> None:
        self.asked.append(("create_repo", options))

    def create_commit(self, _: str, additions: list[Any], **__: Any) -> SimpleNamespace:
        names = {each.path_in_repo: each.path_or_fileobj for each in additions}
        self.asked.append(("create_commit", names))
        return SimpleNamespace(commit_url="https://hub/commit")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    FakeApi.asked = []
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeApi)
    return FakeApi.asked


def test_all_files_are_sent_in_one_commit(records: Path, asked: list[tuple[str, dict[str, Any]]]) -> None:
    planned = plan_publication(records, "me/data")
    assert publish(planned, private=True) == "https://hub/commit"
    [(_, options), (_, sent)] = asked
    assert options == {"repo_type": "dataset", "private": True, "exist_ok": True}
    assert sent == {"episodes.jsonl": str(records), CARD: planned.files[CARD]}


def test_the_command_sends_nothing_unless_told(sweetrl, records, asked) -> None:
    planned = sweetrl("publish", str(records), "me/data")
    before = list(asked)
    sent = sweetrl("publish", str(records), "me/data", "--yes", "--json")
    assert (planned.code, before, "nothing was sent" in planned.err) == (0, [], True)
    assert (sent.code, len(asked), json.loads(sent.out)["sent"]) == (0, 2, "https://hub/commit")
