"""Which files belong together, and what runs are called."""

from pathlib import Path

import pytest

from report.samples import credit, episode, verdict
from sweetrl.errors import UsageError
from sweetrl.viewer.sources import find_sources, parse_words
from viewer.stored_runs import write_candidates, write_records, write_run


def found(*words: str) -> dict[str, tuple[str, str]]:
    given = parse_words(words)
    return {source.path.name: (source.kind, source.run) for source in find_sources(given)}


def test_files_of_a_folder_are_told_apart_by_their_schema(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    write_candidates(folder, "a#0")
    (folder / "log.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    kinds = {name: kind for name, (kind, _) in found(str(folder)).items()}
    assert kinds == {
        "episodes.jsonl": "episode",
        "verdicts.jsonl": "verdict",
        "credit.jsonl": "credit",
        "ranked.jsonl": "candidates",
        "values.jsonl": "values",
    }


def test_a_file_belongs_to_the_nearest_dialogues_above_it(tmp_path: Path) -> None:
    write_run(tmp_path / "seed-0", {"a": 1.0})
    write_candidates(tmp_path / "seed-0" / "ranked", "a#0")
    write_run(tmp_path / "seed-0" / "evaluations" / "sweet", {"b": 1.0})
    runs = {(source.path.parent.name, source.run) for source in find_sources(parse_words([str(tmp_path)]))}
    assert runs == {("seed-0", "seed-0"), ("ranked", "seed-0"), ("sweet", "seed-0/sweet")}


def test_files_in_different_folders_can_be_given_by_name(tmp_path: Path) -> None:
    write_records(tmp_path / "one" / "held.jsonl", [episode("a")])
    write_records(tmp_path / "two" / "scored.jsonl", [verdict("a", 1.0)])
    runs = found(str(tmp_path / "one" / "held.jsonl"), str(tmp_path / "two" / "scored.jsonl"))
    assert runs["scored.jsonl"][1] == runs["held.jsonl"][1]


def test_a_file_of_no_folder_of_dialogues_belongs_to_those_named_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        write_records(tmp_path / name / f"{name}.jsonl", [episode(name)])
        write_records(tmp_path / "apart" / f"of-{name}.jsonl", credit(name, [0.5]))
    words = [
        str(tmp_path / each) for each in ("a/a.jsonl", "apart/of-a.jsonl", "b/b.jsonl", "apart/of-b.jsonl")
    ]
    runs = found(*words)
    assert runs["of-a.jsonl"][1] == runs["a.jsonl"][1] == "a/a"
    assert runs["of-b.jsonl"][1] == runs["b.jsonl"][1] == "b/b"
    assert "of-a.jsonl" not in found(words[1], words[0], words[2])
    assert "of-a.jsonl: left out; name it after the dialogues that it is about" in caplog.text


def test_of_two_files_of_verdicts_the_usual_one_counts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    write_records(folder / "other.jsonl", [verdict("a", 0.0)])
    assert "other.jsonl" not in found(str(folder))


def test_shards_are_shown_until_they_are_merged(tmp_path: Path) -> None:
    write_records(tmp_path / "run" / "episodes.1-of-2.jsonl", [episode("a")])
    assert list(found(str(tmp_path))) == ["episodes.1-of-2.jsonl"]
    write_records(tmp_path / "run" / "episodes.jsonl", [episode("a"), episode("b")])
    assert list(found(str(tmp_path))) == ["episodes.jsonl"]


def test_labels_and_clashing_names_keep_runs_apart(tmp_path: Path) -> None:
    one, two = write_run(tmp_path / "x" / "run", {"a": 1.0}), write_run(tmp_path / "y" / "run", {"a": 1.0})
    labelled = {source.run for source in find_sources(parse_words([f"first={one}", str(two)]))}
    assert labelled == {"first", "run"}
    assert len({source.run for source in find_sources(parse_words([str(one), str(two)]))}) == 2


def test_a_path_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no such folder or file"):
        parse_words(["nowhere"])
