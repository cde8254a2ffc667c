"""No attack is paid, reads, writes, connects, stays, or harms an honest answer scored beside it.

`gauntlet.py` runs them all, once per user that this machine can offer; the tests look at its report.
"""

import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sweetrl
from sandbox.gauntlet import load_attacks
from sandbox.more_attacks import TIMEOUT
from sweetrl.sandbox import Isolation, available_isolation

HERE = Path(__file__).parent
NOBODY = 65534
HANGING_SECONDS = 280
"""For all attacks of a run: a scorer that waits for one of them never ends."""
ATTACKS = load_attacks()
HOSTILE = [attack for attack in ATTACKS if attack.min_score is None]
HONEST = [attack for attack in ATTACKS if attack.min_score is not None]
BRIEF = [attack.name for attack in ATTACKS if attack.name not in TIMEOUT]
"""For the second and third run: each attack that overruns its time costs seconds, whoever runs it."""
ENDLESS = {"sleep_forever", "swallow_timeout", "alarm_cancel_spin", "toplevel_spin", "stop_itself"}
SAMPLE = [
    *("eq_always_true", "gc_scan_dicts", "patch_builtins_eval_exec", "sleep_forever", "faulthandler_segv"),
    *("read_secret_open", "read_etc_passwd", "read_environ", "write_open", "atexit_write", "tcp_connect"),
    *("fork_orphan_setsid", "mem_touch_1500mb", "close_all_fds", "through_proc_root", "kernel_and_users"),
    *("every_socket_family", "signal_the_zygote", "says_it_was_never_confined", "tempfile", "raw_clone"),
    *("hc_fenced_prose", "hc_class_and_cache", "much_of_the_standard_library", "threads_of_its_own"),
]

Report = dict[str, Any]


def run_gauntlet(
    isolation: Isolation, names: list[str], *, python: str = sys.executable, path: str = "", **user: Any
) -> Report:
    folder = Path(tempfile.mkdtemp(prefix="gauntlet-"))
    try:
        folder.chmod(0o777)
        done = subprocess.run(
            [python, "-m", "sandbox.gauntlet", str(folder), isolation, *names],
            env={"PATH": os.defpath, "PYTHONPATH": path or os.pathsep.join(sys.path)},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGING_SECONDS,
            **user,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # anything that an attack had printed would be in the way


@pytest.fixture(scope="module")
def as_current_user() -> Report:
    return run_gauntlet(Isolation.LANDLOCK, [])


@pytest.fixture(scope="module")
def as_nobody() -> Iterator[Report]:
    """A run by a user without any rights, from a copy of the code that this user can read."""
    if os.geteuid() != 0:
        pytest.skip("only root can start a process of another user; the current one has no rights as it is")
    python = interpreter_for_all()
    if python is None:
        pytest.skip(
            f"no Python {sys.version_info.major}.{sys.version_info.minor} that every user may execute"
        )
    copy = Path(tempfile.mkdtemp(prefix="sweetrl-copy-"))
    copy.chmod(0o755)
    try:
        shutil.copytree(Path(str(sweetrl.__file__)).parent, copy / "sweetrl")
        shutil.copytree(HERE, copy / "sandbox")
        msgspec = importlib.util.find_spec("msgspec")
        assert msgspec is not None
        assert msgspec.origin is not None
        shutil.copytree(Path(msgspec.origin).parent, copy / "msgspec")
        make_readable(copy)
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        yield run_gauntlet(Isolation.LANDLOCK, BRIEF, python=python, path=str(copy), **nobody)
    finally:
        shutil.rmtree(copy)


def interpreter_for_all() -> str | None:
    """An interpreter of this very version (compiled packages are shared with it) that any user can run."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        path = Path(candidate).resolve()
        if path.is_file() and all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents)):
            return str(path)
    return None


def make_readable(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture(scope="module")
def in_namespaces() -> Report:
    if available_isolation().bubblewrap is None:
        pytest.skip("bubblewrap does not work here")
    return run_gauntlet(Isolation.BUBBLEWRAP, SAMPLE)


@pytest.fixture(params=["as_current_user", "as_nobody", "in_namespaces"])
def report(request: pytest.FixtureRequest) -> Report:
    return request.getfixturevalue(request.param)


def outcome(report: Report, name: str) -> dict[str, Any]:
    if name not in report["results"]:
        pytest.skip("not in this run's selection")
    return report["results"][name]


def test_attacks_have_names_of_their_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert {*SAMPLE, *ENDLESS} <= {attack.name for attack in ATTACKS}


@pytest.mark.parametrize("name", [attack.name for attack in HOSTILE])
def test_a_hostile_answer_scores_zero_and_is_never_unscored(as_current_user: Report, name: str) -> None:
    assert outcome(as_current_user, name)["reward"] == 0.0, outcome(as_current_user, name)


@pytest.mark.parametrize("name", [attack.name for attack in HONEST])
def test_an_honest_answer_scores_one_however_it_is_written(as_current_user: Report, name: str) -> None:
    assert outcome(as_current_user, name)["reward"] == 1.0, outcome(as_current_user, name)


def test_every_run_rewards_the_honest_and_no_one_else(report: Report) -> None:
    deserved = {attack.name: 0.0 if attack.min_score is None else 1.0 for attack in ATTACKS}
    wrong = {name: each for name, each in report["results"].items() if each["reward"] != deserved[name]}
    assert wrong == {}


def test_honest_answers_beside_attacks_keep_their_reward(report: Report) -> None:
    assert [each["honest_denied"] for each in report["results"].values() if each["honest_denied"]] == []


def test_wrong_answers_after_attacks_stay_without_reward(report: Report) -> None:
    assert [each["wrong_paid"] for each in report["results"].values() if each["wrong_paid"]] == []


def test_every_answer_that_never_ends_is_ended_for_its_time(report: Report) -> None:
    checks = {name: each["checks"] for name, each in report["results"].items() if name in ENDLESS}
    assert "sleep_forever" in checks
    assert [name for name, each in checks.items() if not all("timed_out" in check for check in each)] == []


def test_nobody_connects(report: Report) -> None:
    assert report["connections"] == 0


def test_no_file_appears_or_changes(report: Report) -> None:
    assert report["changed"] == []


def test_no_process_stays(report: Report) -> None:
    assert report["strays"] == []
    assert report["left"] == []


def test_no_process_takes_a_gigabyte(report: Report) -> None:
    assert report["peak_kilobytes"] < 1 << 20
