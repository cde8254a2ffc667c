"""`examples/slurm.sh` with a `sbatch` that runs each job at once: the files are those of one machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "examples" / "slurm.sh"
AGENT, COLLABORATOR, CRITIC = "scripted:curious", "scripted:unsure", "scripted:overlap"
SBATCH = """#!/bin/bash
# Runs the job, or the tasks of an array from the last to the first, and prints its number.
set -euo pipefail
tasks=""
for word in "$@"; do
    case $word in
        --array=1-*) tasks=$(seq "${word#--array=1-}" -1 1) ;;
        --dependency=afterok:*) grep -qx "${word#--dependency=afterok:}" jobs ;;
    esac
done
for task in ${tasks:-0}; do
    SLURM_ARRAY_TASK_ID=$task sh -ec "${!#}" >&2
done
echo $(( $(wc -l < jobs) + 1 )) | tee -a jobs
"""


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """Variables of a machine that has `sbatch`, and what the script is told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text(SBATCH)
    (programs / "sweetrl").write_text(f'#!/bin/sh\nexec {sys.executable} -m sweetrl "$@"\n')
    for each in programs.iterdir():
        each.chmod(0o755)
    (tmp_path / "jobs").touch()
    told = {"AGENT": AGENT, "COLLABORATOR": COLLABORATOR, "CRITIC": CRITIC, "ATTEMPTS": "2"}
    return {
        **os.environ,
        **told,
        "TASKS": "mini-backend:train:3",
        "PATH": f"{programs}:{os.environ['PATH']}",
    }


def sweetrl(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "sweetrl", *words, "--quiet"], cwd=folder, check=True)


def test_the_stages_on_two_machines_write_what_they_write_on_one(
    cluster: dict[str, str], tmp_path: Path
) -> None:
    subprocess.run([SCRIPT, "2", "run"], cwd=tmp_path, env=cluster, check=True)
    assert (tmp_path / "jobs").read_text().split() == [str(number) for number in range(1, 9)]
    tasks, alone = ("--tasks", "mini-backend:train:3"), tmp_path / "alone"
    one = ("--concurrency", "1")
    players = ("--agent", AGENT, "--collaborator", COLLABORATOR, "--attempts", "2")
    sweetrl(tmp_path, "rollout", *tasks, *players, *one, "-o", "alone")
    held = ("--episodes", "alone/episodes.jsonl")
    sweetrl(tmp_path, "score", *tasks, *held, "-o", "alone/verdicts.jsonl")
    sweetrl(tmp_path, "candidates", *held, "--agent", AGENT, *one, "-o", "alone/candidates.jsonl")
    drawn = ("--candidates", "alone/candidates.jsonl", "--critic", CRITIC)
    sweetrl(tmp_path, "rank", *tasks, *held, *drawn, *one, "-o", "alone/ranked.jsonl")
    for name in ("episodes", "verdicts", "candidates", "ranked"):
        assert (tmp_path / f"run/{name}.jsonl").read_bytes() == (alone / f"{name}.jsonl").read_bytes(), name
