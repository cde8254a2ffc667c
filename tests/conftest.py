"""Fixtures for all tests: the command line in this process, and the real ColBench files."""

import gc
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sweetrl.cli import console
from sweetrl.cli.main import run
from sweetrl.domains import registry
from sweetrl.experiments.local import THREADS

CHECKOUT = Path(__file__).resolve().parent.parent

# Tests that run side by side share the cores, and threads of one would only get in the way of another. Libraries read
# this when they are loaded, and so do the processes that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ |= {name: os.environ.get(name, "1") for name in THREADS}

# A shell lets its background jobs, and all that they start, ignore Ctrl-C, which tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the business of a loaded machine, not of the property.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that no process is left alone with them in the end."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there for good: libraries call it for each training, over a large heap."""
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def sweetrl(capfd: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """Runs `sweetrl ARGUMENTS...` in this process."""

    def call(*arguments: object) -> Finished:
        for each in (console.messages, console.results):
            each.cache_clear()  # a new process would look anew how wide the terminal is
        capfd.readouterr()
        code = run([str(each) for each in arguments])
        registry.forget()  # what --domain makes known ends with the process
        out, err = capfd.readouterr()
        return Finished(code, out, err)

    return call


@pytest.fixture(scope="session")
def colbench_dir() -> Path:
    """The folder of the real, third-party ColBench files, which are not part of the project."""
    folder = Path(os.environ.get("SWEETRL_COLBENCH_DIR", CHECKOUT.parent / "shared/data/colbench"))
    if not folder.is_dir():
        pytest.skip(f"no ColBench files in {folder}; set SWEETRL_COLBENCH_DIR to their folder")
    return folder
