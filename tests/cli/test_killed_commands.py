"""Commands killed at many moments: the file in the end is that of a quiet run."""

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cli.stored_run import COMMANDS, command, write_run

KILLED = [name for name in COMMANDS if name not in ("rollout", "score")]
"""The others are killed in tests of their own."""

DYING = """
import os, signal, sys
from sweetrl.cli.main import main

left, write = int(sys.argv.pop(1)), os.write

def dying(descriptor, data):
    global left
    if len(data) > left:
        write(descriptor, bytes(data)[:left])
        os.kill(os.getpid(), signal.SIGKILL)
    left -= len(data)
    return write(descriptor, data)

os.write = dying
main()
"""
"""Is killed when it has written so many bytes of records, in the middle of a line if they end there."""


KILLED_BEFORE_A_RENAME = """
import os, signal, sys
from pathlib import Path
from sweetrl.cli.main import main

name, rename = sys.argv.pop(1), Path.replace

def dying(self, target):
    if self.name == name:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)

Path.replace = dying
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("records"))


def run(*words: str) -> int:
    return subprocess.run([sys.executable, *words], check=False).returncode


@pytest.mark.parametrize("name", KILLED)
def test_killed_at_many_moments_and_resumed_it_equals_an_uninterrupted_run(
    name: str, folder: Path, tmp_path: Path
) -> None:
    assert run("-m", "sweetrl", *command(name, folder, tmp_path / "whole.jsonl")) == 0
    whole = (tmp_path / "whole.jsonl").read_bytes()
    output = tmp_path / "parts.jsonl"
    for size in (0, 1, len(whole) // 5, len(whole) // 3, len(whole) // 7):
        assert run("-c", DYING, str(size), *command(name, folder, output)) == -signal.SIGKILL
    assert output.read_bytes()[-1:] != b"\n", "no line was torn"
    assert run("-m", "sweetrl", *command(name, folder, output)) == 0
    assert output.read_bytes() == whole
    cards = [msgspec.json.decode((tmp_path / f"{each}.run.json").read_bytes()) for each in ("whole", "parts")]
    assert cards[0]["sha256"] == cards[1]["sha256"]
    assert [each["records"] for each in cards] == [whole.count(b"\n")] * 2


def test_shards_that_were_killed_at_many_moments_merge_into_an_uninterrupted_run(
    folder: Path, tmp_path: Path
) -> None:
    assert run("-m", "sweetrl", *command("rank", folder, tmp_path / "whole.jsonl")) == 0
    whole = (tmp_path / "whole.jsonl").read_bytes()
    # Many at a time end in any order, so that the shard has to be put in order; it is killed then, too.
    words = [*command("rank", folder, tmp_path / "x.jsonl"), "--concurrency", "16", "--shard", "1/2"]
    for size in (1, len(whole) // 5):
        assert run("-c", DYING, str(size), *words) == -signal.SIGKILL
    assert run("-c", KILLED_BEFORE_A_RENAME, ".x.1-of-2.jsonl.tmp", *words) == -signal.SIGKILL
    assert run("-m", "sweetrl", *words) == 0
    assert run("-m", "sweetrl", *words[:-1], "2/2") == 0
    shards = [str(tmp_path / f"x.{index}-of-2.jsonl") for index in (1, 2)]
    assert run("-m", "sweetrl", "merge", *shards, "-o", str(tmp_path / "merged.jsonl"), "--quiet") == 0
    assert (tmp_path / "merged.jsonl").read_bytes() == whole


def test_a_merge_that_is_killed_leaves_no_file_and_is_done_again(folder: Path, tmp_path: Path) -> None:
    words = command("candidates", folder, tmp_path / "x.jsonl")
    for index in (1, 2):
        assert run("-m", "sweetrl", *words, "--shard", f"{index}/2") == 0
    shards = [tmp_path / f"x.{index}-of-2.jsonl" for index in (1, 2)]
    merge = ("merge", *map(str, shards), "-o", str(tmp_path / "whole.jsonl"))
    assert run("-c", KILLED_BEFORE_A_RENAME, ".whole.jsonl.merging", *merge) == -signal.SIGKILL
    assert not (tmp_path / "whole.jsonl").exists()
    assert run("-m", "sweetrl", *merge, "--quiet") == 0
    assert (tmp_path / "whole.jsonl").read_bytes() == b"".join(shard.read_bytes() for shard in shards)
