"""Stages that are forked do, say and end as those that start from nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Finished
from sweetrl.cli.main import run
from sweetrl.experiments import progress, warm_workers

MAKE = ("tasks", "make", "mini-backend", "--n", "3", "--split", "train", "--seed", "0")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is loaded beforehand does not matter here."""
    monkeypatch.setattr(warm_workers, "STACK", "sweetrl.errors")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a model that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def endless(address: str, folder: Path) -> list[str]:
    """A command that waits for that model."""
    return [
        *("rollout", "--tasks", "mini-backend:train:1:0", "--agent", f"openai:m@{address}"),
        *("--collaborator", "colleague", "-o", str(folder)),
    ]


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.02)


def test_a_fork_does_what_the_command_does(tmp_path: Path, sweetrl: Callable[..., Finished]) -> None:
    log, made = tmp_path / "stage.log", tmp_path / "forked.jsonl"
    log.write_text("before\n")
    fork = warm_workers.start(run, [*MAKE, "-o", str(made)], log=log, variables={})
    assert fork is not None
    assert (fork.wait(), fork.poll()) == (0, 0)
    ordinary = sweetrl(*MAKE, "-o", tmp_path / "ordinary.jsonl")
    assert made.read_bytes() == (tmp_path / "ordinary.jsonl").read_bytes()
    said = "before\n" + ordinary.err + ordinary.out
    assert log.read_text().replace("forked", "ordinary") == said


def test_a_fork_fails_as_the_command_does(tmp_path: Path) -> None:
    fork = warm_workers.start(run, ["score", "--tasks", "absent.jsonl"], log=tmp_path / "log", variables={})
    assert fork is not None
    assert fork.wait() == 2
    assert (tmp_path / "log").read_text().startswith("error: ")


def test_a_fork_has_its_variables_and_this_process_has_not(tmp_path: Path, silent: str) -> None:
    told = tmp_path / "told"
    variables = {progress.VARIABLE: str(told)}
    fork = warm_workers.start(
        run, endless(silent, tmp_path / "run"), log=tmp_path / "log", variables=variables
    )
    assert fork is not None
    until(told.exists)
    assert progress.VARIABLE not in os.environ
    assert fork.poll() is None
    fork.terminate()
    assert fork.wait() in (130, 143, -signal.SIGTERM)


RUN = """
import sys, time
from pathlib import Path
from sweetrl.cli.main import run
from sweetrl.experiments import warm_workers
warm_workers.STACK = "sweetrl.errors"
fork = warm_workers.start(run, sys.argv[2:], log=Path(sys.argv[1]), variables={})
print(fork._process.pid, flush=True)
time.sleep(600)
"""


def test_a_killed_run_takes_its_forks_with_it(tmp_path: Path, silent: str) -> None:
    words = [sys.executable, "-c", RUN, str(tmp_path / "log"), *endless(silent, tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        fork = Path(f"/proc/{parent.stdout.readline().strip()}")
        until((tmp_path / "run").exists)
        assert fork.exists()
        parent.kill()
    until(lambda: not fork.exists())


LOADING = """
import sys
from pathlib import Path
from sweetrl.cli.main import run
from sweetrl.experiments import warm_workers
warm_workers.STACK = "endless_import"
warm_workers.start(run, [], log=Path(sys.argv[1]), variables={"PYTHONPATH": sys.argv[2]})
"""
ENDLESS = """
import os, time
from pathlib import Path
Path(__file__ + ".pid").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.parametrize("by_terminal", [True, False])
def test_a_warm_process_that_still_loads_ends_with_the_run(tmp_path: Path, by_terminal: bool) -> None:
    module = tmp_path / "endless_import.py"
    module.write_text(ENDLESS)
    words = [sys.executable, "-c", LOADING, str(tmp_path / "log"), str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as parent:
        pid = tmp_path / "endless_import.py.pid"
        until(lambda: pid.exists() and pid.read_text() != "")
        loading = Path(f"/proc/{pid.read_text()}")
        if by_terminal:
            os.kill(int(loading.name), signal.SIGINT)  # Ctrl-C in a terminal reaches both
        else:
            parent.kill()
        until(lambda: not loading.exists() or "(zombie)" in (loading / "status").read_text())
        parent.kill()
        assert parent.stderr is not None
        assert "KeyboardInterrupt" not in parent.stderr.read()


def test_where_there_is_a_gpu_nothing_is_forked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(warm_workers, "DRIVERS", ())
    possible = warm_workers.is_possible()
    assert possible == (sys.platform == "linux")
    (tmp_path / "driver").touch()
    monkeypatch.setattr(warm_workers, "DRIVERS", (str(tmp_path / "driver"),))
    assert not warm_workers.is_possible()
