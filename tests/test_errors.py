"""What errors tell people to do works where they read it."""

import sys
from pathlib import Path

import pytest

from sweetrl import errors


def test_in_a_checkout_an_extra_is_installed_from_it_into_the_environment_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkout = Path(errors.__file__).resolve().parents[2]
    monkeypatch.chdir(checkout)
    monkeypatch.setattr(sys, "executable", str(checkout / ".venv/bin/python"))
    assert errors.install_command("gym") == ".venv/bin/python -m pip install --editable '.[gym]'"


def test_elsewhere_the_paths_are_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    checkout = Path(errors.__file__).resolve().parents[2]
    assert errors.install_command("gym") == f"{sys.executable} -m pip install --editable '{checkout}[gym]'"


def test_without_a_checkout_an_extra_comes_from_the_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages/sweetrl/errors.py"))
    assert errors.install_command("gym") == "pip install 'sweetrl[gym]'"
