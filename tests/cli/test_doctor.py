import json
import os
import shutil
import sys
from importlib.metadata import metadata
from types import SimpleNamespace

import pytest

from sweetrl import sandbox
from sweetrl.browser.assets import PACKAGES
from sweetrl.errors import installing
from sweetrl.experiments import machine
from sweetrl.sandbox import Offer

EVERYTHING = Offer(landlock=6, seccomp=True, bubblewrap="/usr/bin/bwrap")


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch):
    """Importing the real one takes seconds."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.fixture
def diagnosis(monkeypatch, sweetrl):
    """The findings by name on a machine with the given means of isolation, and the exit code."""

    def call(offer=EVERYTHING):
        monkeypatch.setattr(sandbox, "available_isolation", lambda: offer)
        finished = sweetrl("doctor", "--json")
        report = json.loads(finished.out)
        return {each["name"]: each for each in report["findings"]}, finished.code

    return call


def test_it_reports_on_this_machine(diagnosis):
    findings, code = diagnosis()
    assert code == 0
    assert findings["python"]["found"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert findings["processor"]["found"] == f"{len(os.sched_getaffinity(0))} cores"
    assert ("root" in findings["user"]["found"]) == (os.geteuid() == 0)


def test_every_line_that_is_not_ok_says_what_to_do(diagnosis):
    findings, _ = diagnosis(Offer(landlock=0, seccomp=False, bubblewrap=None))
    wanting = [each for each in findings.values() if each["status"] != "ok"]
    assert len(wanting) > 3
    assert all(each["advice"] for each in wanting)
    assert all(each["purpose"] for each in findings.values())


def test_the_exit_code_is_1_only_where_nothing_isolates(diagnosis):
    assert diagnosis(Offer(landlock=0, seccomp=True, bubblewrap=None))[1] == 1
    assert diagnosis(Offer(landlock=7, seccomp=False, bubblewrap=None))[1] == 1
    assert diagnosis(Offer(landlock=7, seccomp=True, bubblewrap=None))[1] == 0
    assert diagnosis(Offer(landlock=0, seccomp=True, bubblewrap="/usr/bin/bwrap"))[1] == 0


@pytest.mark.parametrize(("version", "status"), [(0, "missing"), (3, "limited"), (4, "ok"), (7, "ok")])
def test_landlock_is_judged_by_its_version(diagnosis, version, status):
    findings, _ = diagnosis(Offer(landlock=version, seccomp=True, bubblewrap=None))
    assert findings["landlock"]["status"] == status


def test_a_bubblewrap_that_cannot_work_is_told_from_an_absent_one(diagnosis, monkeypatch):
    nothing = Offer(landlock=0, seccomp=True, bubblewrap=None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert diagnosis(nothing)[0]["bubblewrap"]["status"] == "missing"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert diagnosis(nothing)[0]["bubblewrap"]["status"] == "limited"


def test_any_of_the_known_browsers_will_do(diagnosis, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/chrome" if name == "google-chrome" else None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    findings, _ = diagnosis()
    assert (findings["browser"]["status"], findings["browser"]["found"]) == (
        "ok",
        "/opt/chrome; in its own sandbox",
    )
    assert findings["node"]["status"] == "missing"


def test_a_browser_of_root_is_without_its_own_sandbox(diagnosis, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/chrome" if name == "google-chrome" else None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    browser = diagnosis()[0]["browser"]
    assert browser["status"] == "limited"
    assert "refuses its own sandbox to root" in browser["found"]


def test_a_browser_that_is_named_and_not_there_is_missing(diagnosis, monkeypatch):
    monkeypatch.setenv("SWEETRL_BROWSER", "/nowhere/chrome")
    browser = diagnosis()[0]["browser"]
    assert browser["status"] == "missing"
    assert "/nowhere/chrome" in browser["found"]


def test_web_assets_count_only_in_the_right_version(diagnosis, monkeypatch, tmp_path):
    monkeypatch.setenv("SWEETRL_WEB_ASSETS", str(tmp_path))
    for package in PACKAGES:
        name, version = package.rsplit("@", 1)
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "package.json").write_text(json.dumps({"version": version}))
    assert diagnosis()[0]["web assets"]["status"] == "ok"
    (tmp_path / "tailwindcss" / "package.json").write_text('{"version": "3.0.0"}')
    (tmp_path / "@tailwindcss/browser/package.json").write_text("torn")
    assets = diagnosis()[0]["web assets"]
    assert assets["status"] == "missing"
    assert assets["found"].startswith("no tailwindcss@2.2.19, @tailwindcss/browser@4.3.3 in")
    assert "npm install" in assets["advice"]


def fake_torch(*devices: str) -> SimpleNamespace:
    cuda = SimpleNamespace(device_count=lambda: len(devices), get_device_name=lambda index: devices[index])
    return SimpleNamespace(__version__="2.13.0", cuda=cuda)


@pytest.mark.parametrize(
    ("torch", "status", "found"),
    [
        (None, "missing", "not installed"),
        (fake_torch(), "limited", "2.13.0, no GPU"),
        (fake_torch("H100", "H100"), "ok", "2.13.0, H100, H100"),
    ],
)
def test_torch_is_reported_with_its_devices(diagnosis, monkeypatch, torch, status, found):
    monkeypatch.setitem(sys.modules, "torch", torch)
    finding = diagnosis()[0]["torch"]
    assert (finding["status"], finding["found"]) == (status, found)


def test_every_extra_of_the_package_has_a_line_and_a_purpose(diagnosis):
    findings, _ = diagnosis()
    extras = metadata("sweetrl").get_all("Provides-Extra")
    assert {f"extra {extra}" for extra in extras} <= set(findings)
    assert findings["extra test"]["status"] == "ok"
    assert findings["extra test"]["purpose"] == "running the tests"


def test_an_extra_with_an_absent_package_says_how_to_install_it(diagnosis, monkeypatch):
    monkeypatch.setattr(machine, "_installed", lambda name: name != "gymnasium")
    findings, _ = diagnosis()
    assert findings["extra gym"]["found"] == "no gymnasium"
    assert findings["extra gym"]["advice"] == installing("gym")
    assert findings["extra browser"]["status"] == "ok"


def test_the_memory_of_a_container_counts_if_it_is_less(diagnosis, monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(machine, "CGROUP_MEMORY", limit)
    limit.write_text(str(1 << 30))
    finding = diagnosis()[0]["memory"]
    assert (finding["status"], finding["found"]) == ("limited", "1.0 GiB")
    limit.write_text("max\n")
    assert diagnosis()[0]["memory"]["found"] != "1.0 GiB"


def test_people_get_lines_with_status_purpose_and_advice(sweetrl, monkeypatch):
    monkeypatch.setattr(sandbox, "available_isolation", lambda: EVERYTHING)
    finished = sweetrl("doctor")
    assert finished.err == ""
    assert "missing  torch" in finished.out
    assert f"-> {installing('train')}" in finished.out


def test_a_machine_that_cannot_isolate_says_so_at_the_end(sweetrl, monkeypatch):
    monkeypatch.setattr(sandbox, "available_isolation", lambda: Offer(0, True, None))
    assert "cannot be isolated" in sweetrl("doctor").err
