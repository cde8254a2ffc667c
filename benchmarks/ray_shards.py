"""What shards on a Ray worker cost beside the work: 500 answers in shards of 50, against one local pool.

    python benchmarks/ray_shards.py [--rounds 7] [-o FILE]

Needs `pip install 'sweetrl[ray]'`; starts a cluster of one core on this machine and ends it. Both score with one worker
whose sandbox is warm, in alternating rounds. Wall-clock times say little on a machine that others use; processor time
of the process and all below it says more. Writes benchmarks/results/ray_shards.json.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from scoring import cpu_seconds
from sweetrl.cli import main as command_line
from sweetrl.domains.backend.secret import backend_secret
from sweetrl.domains.sources import load_tasks
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.sharding import Parts
from sweetrl.sandbox import keep_warm

ROOT = Path(__file__).resolve().parent.parent
ANSWERS, SIZE = 500, 50
STORE = 80 << 20


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/ray_shards.json")
    options = parser.parse_args()
    import ray

    ray.init(
        address="local", num_cpus=1, object_store_memory=STORE, include_dashboard=False, log_to_driver=False
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(Path(folder), options.rounds)
    finally:
        ray.shutdown()
    print(json.dumps(found, indent=2))
    options.output.write_text(json.dumps(found, indent=2) + "\n")


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Medians over the rounds, for each answer; a first round warms both up."""
    import ray

    words = _scoring(folder)
    _scored((*words, "-o", str(folder / "warm.jsonl")))
    _on_ray(words, folder / "warm")
    local, sharded, empty = [], [], []
    remote = ray.remote(_nothing)
    for number in range(rounds):
        local.append(_scored((*words, "-o", str(folder / f"local-{number}.jsonl"))))
        sharded.append(_on_ray(words, folder / f"ray-{number}"))
        started = time.perf_counter()
        for _ in range(ANSWERS // SIZE):
            ray.get(remote.remote())
        empty.append((time.perf_counter() - started) * SIZE / ANSWERS)
    wall, cpu = (
        [statistics.median(each[kind] for each in rows) for rows in (local, sharded)] for kind in (0, 1)
    )
    ratios = [theirs[1] / ours[1] for ours, theirs in zip(local, sharded, strict=True)]
    call = statistics.median(empty)
    return {
        "answers": ANSWERS,
        "answers_in_a_shard": SIZE,
        "local_wall_ms_per_answer": _ms(wall[0]),
        "ray_wall_ms_per_answer": _ms(wall[1]),
        "local_cpu_ms_per_answer": _ms(cpu[0]),
        "ray_cpu_ms_per_answer": _ms(cpu[1]),
        "cpu_overhead_percent": round(100 * (statistics.median(ratios) - 1), 1),
        "empty_task_ms": round(1000 * call, 2),
        "empty_task_percent_of_a_shard": round(100 * call / (cpu[0] * SIZE / ANSWERS), 1),
        "rounds": rounds,
        "load_average": round(os.getloadavg()[0], 1),
        "ray": ray.__version__,
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds / ANSWERS, 3)


def _scoring(folder: Path) -> tuple[str, ...]:
    """The command that scores 500 answers, but for its output."""
    tasks, answers = folder / "tasks.jsonl", folder / "answers.jsonl"
    assert command_line.run(["tasks", "make", "mini-backend", "--n", str(ANSWERS), "-o", str(tasks)]) == 0
    rows = [
        {"task_id": task.id, "answer": backend_secret(task).reference}
        for task in load_tasks(str(tasks)).values()
    ]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return (
        "score",
        "--tasks",
        str(tasks),
        "--answers",
        str(answers),
        "--workers",
        "1",
        "--no-check",
        "--quiet",
    )


def _scored(words: tuple[str, ...]) -> tuple[float, float]:
    """Score in this process, as a worker does; the seconds, and those of a processor."""
    keep_warm()
    started, cpu = time.perf_counter(), cpu_seconds()
    assert command_line.run(words) == 0
    return time.perf_counter() - started, cpu_seconds() - cpu


def _on_ray(words: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Score in shards on the worker, one after the other, as a cluster of one core does."""
    import ray

    folder.mkdir()
    stage = Stage("score", (*words, "-o", str(folder / "verdicts.jsonl")), (), folder / "verdicts.jsonl")
    parts = Parts(stage, folder / "shards", ANSWERS // SIZE, workers=1)
    started = time.perf_counter()
    remote = ray.remote(_scored)
    tasks = {index: remote.remote(parts.begin(index).arguments) for index in parts.missing()}
    cpu = 0.0
    for index, task in tasks.items():
        cpu += ray.get(task)[1]
        assert parts.publish(index)
    return time.perf_counter() - started, cpu


def _nothing() -> None:
    pass


if __name__ == "__main__":
    main()
