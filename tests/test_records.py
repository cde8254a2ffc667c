"""Record files: what is read, what is refused, and what a crash leaves behind."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sweetrl.errors import ConfigError, DataError, UsageError
from sweetrl.records import (
    IdSet,
    LineDecoder,
    RecordLog,
    card_path,
    decode_json,
    open_log,
    read_card,
    read_lines,
    read_records,
    without_surrogates,
    write_atomically,
)


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    size: int


class Item(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: Literal["item/1"] = "item/1"
    id: str
    text: str = ""
    parts: tuple[Part, ...] = ()
    failed: bool = False


def open_items(path: Path, **options: Any) -> RecordLog[Item]:
    settings: dict[str, Any] = {"command": "score", "config": {"scorer": "backend/1"}} | options
    return open_log(
        path, Item, identity=lambda item: item.id, settled=lambda item: not item.failed, **settings
    )


def write_items(path: Path, *items: Item) -> None:
    with open_items(path) as log:
        for item in items:
            log.append(item.id, item)
        log.finish()


def ids_in(path: Path) -> list[str]:
    return [item.id for item in read_records(path, Item)]


items = st.builds(
    Item,
    id=st.text(min_size=1),
    text=st.text(),
    parts=st.lists(st.builds(Part, size=st.integers(-(2**63), 2**64 - 1)), max_size=3).map(tuple),
)


# ---------------------------------------------------------------- reading


@given(st.lists(items, min_size=1, max_size=8, unique_by=lambda item: item.id))
def test_records_come_back_as_they_were_written(written: list[Item]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "items.jsonl")
        write_items(path, *written)
        assert list(read_records(path, Item)) == written
        assert path.read_bytes().count(b"\n") == len(written)


def test_blank_lines_and_a_byte_order_mark_are_skipped_but_counted(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "a"}\n\n \t\r\n{"id": "b"}\r\n\n')
    assert ids_in(path) == ["a", "b"]
    assert [number for number, _ in read_lines(path)] == [1, 4]


def test_the_last_line_needs_no_newline_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "a"}\n{"id": "b"}')
    assert ids_in(path) == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "not valid JSON: Input data was truncated"),
        (b'{"id": "a"} {"id": "b"}', "not valid JSON"),
        (b"\x00\xff\x80junk", "not valid JSON"),
        (b'{"id": "\xff"}', "not valid JSON: 'utf-8' codec"),
        (b"3", "Expected `object`, got `int`"),
        (b"{}", "missing required field `id`"),
        (b'{"id": 3}', "Expected `str`, got `int` - at `$.id`"),
        (b'{"id": "a", "parts": [{"size": 1}, {"size": "x"}]}', "at `$.parts[1].size`"),
        (b'{"id": "a", "parts": [{"size": 1, "colour": 2}]}', "unknown field `colour` - at `$.parts[0]`"),
        (
            b'{"schema": "item/2", "id": "a"}',
            "written by another version of sweetrl: schema item/2, this one reads item/1",
        ),
        (
            b'{"schema": "verdict/1", "reward": 1}',
            "a record of schema verdict/1, where item/1 was expected; is it the right file?",
        ),
    ],
)
def test_a_bad_line_is_named_by_file_line_and_field(tmp_path: Path, line: bytes, complaint: str) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "ok"}\n\n' + line + b'\n{"id": "ok too"}\n')
    records = read_records(path, Item)
    assert next(records).id == "ok"
    with pytest.raises(DataError) as caught:
        next(records)
    message = str(caught.value)
    assert message.startswith(f"{path}:3: ")
    assert complaint in message
    assert "\n" not in message


def test_a_cut_off_file_is_suspected_as_such(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "a"}\n{"id": ')
    with pytest.raises(DataError, match=r"items.jsonl:2: .*was the file cut off"):
        list(read_records(path, Item))


def test_a_line_nested_too_deeply_is_a_data_error() -> None:
    with pytest.raises(DataError, match=r"tasks.jsonl:7: not valid JSON"):
        LineDecoder(dict[str, Any], Path("tasks.jsonl"))(7, b'{"extra": ' + b"[" * 100_000)


@given(st.binary(max_size=200))
def test_junk_is_a_data_error_or_a_record_but_never_a_crash(junk: bytes) -> None:
    with contextlib.suppress(DataError):
        LineDecoder(Item, Path("items.jsonl"))(1, junk)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_a_file_without_records_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match="has no records"):
        list(read_records(path, Item))


def test_a_missing_file_and_a_folder_are_data_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.jsonl: no such file"):
        list(read_records(tmp_path / "none.jsonl", Item))
    with pytest.raises(DataError, match="is a folder where a file was expected; name a file in it"):
        list(read_records(tmp_path, Item))


def test_a_line_without_end_is_not_taken_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweetrl.records.reading.MAX_LINE_BYTES", 1000)
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "a"}\n' + b"x" * 5000)
    with pytest.raises(DataError, match=r"items.jsonl:2: line too long"):
        list(read_lines(path))


# ---------------------------------------------------------------- ids


@given(st.lists(st.text(st.characters())))
def test_an_id_set_behaves_as_a_set(texts: list[str]) -> None:
    ids, model = IdSet(), set[str]()
    for text in texts:
        assert (text in ids) == (text in model)
        assert ids.add(text) == (text not in model)
        model.add(text)
        assert text in ids
        assert len(ids) == len(model)


def test_a_large_id_set_knows_its_members_and_no_others() -> None:
    ids = IdSet()
    assert all(ids.add(f"task-{number}") for number in range(20_000))
    assert not any(ids.add(f"task-{number}") for number in range(20_000))
    assert not any(f"other-{number}" in ids for number in range(20_000))
    assert len(ids) == 20_000


# ---------------------------------------------------------------- run cards


def test_the_card_is_there_before_the_first_record_and_completed_after_the_last(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    with open_items(path, config={"seeds": (1, 2), "limit": None}) as log:
        early = read_card(path)
        log.append("a", Item(id="a"))
        log.finish()
    assert (early.command, early.config) == ("score", {"seeds": [1, 2], "limit": None})
    assert (early.finished, early.records, early.sha256) == (None, None, None)
    late = read_card(path)
    assert late.records == 1
    assert late.finished is not None
    assert late.started == early.started
    digest = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout
    assert late.sha256 == digest.split()[0]


def test_nothing_changes_when_a_finished_run_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    monkeypatch.setattr("sweetrl.records.log.now", lambda: "a later time")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    write_items(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_card_is_incomplete_again_as_soon_as_records_are_added(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    with open_items(path) as log:
        log.append("b", Item(id="b"))
    assert read_card(path).finished is None
    write_items(path)
    assert read_card(path).records == 2


@pytest.mark.parametrize(
    ("name", "card"),
    [
        ("verdicts.jsonl", "verdicts.run.json"),
        ("verdicts.v2.jsonl", "verdicts.v2.run.json"),
        ("verdicts.txt", "verdicts.txt.run.json"),
    ],
)
def test_each_record_file_has_a_card_of_its_own(name: str, card: str) -> None:
    assert card_path(Path("runs", name)) == Path("runs", card)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"schema": "run/2"}', b"\xff", b"[1]"])
def test_a_broken_card_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "items.jsonl"
    card_path(path).write_bytes(content)
    with pytest.raises(DataError, match=r"items.run.json: not a run card"):
        open_items(path)
    assert card_path(path).read_bytes() == content
    assert not path.exists()


def test_a_missing_card_is_a_data_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"items.run.json: no such file"):
        read_card(tmp_path / "items.jsonl")


def test_a_failed_atomic_write_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    write_atomically(path, b"old")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(UsageError, match="folder: is a folder"):
        write_atomically(folder, b"new")
    with pytest.raises(UsageError, match="cannot be written"):
        write_atomically(tmp_path / "missing" / "metrics.json", b"new")
    assert path.read_bytes() == b"old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "metrics.json"]


# ---------------------------------------------------------------- resuming


def test_a_second_record_for_an_id_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    with open_items(path) as log:
        log.append("a", Item(id="a"))
        with pytest.raises(DataError, match="a second record for a"):
            log.append("a", Item(id="a", text="again"))
    assert list(read_records(path, Item)) == [Item(id="a")]


def test_a_file_that_holds_an_id_twice_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"), Item(id="b"))
    with path.open("ab") as file:
        file.write(b'{"schema":"item/1","id":"a"}\n')
    with pytest.raises(DataError, match=r"items.jsonl:3: a second record for a"):
        open_items(path)


def test_a_resumed_log_knows_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    with open_items(path) as log:
        assert log.has("a")
        assert not log.has("b")
        assert len(log) == 1
        assert log.repaired is None
        log.append("b", Item(id="b"))
        assert log.has("b")
    assert ids_in(path) == ["a", "b"]


def test_a_record_made_from_another_input_is_a_conflict(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a", text="first answer"))
    with open_items(path, mark=lambda item: item.text) as log:
        assert log.has("a", "first answer")
        with pytest.raises(DataError, match="a is there already, made from another input"):
            log.has("a", "second answer")
        assert not log.has("b", "second answer")


@given(st.data())
def test_after_a_cut_at_any_byte_exactly_the_whole_records_are_kept(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "items.jsonl")
        written = data.draw(st.lists(items, min_size=1, max_size=4, unique_by=lambda item: item.id))
        write_items(path, *written)
        content = path.read_bytes()
        cut = data.draw(st.integers(0, len(content)))
        os.truncate(path, cut)
        whole = content[:cut].count(b"\n")
        torn = cut - (content[:cut].rfind(b"\n") + 1)
        with open_items(path) as log:
            assert [log.has(item.id) for item in written] == [n < whole for n in range(len(written))]
            assert log.repaired == (f"removed a torn last line ({torn} bytes)" if torn else None)
            for item in written[whole:]:
                log.append(item.id, item)
        assert path.read_bytes() == content


def test_a_torn_line_longer_than_a_block_is_removed_whole(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    with path.open("ab") as file:
        file.write(b'{"id": "' + b"x" * 200_000)
    with open_items(path) as log:
        assert log.repaired == "removed a torn last line (200008 bytes)"
    assert ids_in(path) == ["a"]
    assert read_card(path).finished is None


def test_a_broken_line_in_the_middle_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    with path.open("ab") as file:
        file.write(b'{"id": "b", "te\n{"id": "c"}\n{"id": "torn')
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"items.jsonl:2: not valid JSON"):
        open_items(path)
    assert path.read_bytes() == before


def test_failed_records_are_done_again_and_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"), Item(id="b", failed=True), Item(id="c", failed=True), Item(id="d"))
    path.chmod(0o640)
    with open_items(path) as log:
        assert log.repaired == "doing 2 failed records again"
        assert [log.has(name) for name in "abcd"] == [True, False, False, True]
        assert read_card(path).finished is None
        log.append("b", Item(id="b", text="now"))
        log.append("c", Item(id="c", failed=True))
        log.finish()
    assert ids_in(path) == ["a", "d", "b", "c"]
    assert read_card(path).records == 4
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in tmp_path.iterdir()) == ["items.jsonl", "items.run.json"]


def test_the_rewritten_file_is_locked_too(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a", failed=True))
    with open_items(path), pytest.raises(UsageError, match="another process is writing it"):
        open_items(path)


def test_half_a_surrogate_pair_does_not_end_a_run(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(
        path, Item(id="a", text="x\ud83dy", parts=(Part(1),)), Item(id="b", text="\ud83d\ude00\udc00")
    )
    assert list(read_records(path, Item)) == [
        Item(id="a", text="x\ufffdy", parts=(Part(1),)),
        Item(id="b", text="\U0001f600\ufffd"),
    ]


def test_half_a_surrogate_pair_in_a_file_is_read_as_what_a_writer_would_put_there(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(
        '{"id": "a", "text": "x\\ud83dy"}\n{"id": "b", "text": "\\ud83d\\ude00\\\\ud800\\uDC00"}\n'
    )
    assert list(read_records(path, Item)) == [
        Item(id="a", text="x\ufffdy"),
        Item(id="b", text="\U0001f600\\ud800\ufffd"),
    ]


@given(st.text(st.sampled_from('\ud800\udfff\ud83d\ude00\\"u/d8a\n') | st.characters(exclude_categories=())))
def test_any_text_that_json_can_spell_is_read(text: str) -> None:
    decoder = msgspec.json.Decoder(dict[str, str])
    assert decode_json(decoder, json.dumps({text: text}).encode()) == {
        without_surrogates(text): without_surrogates(text)
    }


@pytest.mark.parametrize(
    "line", [b'{"a": "\\ud800"', b'{"a": "\\uzzzz"}', b'{"a": "\xed\xa0\x80"}', b'{"a": 1}']
)
def test_what_is_broken_otherwise_is_refused(line: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        decode_json(msgspec.json.Decoder(dict[str, str]), line)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"command": "rollout"}, "items.jsonl: belongs to a run of `sweetrl score`; choose another output"),
        (
            {"config": {"scorer": "backend/2"}},
            "belongs to another run: scorer was 'backend/1', now 'backend/2'; choose another output",
        ),
        (
            {"config": {"scorer": "backend/2", "mode": "official"}},
            "scorer was 'backend/1', now 'backend/2' (and 1 more)",
        ),
        ({"config": {}}, "scorer was 'backend/1', now None"),
    ],
)
def test_runs_are_not_mixed(tmp_path: Path, options: dict[str, Any], complaint: str) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(ConfigError) as caught:
        open_items(path, **options)
    assert complaint in str(caught.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_config_is_the_same_if_it_is_the_same_in_json(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    with open_items(path, config={"seeds": (1, 2)}) as log:
        log.append("a", Item(id="a"))
    for same in ({"seeds": (1, 2)}, {"seeds": [1, 2]}, {"seeds": [1, 2], "new option": None}):
        with open_items(path, config=same) as log:
            assert log.has("a")


def test_a_file_without_records_belongs_to_nobody(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    write_items(path, Item(id="a"))
    path.unlink()
    with open_items(path, config={"scorer": "backend/2"}) as log:
        assert len(log) == 0
    card = read_card(path)
    assert (card.config, card.finished) == ({"scorer": "backend/2"}, None)


def test_a_foreign_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"id": "mine"}\nno newline')
    with pytest.raises(UsageError, match=r"exists and was not written by `sweetrl score`"):
        open_items(path)
    assert path.read_bytes() == b'{"id": "mine"}\nno newline'
    assert not card_path(path).exists()


def test_impossible_outputs_are_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file.jsonl"
    file.touch()
    for path, complaint in [
        (tmp_path, "is a folder; name a file"),
        (Path(os.devnull), "is not a regular file; name a file"),
        (tmp_path / "none" / "items.jsonl", f"there is no folder {tmp_path / 'none'}; make it first"),
        (file / "items.jsonl", f"there is no folder {file}; make it first"),
        (tmp_path / "items.run.json", "names ending in .run.json are taken by run cards"),
        (tmp_path / ("x" * 300), "cannot be written: File name too long"),
    ]:
        with pytest.raises(UsageError) as caught:
            open_items(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert complaint in str(caught.value)
        assert "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.jsonl"]


def test_two_logs_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    with open_items(path) as log:
        with pytest.raises(UsageError, match="another process is writing it"):
            open_items(path)
        log.append("a", Item(id="a"))
    write_items(path, Item(id="b"))
    assert ids_in(path) == ["a", "b"]


# ---------------------------------------------------------------- other processes

WRITER = """
import os, resource, sys
from pathlib import Path
from msgspec import Struct
from sweetrl.errors import SweetError
from sweetrl.records import open_log

