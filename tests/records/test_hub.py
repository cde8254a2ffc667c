"""Files named by `hf://`, fetched by the hub's own client from a server that stands in for the hub."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sweetrl.domains.sources import read_tasks
from sweetrl.errors import UsageError
from sweetrl.models.specification import parse_spec, trainable
from sweetrl.records.hub import on_disk

COMMIT = "0" * 40
TASK = {
    "problem_description": "Write f.",
    "ground_truth": "def f(x):\n    return x",
    "test_cases": {"test1": "f(1)"},
}
FILE = "/datasets/someone/bench/resolve/main/test.jsonl"


class _Hub(http.server.BaseHTTPRequestHandler):
    """Has one file in one dataset."""

    asked: list[tuple[str, str]]

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.asked.append((self.command, self.path))
        content = json.dumps(TASK).encode() + b"\n"
        self.send_response(200 if self.path == FILE else 404)
        if self.path == FILE:
            self.send_header("ETag", '"1234"')
            self.send_header("X-Repo-Commit", COMMIT)
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
            content = b""
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


@contextmanager
def hub() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    handler = type("Hub", (_Hub,), {"asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler.asked
        server.shutdown()


def run(arguments: list[str], folder: Path, endpoint: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own: the client reads where the hub is when it is loaded."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(folder / "cache"), **more}
    command = [sys.executable, "-m", "sweetrl", *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


SHOW = ["tasks", "show", "hf://datasets/someone/bench/test.jsonl", "--json"]


def test_tasks_on_the_hub_are_fetched_once_and_then_read_offline(tmp_path: Path) -> None:
    with hub() as (endpoint, asked):
        first = run(SHOW, tmp_path, endpoint)
        fetched = len(asked)
    again = run(SHOW, tmp_path, endpoint, HF_HUB_OFFLINE="1")
    assert json.loads(first.stdout)["tasks"][0]["request"] == "Write f."
    assert (fetched > 0, again.stdout) == (True, first.stdout)


def test_a_file_that_is_not_on_the_hub_is_one_line(tmp_path: Path) -> None:
    with hub() as (endpoint, _):
        ended = run(["tasks", "show", "hf://datasets/someone/bench/none.jsonl"], tmp_path, endpoint)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(
        "error: hf://datasets/someone/bench/none.jsonl: cannot be downloaded from the hub: "
    )


def test_offline_a_file_that_was_never_fetched_is_one_line(tmp_path: Path) -> None:
    ended = run(SHOW, tmp_path, "http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["hf://datasets/someone", "hf://datasets/someone/bench", "hf:///x"])
def test_a_name_that_lacks_a_part_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"write hf://datasets/OWNER/NAME/FILE"):
        list(read_tasks(name))


def test_other_paths_are_left_alone(tmp_path: Path) -> None:
    assert on_disk(tmp_path / "tasks.jsonl") == tmp_path / "tasks.jsonl"


def test_models_may_be_named_with_slashes_too() -> None:
    assert parse_spec("hf://someone/model").model == "someone/model" == trainable("hf://someone/model")
