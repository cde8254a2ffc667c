"""Does scoring 100 times as many answers take more memory? The peak of `sweetrl score` itself, in one run.

The answers are the references of a published ColBench file, over and over. Writes
benchmarks/results/scoring_memory.json.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SWEETRL_COLBENCH_DIR", ROOT.parent / "shared/data/colbench"))


def write_answers(tasks: Path, count: int, path: Path) -> None:
    """`count` right answers, task after task."""
    references = [json.loads(line)["ground_truth"] for line in tasks.read_text().splitlines()]
    with path.open("w") as file:
        for number, reference in itertools.islice(itertools.cycle(enumerate(references)), count):
            file.write(json.dumps({"task_id": f"{tasks.stem}-{number}", "answer": reference}) + "\n")


def peak_of_scoring(tasks: Path, count: int) -> dict[str, float]:
    """Peak resident megabytes of the scoring process, without its sandboxes, and answers per second."""
    with tempfile.TemporaryDirectory() as folder:
        answers, output = Path(folder) / "answers.jsonl", Path(folder) / "verdicts.jsonl"
        write_answers(tasks, count, answers)
        options = ["--tasks", tasks, "--answers", answers, "-o", output, "--workers", 2]
        command = [sys.executable, "-m", "sweetrl", "score", *map(str, options)]
        started, peak = time.monotonic(), 0
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, high_water_mark(process.pid))
            time.sleep(0.02)
        assert process.returncode == 0
        assert sum(1 for _ in output.open()) == count
        speed = count / (time.monotonic() - started)
    return {"answers": count, "peak_mb": round(peak / 1024, 1), "answers_per_second": round(speed, 1)}


def high_water_mark(pid: int) -> int:
    """Peak resident kilobytes so far; 0 when the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


def main() -> None:
    """Measure both sizes and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=DATA / "backend_dev.jsonl")
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/scoring_memory.json")
    options = parser.parse_args()
    runs = [peak_of_scoring(options.tasks, count) for count in (options.few, options.many)]
    result = {"runs": runs, "ratio": round(runs[1]["peak_mb"] / runs[0]["peak_mb"], 3)}
    for run in runs:
        print(f"{run['answers']:>8} answers: peak {run['peak_mb']} MB, {run['answers_per_second']} answers/s")
    print(f"ratio {result['ratio']}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
