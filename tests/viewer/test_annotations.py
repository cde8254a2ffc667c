"""Marks of people survive crashes and several writers."""

import multiprocessing
import os
from pathlib import Path

import pytest

from sweetrl.errors import UsageError
from sweetrl.types import Annotation
from sweetrl.viewer.annotations import ANNOTATIONS, append_annotation, read_annotations


def mark(turn: int, word: str = "helped", author: str = "one", note: str = "") -> Annotation:
    return Annotation(episode_id="t#0", task_id="t", turn=turn, mark=word, author=author, note=note)  # type: ignore[arg-type]


def test_the_last_mark_of_an_author_on_a_turn_counts(tmp_path: Path) -> None:
    for each in (mark(0), mark(0, "hurt"), mark(0, "helped", "two"), mark(1), mark(1, "none")):
        append_annotation(tmp_path, each)
    assert read_annotations(tmp_path / ANNOTATIONS) == [mark(0, "hurt"), mark(0, "helped", "two")]


def test_a_torn_line_costs_that_line_alone(tmp_path: Path) -> None:
    append_annotation(tmp_path, mark(0))
    path = tmp_path / ANNOTATIONS
    path.write_bytes(path.read_bytes() + b'{"schema":"annotation/1","episode_')
    append_annotation(tmp_path, mark(1))
    assert read_annotations(path) == [mark(0), mark(1)]


def _write_many(folder: Path, author: str) -> None:
    for turn in range(100):
        append_annotation(folder, mark(turn, author=author, note="x" * 1500))


def test_several_processes_write_whole_lines(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(tmp_path, name)) for name in ("one", "two")]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert len(read_annotations(tmp_path / ANNOTATIONS)) == 200


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be written"):
        append_annotation(tmp_path, mark(0))


def test_a_lost_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        append_annotation(tmp_path / "gone", mark(0))
