"""`sweetrl view` as it is started from a shell."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweetrl.types import Annotation
from viewer.stored_runs import write_records, write_run

CHAT = json.dumps(
    {
        "messages": [
            {"role": "user", "content": "Where is my parcel?"},
            {"role": "assistant", "content": "Which number?"},
            {"role": "user", "content": "12."},
            {"role": "assistant", "content": "It is lost."},
        ],
        "outcome": 0,
    }
)
COMMAND = [sys.executable, "-m", "sweetrl"]


@contextmanager
def viewing(folder: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address that the command prints."""
    words = ["view", str(folder), "--no-browser", "--json", "--port", "0", *options]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder.parent / "cache")}
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["address"], process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def fetched(address: str, path: str) -> dict[str, object]:
    at, _, token = address.partition("?token=")
    request = urllib.request.Request(
        f"{at.replace('0.0.0.0', '127.0.0.1')}{path}", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, object] = json.loads(answer.read())
    return found


def refused(*words: str) -> str:
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        done = subprocess.run(
            [*COMMAND, *words], capture_output=True, text=True, check=False, env=environment
        )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


def test_a_run_is_served_on_loopback_until_interrupted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0, "b": 0.0})
    with viewing(folder) as (address, process):
        assert address.startswith("http://127.0.0.1:")
        assert fetched(address, "api/dialogues?outcome=success")["total"] == 1
        assert not [path for path in folder.iterdir() if "sqlite" in path.name]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)


def test_every_visitor_needs_the_token_which_stays_the_same(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    tokens = []
    for options in ((), ("--host", "0.0.0.0")):
        with viewing(folder, *options) as (address, _):
            at, _, token = address.partition("?token=")
            tokens.append(token)
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{at.replace('0.0.0.0', '127.0.0.1')}api/runs", timeout=60)
            assert fetched(address, "api/runs")["runs"]
    assert tokens[0] == tokens[1]
    cache = tmp_path / "cache" / "sweetrl" / "view"
    assert (cache.stat().st_mode & 0o777, (cache / "token").stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_chat_log_is_shown_like_a_run(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(CHAT + "\n")
    with viewing(tmp_path / "log.jsonl") as (address, _):
        [found] = fetched(address, "api/dialogues?q=parcel")["dialogues"]  # type: ignore[misc]
        assert (found["run"], found["success"], found["turns"]) == ("log", False, 2)  # type: ignore[index]
    (tmp_path / "notes.txt").write_text("Buy milk.\n")
    assert "not a file of JSON" in refused("view", str(tmp_path / "notes.txt"), "--no-browser")


def test_a_path_that_is_not_there_and_a_port_in_use_are_told_in_one_line(tmp_path: Path) -> None:
    assert "no such folder or file" in refused("view", str(tmp_path / "nowhere"), "--no-browser")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "choose another --port" in refused("view", str(tmp_path), "--no-browser", "--port", port)


def test_a_critic_is_measured_against_annotations(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0, "b": 0.0})
    marks = [
        Annotation(episode_id=f"{task}#0", task_id=task, turn=turn, mark=mark)  # type: ignore[arg-type]
        for task in "ab"
        for turn, mark in enumerate(("helped", "hurt"))
    ]
    write_records(folder / "annotations.jsonl", marks)
    words = [
        "credit-quality",
        str(folder / "credit.jsonl"),
        "--against",
        str(folder / "annotations.jsonl"),
        "--json",
    ]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=True)
    [found] = json.loads(done.stdout)["critics"]
    assert (found["turns"], found["sign"]["value"], found["auc"]["value"]) == (4, 1.0, 1.0)
    assert "give --values FILE or --against FILE" in refused("credit-quality", str(folder / "credit.jsonl"))
