"""`make` for somebody whose Python is too old."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on PATH")
def test_a_python_that_is_too_old_is_one_line_before_anything_is_made(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(CHECKOUT / name, tmp_path)
    old = tmp_path / "python3.9"
    # Runs what it is given with `-c`, believing that it is 3.9.
    old.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])' \"$2\"\n"
    )
    old.chmod(0o755)
    made = subprocess.run(
        ["make", "quickstart", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode != 0
    assert f"sweetrl needs Python 3.11 or later, and {old} is 3.9" in made.stderr
    assert not (tmp_path / ".venv").exists()
