"""Benchmarks take minutes and are not run in tests; what they use of the package must be there all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CHECKOUT

BENCHMARKS = sorted((CHECKOUT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=[path.stem for path in BENCHMARKS])
def test_everything_that_a_benchmark_imports_is_there(path: Path) -> None:
    load = (
        f"import runpy, sys; sys.path.insert(0, {str(path.parent)!r}); "
        f"runpy.run_path({str(path)!r}, run_name='imported')"
    )
    done = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
