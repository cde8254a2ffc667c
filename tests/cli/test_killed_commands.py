"""Commands killed at many moments: the file in the end is that of a quiet run."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from cli.stored_run import COMMANDS, command, write_run

KILLED = [name for name in COMMANDS if name not in ("rollout", "score")]
"""The others are killed in tests of their own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("records"))


def words(name: str, folder: Path, output: Path) -> list[str]:
    return [sys.executable, "-m", "sweetrl", *command(name, folder, output)]


def killed_at(size: int, words: list[str], output: Path) -> bool:
    """Whether the command could be killed once its file had so many bytes."""
    process = subprocess.Popen(words)
    while process.poll() is None:
        if output.exists() and output.stat().st_size >= size:
            process.kill()
            break
        time.sleep(0.001)
    return process.wait() != 0


@pytest.mark.parametrize("name", KILLED)
def test_killed_at_many_moments_and_resumed_it_equals_an_uninterrupted_run(
    name: str, folder: Path, tmp_path: Path
) -> None:
    subprocess.run(words(name, folder, tmp_path / "whole.jsonl"), check=True)
    whole = (tmp_path / "whole.jsonl").read_bytes()
    output = tmp_path / "parts.jsonl"
    sizes = [0, *(len(whole) * part // 5 for part in range(1, 5))]
    killed = [killed_at(size, words(name, folder, output), output) for size in sizes]
    assert sum(killed) >= 2
    subprocess.run(words(name, folder, output), check=True)
    assert output.read_bytes() == whole
    cards = [msgspec.json.decode((tmp_path / f"{each}.run.json").read_bytes()) for each in ("whole", "parts")]
    assert cards[0]["sha256"] == cards[1]["sha256"]
    assert [each["records"] for each in cards] == [whole.count(b"\n")] * 2
