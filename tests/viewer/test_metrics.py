"""The page of metrics: what runs are called in its charts, and whose training it shows."""

from pathlib import Path

import pytest

from sweetrl.viewer.metrics import Metrics, short_titles
from sweetrl.viewer.sources import parse_words
from viewer.stored_runs import indexed, write_run, write_training


@pytest.mark.parametrize(
    ("titles", "short"),
    [
        (["study/seed-0", "study/seed-0/base", "study/seed-0/dpo"], ["seed-0", "base", "dpo"]),
        (["study/seed-0/base", "study/seed-1/base"], ["seed-0/base", "seed-1/base"]),
        (["a/run", "run"], ["a/run", "run"]),
        (["run"], ["run"]),
    ],
)
def test_titles_are_as_short_as_they_can_be_told_apart(titles: list[str], short: list[str]) -> None:
    assert list(short_titles(titles).values()) == short


def test_training_beside_a_file_that_was_named_is_not_shown(tmp_path: Path) -> None:
    write_training(tmp_path / "somebody-elses", 3)
    folder = write_run(tmp_path / "run", {"a": 1.0})
    write_training(folder / "policy", 3)
    (tmp_path / "alone.jsonl").write_bytes((folder / "episodes.jsonl").read_bytes())
    for word, shown in ((tmp_path / "alone.jsonl", []), (folder, ["run/policy"])):
        contents = Metrics(indexed(folder, str(word)), parse_words([str(word)])).contents()
        assert [each.label for each in contents.trainings] == shown