class Item(Struct, frozen=True):
    id: str
    text: str

def write(path, count, size):
    with open_log(Path(path), Item, command="test", config={}, identity=lambda item: item.id) as log:
        print("open", flush=True)
        for number in range(count):
            if not log.has(str(number)):
                log.append(str(number), Item(str(number), "x" * (size * (number % 7))))
        log.finish()

def report(path, count, size):
    try:
        write(path, count, size)
    except SweetError as error:
        print(f"{type(error).__name__}: {error}")
        sys.exit(2)
"""


class Stored(Struct, frozen=True):
    id: str
    text: str


def python(script: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WRITER + script], cwd=cwd, capture_output=True, text=True, timeout=60
    )


@contextlib.contextmanager
def writer(script: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has opened its log."""
    command = [sys.executable, "-c", WRITER + script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


def test_a_lock_holds_against_another_process_and_dies_with_it(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    hold = f"""
with open_log(Path({str(path)!r}), Item, command="score", config={{}}, identity=lambda item: item.id):
    print("open", flush=True)
    sys.stdin.read()
"""
    with writer(hold) as process:
        with pytest.raises(UsageError, match="another process is writing it; wait for it"):
            open_items(path, config={})
        process.kill()
        process.wait()
        with open_items(path, config={}) as log:
            log.append("a", Item(id="a"))
    assert ids_in(path) == ["a"]


def test_twenty_kills_at_random_moments_lose_and_repeat_nothing(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    count, size = 600, 40_000
    moments = random.Random(20)
    done = 0
    for _ in range(20):
        with writer(f"write({str(path)!r}, {count}, {size})") as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            process.wait()
        whole = path.read_bytes().count(b"\n")
        assert whole >= done, "a record that was whole is gone"
        done = whole
    finished = python(f"write({str(path)!r}, {count}, {size})", cwd=tmp_path)
    assert (finished.returncode, finished.stderr) == (0, "")
    stored = list(read_records(path, Stored))
    assert stored == [Stored(str(n), "x" * (size * (n % 7))) for n in range(count)]
    assert read_card(path).records == count


def assert_whole_records_remain(path: Path, at_least: int) -> int:
    """The file ends with a newline and its records are the first ones, in order."""
    stored = list(read_records(path, Stored))
    assert len(stored) >= at_least
    assert [record.id for record in stored] == [str(number) for number in range(len(stored))]
    assert path.read_bytes().endswith(b"\n")
    return len(stored)


def test_a_full_disk_is_one_line_and_leaves_whole_records(tmp_path: Path) -> None:
    limited = python(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); report('items.jsonl', 100, 1000)",
        cwd=tmp_path,
    )
    assert limited.returncode == 2, limited.stderr
    assert limited.stdout == (
        "open\nUsageError: items.jsonl: no space left; free some and rerun the same command to resume\n"
    )
    kept = assert_whole_records_remain(tmp_path / "items.jsonl", at_least=10)
    assert kept < 100
    resumed = python("report('items.jsonl', 100, 1000)", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert assert_whole_records_remain(tmp_path / "items.jsonl", at_least=100) == 100


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_really_full_disk_leaves_whole_records(tiny_disk: Path) -> None:
    full = python("report('items.jsonl', 100, 1000)", cwd=tiny_disk)
    assert full.returncode == 2, full.stderr
    assert "items.jsonl: no space left" in full.stdout
    assert_whole_records_remain(tiny_disk / "items.jsonl", at_least=10)


def test_a_disk_without_room_for_the_card_gets_no_file_either(tiny_disk: Path) -> None:
    filler = tiny_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    full = python("report('items.jsonl', 1, 1)", cwd=tiny_disk)
    assert full.returncode == 2, full.stderr
    assert full.stdout.startswith("UsageError: items.run.json: no space left")
    assert [entry.name for entry in tiny_disk.iterdir()] == ["filler"]


@pytest.mark.parametrize("existing", [True, False])
def test_a_read_only_folder_is_one_line(tmp_path: Path, existing: bool) -> None:
    if existing:
        python("write('items.jsonl', 1, 1)", cwd=tmp_path)
        (tmp_path / "items.jsonl").chmod(0o444)
    tmp_path.chmod(0o555)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    # Modes do not bind root: become nobody, in a folder that is open already.
    become_nobody = "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n" if os.geteuid() == 0 else ""
    refused = python(become_nobody + "report('items.jsonl', 1, 1)", cwd=tmp_path)
    tmp_path.chmod(0o755)
    assert refused.stdout == (
        "UsageError: items.jsonl: cannot be written: Permission denied; choose another output with -o\n"
    )
    assert (refused.returncode, refused.stderr) == (2, "")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


# ---------------------------------------------------------------- memory


def peak_memory(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_reading_takes_the_same_memory_however_many_records_there_are(tmp_path: Path) -> None:
    def read(count: int) -> int:
        path = tmp_path / f"{count}.jsonl"
        path.write_text("".join(json.dumps({"id": str(n), "text": "x" * 200}) + "\n" for n in range(count)))
        return peak_memory(lambda: sum(1 for _ in read_records(path, Item)))

    read(2_000)
    # 18,000 records more have 4 MB. Other threads of the test run may need a few kilobytes meanwhile.
    assert read(20_000) - read(2_000) <= 100_000


def test_writing_and_resuming_take_a_few_bytes_per_record(tmp_path: Path) -> None:
    def write(count: int) -> None:
        with open_items(tmp_path / f"{count}.jsonl") as log:
            for number in range(count):
                if not log.has(str(number)):
                    log.append(str(number), Item(id=str(number), text="x" * 200))

    write(10)
    for _ in ("writing", "resuming"):
        assert peak_memory(lambda: write(20_000)) - peak_memory(lambda: write(2_000)) <= 12 * 18_000
