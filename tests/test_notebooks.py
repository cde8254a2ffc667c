"""The notebooks among the examples run from top to bottom, as somebody who opens them would run them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CHECKOUT

EXAMPLES = CHECKOUT / "examples"
NOTEBOOKS = sorted(path.name for path in EXAMPLES.glob("*.ipynb"))

EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=240, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""


def outputs(notebook: Path) -> list[dict[str, object]]:
    """What the cells of a notebook gave."""
    cells = json.loads(notebook.read_text())["cells"]
    return [output for cell in cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    for package in ("nbclient", "ipykernel", "torch"):
        pytest.importorskip(package, reason="needs the extras `test` and `train`")
    folder = shutil.copytree(EXAMPLES, tmp_path / "examples")
    command = [sys.executable, "-c", EXECUTE, folder / name]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert outputs(folder / name)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_stored_as_it_was_run_and_without_complaints(name: str) -> None:
    stored = outputs(EXAMPLES / name)
    assert stored
    assert [each for each in stored if each["output_type"] == "error" or each.get("name") == "stderr"] == []
    assert str(CHECKOUT) not in (EXAMPLES / name).read_text()


def test_there_is_a_notebook_for_newcomers() -> None:
    assert "quickstart.ipynb" in NOTEBOOKS
