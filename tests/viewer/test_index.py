"""The index follows the files: as they grow, when they are torn, rewritten, or the index itself is lost."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from report.samples import credit, episode, verdict
from sweetrl.viewer.index import Index
from sweetrl.viewer.queries import Query, Reader
from sweetrl.viewer.sources import parse_words
from viewer.stored_runs import indexed, said, write_records, write_run


def ids(reader: Reader, query: Query | None = None) -> list[str]:
    return [row.id for row in reader.rows(query or Query())]


def test_dialogues_are_indexed_with_their_verdicts_and_worst_turns(tmp_path: Path) -> None:
    reader = indexed(write_run(tmp_path / "run", {"a": 1.0, "b": 0.3, "c": None}))
    rows = {row.task: row for row in reader.rows(Query())}
    assert [(row.success, row.reward) for row in rows.values()] == [(True, 1.0), (False, 0.3), (None, None)]
    assert (rows["b"].worst_turn, rows["b"].worst_advantage) == (1, -0.6)
    assert rows["c"].defects == ("unscored",)


def test_a_growing_file_is_read_on_from_where_it_was_left(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    with Index(tmp_path / "i.sqlite", parse_words([str(folder)])) as index:
        index.extend()
        write_records(folder / "episodes.jsonl", [episode("b")], "ab")
        assert index.extend()
        assert not index.extend()
    assert ids(Reader(tmp_path / "i.sqlite")) == ["a#0", "b#0"]


def test_a_file_rewritten_at_its_old_length_is_a_change(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 0.2, "b": 0.2})
    with Index(tmp_path / "i.sqlite", parse_words([str(folder)])) as index:
        index.extend()
        reader = Reader(index.path)
        before, [run] = reader.version(), reader.runs()
        text = (folder / "verdicts.jsonl").read_bytes()
        (folder / "new").write_bytes(text.replace(b'"success":false', b'"success":true '))
        (folder / "new").rename(folder / "verdicts.jsonl")
        assert (folder / "verdicts.jsonl").stat().st_size == len(text)
        index.extend()
        assert reader.version() != before
        assert (run.succeeded, reader.runs()[0].succeeded) == (0, 2)


def test_a_half_written_last_line_waits_until_it_is_whole(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    line = msgspec.json.encode(episode("b")) + b"\n"
    with (
        Index(tmp_path / "i.sqlite", parse_words([str(folder)])) as index,
        (folder / "episodes.jsonl").open("ab", buffering=0) as file,
    ):
        for start, stop in ((0, 1), (1, 40), (40, len(line) - 2)):
            file.write(line[start:stop])
            index.extend()
            assert ids(Reader(index.path)) == ["a#0"]
        file.write(line[-2:])
        index.extend()
        assert ids(Reader(index.path)) == ["a#0", "b#0"]
        assert not Reader(index.path).unreadable_lines()


def test_a_whole_last_line_needs_no_newline(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    path = folder / "episodes.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    reader = indexed(folder)
    path.write_bytes(path.read_bytes() + b"\n" + msgspec.json.encode(episode("b")) + b"\n")
    assert ids(reader) == ["a#0"]
    assert ids(indexed(folder)) == ["a#0", "b#0"]


def test_a_line_that_is_no_record_is_counted_and_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    path = folder / "episodes.jsonl"
    broken = b'{"broken": \n\xff\xfe\n[]\n'
    path.write_bytes(path.read_bytes() + broken + msgspec.json.encode(episode("b")) + b"\n")
    reader = indexed(folder)
    assert ids(reader) == ["a#0", "b#0"]
    assert dict(reader.unreadable_lines()) == {str(path): 3}


def test_a_rewritten_file_is_read_again(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0, "b": 1.0})
    indexed(folder)
    write_records(folder / "new", [said(episode("b"), "Is it magenta?"), episode("c")])
    (folder / "new").rename(folder / "episodes.jsonl")
    reader = indexed(folder)
    assert ids(reader) == ["b#0", "c#0"]
    assert ids(reader, Query(text="magenta")) == ["b#0"]


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    indexed(folder)
    (folder / "verdicts.jsonl").unlink()
    assert [row.reward for row in indexed(folder).rows(Query())] == [None]


def test_a_deleted_index_is_built_again(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    with Index(tmp_path / "i.sqlite", parse_words([str(folder)])) as index:
        index.extend()
        for path in tmp_path.glob("i.sqlite*"):
            path.unlink()
        index.extend()
        assert ids(Reader(index.path)) == ["a#0"]


def test_a_damaged_index_is_built_again(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    (tmp_path / "run.sqlite").write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    assert ids(indexed(folder)) == ["a#0"]


def test_a_second_process_reads_and_takes_over_when_the_first_is_killed(tmp_path: Path) -> None:
    folder, path = write_run(tmp_path / "run", {"a": 1.0}), tmp_path / "i.sqlite"
    script = f"""
        import time
        from pathlib import Path
        from sweetrl.viewer.index import Index
        from sweetrl.viewer.sources import parse_words
        index = Index(Path({str(path)!r}), parse_words([{str(folder)!r}]))
        index.extend()
        print("ready", flush=True)
        time.sleep(600)
    """
    first = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    with first.stdout, Index(path, parse_words([str(folder)])) as second:
        assert first.stdout.readline() == "ready\n"
        write_records(folder / "episodes.jsonl", [episode("b")], "ab")
        assert not second.extend()
        assert ids(Reader(path)) == ["a#0"]
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert second.extend()
        assert ids(Reader(path)) == ["a#0", "b#0"]


def test_credit_that_arrives_later_changes_the_worst_turn(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    indexed(folder)
    write_records(folder / "credit.jsonl", credit("a", [0.4, -0.5, -3.0])[2:], "ab")
    [row] = indexed(folder).rows(Query(sort="hurt"))
    assert (row.worst_turn, row.worst_advantage) == (2, -3.0)


@pytest.mark.parametrize("rewards", [(None, 0.3), (1.0, None), (1.0, 0.3), (None, None)])
def test_of_several_verdicts_the_last_one_counts(
    tmp_path: Path, rewards: tuple[float | None, float | None]
) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    write_records(folder / "verdicts.jsonl", [verdict("a", reward) for reward in rewards])
    assert [row.reward for row in indexed(folder).rows(Query())] == [rewards[1]]


def test_a_verdict_is_found_by_run_and_id(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one", {"a": 1.0})
    write_run(tmp_path / "runs" / "two", {"a": 0.0})
    rows = indexed(tmp_path / "runs").rows(Query())
    assert {row.run: row.reward for row in rows} == {"one": 1.0, "two": 0.0}
