from pathlib import Path

import pytest

from sweetrl import errors
from sweetrl.errors import MissingExtra, installing


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ((), "pip install 'sweetrl[train]'"),
        (("pyproject.toml",), "pip install -e '.[train]'"),
        (("pyproject.toml", ".venv/bin"), ".venv/bin/pip install -e '.[train]'"),
    ],
)
def test_an_extra_is_installed_as_the_package_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], command: str
) -> None:
    for name in files:
        (tmp_path / name).mkdir(parents=True) if name.endswith("bin") else (tmp_path / name).touch()
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "src" / "sweetrl" / "errors.py"))
    monkeypatch.chdir(tmp_path)
    assert installing("train") == command
    assert str(MissingExtra("training", "train")) == f"training needs an optional package: {command}"


def test_outside_of_the_checkout_its_path_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "src" / "sweetrl" / "errors.py"))
    assert installing("train") == f"{tmp_path}/.venv/bin/pip install -e '{tmp_path}[train]'"
