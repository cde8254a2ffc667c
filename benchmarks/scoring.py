"""How fast answers are scored: ours, against exec in one's own process and a fresh interpreter per answer.

All three judge the same work in one run, in alternating rounds: every task of a published ColBench file (by
default the one in SWEETRL_COLBENCH_DIR) with its reference as the answer. Writes benchmarks/results/scoring.json.

Wall-clock speed says little on a machine that others use: the file also has the CPU time of an evaluation, of all
processes together, and the load of the machine.
"""

import argparse
import contextlib
import io
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.sources import load_tasks
from sweetrl.sandbox import Sandbox
from sweetrl.types import Outcome, Task

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SWEETRL_COLBENCH_DIR", ROOT.parent / "shared/data/colbench"))
DEFAULT_TASKS = DATA / "backend_dev.jsonl"
Secrets = list[BackendSecret]


def naive(secrets: Secrets) -> int:
    """Exec and eval in this process with an alarm, reference and answer for each call: no isolation at all."""
    signal.signal(signal.SIGALRM, _give_up)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sum(_naive_passes(secret) for secret in secrets)


def _give_up(*_: object) -> None:
    raise TimeoutError


def _naive_passes(secret: BackendSecret) -> bool:
    passed = 0
    for call in secret.tests.values():
        expected = _naive_call(secret.reference, call)
        passed += expected is not None and bool(_naive_call(secret.reference, call) == expected)
    return passed == len(secret.tests)


def _naive_call(source: str, call: str) -> object:
    signal.alarm(1)
    try:
        scope: dict[str, object] = {}
        exec(source, scope)
        return eval(call, scope)
    except Exception:
        return None
    finally:
        signal.alarm(0)


FRESH = """
import json, resource, sys
job = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_AS, (768 << 20, 768 << 20))
resource.setrlimit(resource.RLIMIT_CPU, (12, 12))
sys.stdout, out = sys.stderr, sys.stdout
for call in job["calls"]:
    try:
        scope = {}
        exec(job["source"], scope)
        print(repr(eval(call, scope)), file=out)
    except Exception as error:
        print("raised", error, file=out)
"""


def fresh_interpreters(workers: int) -> Callable[[Secrets], int]:
    """A new isolated interpreter per answer; the reference's results are known, as they are to ours."""

    def outputs(secret: BackendSecret) -> str:
        job = json.dumps({"source": secret.reference, "calls": list(secret.tests.values())})
        command = [sys.executable, "-I", "-c", FRESH]
        return subprocess.run(
            command, input=job, capture_output=True, text=True, timeout=20, check=False
        ).stdout

    def run(secrets: Secrets) -> int:
        with ThreadPoolExecutor(workers) as threads:
            return sum(output.count("\n") >= 10 for output in threads.map(outputs, secrets))

    return run


def ours(tasks: list[Task], scorer: BackendScorer, workers: int) -> Callable[[Secrets], int]:
    """The sandbox, with the references' results known."""

    def passes(task: Task) -> bool:
        assert isinstance(task.secret, BackendSecret)
        checks = scorer.checks(task, task.secret.reference)
        return all(check.outcome is Outcome.PASSED for check in checks)

    def run(_: Secrets) -> int:
        with ThreadPoolExecutor(workers) as threads:
            return sum(threads.map(passes, tasks))

    return run


def measure(contender: Callable[[Secrets], int], secrets: Secrets) -> dict[str, float]:
    """One round."""
    started, cpu = time.perf_counter(), cpu_seconds()
    passed = contender(secrets)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    return {"per_second": len(secrets) / seconds, "cpu_ms": 1000 * cpu / len(secrets), "passed": passed}


def cpu_seconds() -> float:
    """Of this process and all below it, those that run and those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread or process that ends while it is looked at
            for child in (task / "children").read_text().split():
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                running += sum(map(int, fields[11:15]))
    return time.process_time() + ended.ru_utime + ended.ru_stime + running / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the rounds, print a table, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=Path, default=DEFAULT_TASKS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/scoring.json")
    options = parser.parse_args()
    tasks = list(load_tasks(options.tasks).values())
    secrets = [task.secret for task in tasks if isinstance(task.secret, BackendSecret)]
    output = options.output.resolve()
    os.chdir(tempfile.mkdtemp())  # the naive way lets answers write where it stands
    with Sandbox(workers=options.workers) as sandbox:
        scorer = BackendScorer(sandbox)
        for task in tasks:
            scorer.expected(task)
        contenders = {
            "naive in-process exec (1 process)": naive,
            f"fresh isolated interpreter ({options.workers} workers)": fresh_interpreters(options.workers),
            f"sweetrl sandbox ({options.workers} workers)": ours(tasks, scorer, options.workers),
        }
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
        for _ in range(options.rounds):
            for name, contender in contenders.items():
                few = secrets[::5] if name.startswith("fresh") else secrets  # slow: a fifth is enough
                rounds[name].append(measure(contender, few))
        scorer.close()
    report(rounds, output, len(tasks))


def report(rounds: dict[str, list[dict[str, float]]], output: Path, count: int) -> None:
    """Medians over the rounds, and our ratio to each other way."""
    speeds = {name: statistics.median(row["per_second"] for row in rows) for name, rows in rounds.items()}
    cpu = {name: statistics.median(row["cpu_ms"] for row in rows) for name, rows in rounds.items()}
    best = next(name for name in speeds if name.startswith("sweetrl"))
    result = {
        "tasks": count,
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "contenders": {
            name: {
                "evaluations_per_second": round(speeds[name], 1),
                "ours_is_faster_by": round(speeds[best] / speeds[name], 2),
                "cpu_ms_per_evaluation": round(cpu[name], 2),
                "ours_takes_of_its_cpu": round(cpu[best] / cpu[name], 2),
                "passed": rows[-1]["passed"],
            }
            for name, rows in rounds.items()
        },
    }
    for name, row in result["contenders"].items():  # type: ignore[attr-defined]
        speed, ratio = row["evaluations_per_second"], row["ours_is_faster_by"]
        share = row["ours_takes_of_its_cpu"]
        print(
            f"{name:<42}{speed:>8} /s  ours x{ratio:<6}{row['cpu_ms_per_evaluation']:>7} ms CPU  ours x{share}"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
