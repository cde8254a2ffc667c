"""Benchmarks take minutes and are not run in tests; what they use of the package must be there all the same."""

import subprocess
import sys

from conftest import CHECKOUT

BENCHMARKS = sorted((CHECKOUT / "benchmarks").glob("*.py"))
LOAD_ALL = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
for path in sys.argv[2:]:
    print(path, flush=True)
    runpy.run_path(path, run_name="imported")
"""


def test_everything_that_benchmarks_import_is_there() -> None:
    """One process loads them all: most of the time goes into PyTorch."""
    command = [sys.executable, "-c", LOAD_ALL, str(CHECKOUT / "benchmarks"), *map(str, BENCHMARKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(map(str, BENCHMARKS)), done.stderr
    assert done.returncode == 0, done.stderr
