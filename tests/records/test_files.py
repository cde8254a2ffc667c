import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sweetrl.errors import UsageError
from sweetrl.records.files import write_lines


def test_lines_are_written_and_counted(tmp_path):
    path = tmp_path / "out.jsonl"
    assert write_lines(path, iter([b"a\n", b"b\n"]), replace=False) == 2
    assert path.read_bytes() == b"a\nb\n"
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match=r"exists already; choose another output with -o, or .*--force"):
        write_lines(path, [b"new"], replace=False)
    assert path.read_bytes() == b"old"
    write_lines(path, [b"new"], replace=True)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_halfway_leaves_what_was_there_and_nothing_else(tmp_path, error):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"old")

    def lines():
        yield b"new"
        raise error

    with pytest.raises(error):
        write_lines(path, lines(), replace=True)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_a_folder_is_no_output(name):
    with pytest.raises(UsageError, match="is a folder"):
        write_lines(Path(name), [], replace=True)


def test_a_missing_folder_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write_lines(tmp_path / "no" / "out.jsonl", [], replace=False)


def test_an_impossible_name_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="cannot be written: File name too long"):
        write_lines(tmp_path / ("x" * 300), [], replace=False)


def test_a_folder_closed_to_the_user_is_a_usage_error(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o555)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        write_lines(tmp_path / "out.jsonl", [], replace=False)


def test_a_full_disk_is_a_usage_error_and_leaves_nothing_behind(tmp_path):
    program = (
        "import sys; from pathlib import Path; from sweetrl.records.files import write_lines\n"
        "write_lines(Path(sys.argv[1]), (b'x' * 1000 for _ in range(1000)), replace=False)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "out.jsonl"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
    )
    assert "UsageError" in ran.stderr.splitlines()[-1]
    assert "no space left" in ran.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
