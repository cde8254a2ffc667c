"""What the zygote does before its first fork. It runs in an interpreter of its own, as the zygote does."""

import json
import subprocess
import sys

from sweetrl.sandbox.launch import HOME


def inside(program: str) -> object:
    """What a program prints that is run where the package `inside` is on the path."""
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", program],
        env={"PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_the_sample_jobs_run() -> None:
    """All but one, which is there to raise an error."""
    program = (
        "import json\nfrom inside import runner, warmth\nkinds = []\n"
        "runner.Results.add = lambda self, kind, index, payload: kinds.append(kind.decode())\n"
        "warmth.run_sample_jobs()\nprint(json.dumps(kinds))\n"
    )
    assert inside(program) == ["L", "V", "V", "V", "R", "V", "V"]


def test_objects_lie_side_by_side_once_the_gaps_are_filled() -> None:
    program = (
        "import json\nfrom inside import warmth\nwarmth.fill_gaps()\n"
        "made = {size: [bytes(size - 33) for _ in range(8)] for size in (160, 256, 512)}\n"
        "print(json.dumps({size: [id(b) - id(a) for a, b in zip(row, row[1:])] for size, row in made.items()}))\n"
    )
    assert inside(program) == {str(size): [size] * 7 for size in (160, 256, 512)}
