"""Short stages of a study: forks of a process that has loaded PyTorch against a new interpreter for each.

    python benchmarks/stages.py

Each stage evaluates the tiny model that ships on five tasks. Both ways do one stage after the other, in turn for
several rounds, with the loading of the process that is forked in its time; both write the same dialogues, which is
checked. Writes benchmarks/results/stages.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sweetrl.cli.main import run
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.runner import Runner

HERE = Path(__file__).resolve().parent
STAGES = 6
ROUNDS = 2
EVALUATE = (
    *("evaluate", "--tasks", "mini-backend:validation:5:0", "--agent", "mini", "--agent-max-tokens", "128"),
    *("--collaborator", "colleague", "--turn-limit", "8"),
)


def run_stages(folder: Path, *, forked: bool) -> None:
    """What is measured, in a process of its own."""
    outputs = [folder / str(number) for number in range(STAGES)]
    planned = [Stage(path.name, (*EVALUATE, "-o", str(path)), (), path) for path in outputs]
    executor = LocalExecutor(folder, logs=True, warm=run if forked else None)
    Runner(folder, planned, executor=executor).run()


def timed(way: str) -> tuple[float, set[bytes]]:
    """Seconds that all stages take, and the dialogues that they write."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run([sys.executable, __file__, "--run", way, "--folder", folder], check=True)
        seconds = time.perf_counter() - started
        written = {
            b"".join(sorted(path.read_bytes().splitlines())) for path in Path(folder).glob("*/episodes.jsonl")
        }
    return seconds, written


def measure() -> dict[str, Any]:
    """Both ways in turn."""
    rounds = [{way: timed(way) for way in ("new", "forked")} for _ in range(ROUNDS)]
    ratios = [each["new"][0] / each["forked"][0] for each in rounds]
    return {
        "unit": f"seconds for {STAGES} stages, one at a time",
        "new_interpreters": [round(each["new"][0], 1) for each in rounds],
        "forks": [round(each["forked"][0], 1) for each in rounds],
        "ratio": round(statistics.median(ratios), 2),
        "same_dialogues": len(set.union(*(written for each in rounds for _, written in each.values()))) == 1,
        "cpus": os.cpu_count(),
    }


def main() -> None:
    """Measure, write the result file, print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", choices=("new", "forked"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        run_stages(asked.folder, forked=asked.run == "forked")
        return
    result = measure()
    target = HERE / "results" / "stages.json"
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    if not result["same_dialogues"]:
        sys.exit("forked stages wrote something else")


if __name__ == "__main__":
    main()
