"""Does scoring five times as many frontend dialogues take more memory? The peak of `sweetrl score` itself, in one run.

A scripted agent held the dialogues, on the pages of `mini-frontend`: no two tasks are alike, so every reference and
every answer is rendered. Counted is the Python process; browsers are replaced now and then whatever the number. Writes
benchmarks/results/frontend_memory.json.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from pages.listening_agent import draft  # noqa: E402
from scoring_memory import high_water_mark  # noqa: E402
from sweetrl.dialogue.agents import ScriptedAgent  # noqa: E402
from sweetrl.dialogue.collaborators import ScriptedCollaborator  # noqa: E402
from sweetrl.dialogue.rollout import roll_out  # noqa: E402
from sweetrl.domains.sources import read_tasks  # noqa: E402

REMARKS = ["The header should be red instead of gray.", "A footer near the bottom of the page is missing."]


async def hold_dialogues(tasks: str, path: Path) -> None:
    """One dialogue on each task; the collaborator says the same to everyone."""
    agent, collaborator = ScriptedAgent(draft), ScriptedCollaborator(REMARKS * 2)
    with path.open("wb") as file:
        async for episode in roll_out(list(read_tasks(tasks)), agent, collaborator, concurrency=8):
            assert episode.failure is None
            file.write(msgspec.json.encode(episode) + b"\n")


def peak_of_scoring(count: int, workers: int) -> dict[str, float]:
    """Peak resident megabytes of the scoring process, without its browsers, and dialogues per second."""
    tasks = f"mini-frontend:train:{count}"
    with tempfile.TemporaryDirectory() as folder:
        episodes, output = Path(folder) / "episodes.jsonl", Path(folder) / "verdicts.jsonl"
        asyncio.run(hold_dialogues(tasks, episodes))
        options = ["--tasks", tasks, "--episodes", episodes, "-o", output, "--workers", workers, "--no-check"]
        command = [sys.executable, "-m", "sweetrl", "score", *map(str, options)]
        started, peak = time.monotonic(), 0
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            peak = max(peak, high_water_mark(process.pid))
            time.sleep(0.05)
        assert process.returncode == 0
        assert sum(1 for _ in output.open()) == count
        pictures = [each.stat().st_size for each in (Path(folder) / "screenshots").glob("*.png")]
        seconds = time.monotonic() - started
    return {
        "dialogues": count,
        "peak_mb": round(peak / 1024, 1),
        "dialogues_per_second": round(count / seconds, 2),
        "pictures_mb": round(sum(pictures) / 1e6, 1),
    }


def main() -> None:
    """Measure both sizes and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=200)
    parser.add_argument("--many", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/frontend_memory.json")
    options = parser.parse_args()
    runs = [peak_of_scoring(count, options.workers) for count in (options.few, options.many)]
    result = {"runs": runs, "ratio": round(runs[1]["peak_mb"] / runs[0]["peak_mb"], 3)}
    for run in runs:
        print(
            f"{run['dialogues']:>8} dialogues: peak {run['peak_mb']} MB, {run['dialogues_per_second']} a second"
        )
    print(f"ratio {result['ratio']}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
