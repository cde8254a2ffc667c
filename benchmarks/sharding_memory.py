"""Does splitting a model over more processes take less memory of each? Training from loading to the finished folder.

A model of 300 million random weights is trained by DPO on a pair of short sequences for two steps, killed after the
first checkpoint and resumed: in one process, and split over two and four. Reported is the peak of anonymous memory (no
pages of files) of the process that has most. Writes benchmarks/results/sharding_memory.json.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from models.tiny_llama import save_tiny_llama  # noqa: E402

TOKENS = 24
SHAPE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 18,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
}


def processes_of(pid: int) -> list[int]:
    """A process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *map(int, children)]


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file stands behind; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def run(words: list[str], *, until: Path | None = None) -> int:
    """The peak of the largest process; kills the run as soon as `until` is there."""
    process = subprocess.Popen(
        words,
        stderr=subprocess.DEVNULL if not os.environ.get("SHOW") else None,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    peak = 0
    while process.poll() is None:
        found = processes_of(process.pid)
        peak = max(peak, *map(anonymous_bytes, found))
        if until is not None and until.exists():
            for each in found:
                os.kill(each, signal.SIGKILL)
            break
        time.sleep(0.05)
    if process.wait() != 0 and until is None:
        raise SystemExit(f"failed: {' '.join(words)}")
    return peak


def train(model: str, folder: str, *, shard: bool) -> None:
    """Two steps of DPO, from the last checkpoint if there is one."""
    from sweetrl.learning.batches import Example
    from sweetrl.learning.checkpoints import RunFolder, TrainingCard
    from sweetrl.learning.datasets import Dataset
    from sweetrl.learning.loading import load_tokenizer
    from sweetrl.learning.run_options import RunOptions
    from sweetrl.learning.settings import TrainingSettings
    from sweetrl.learning.tokens import EncodedSequence
    from sweetrl.learning.trainer import train
    from sweetrl.learning.training import is_main

    turns = [-1] * (TOKENS // 2) + [0] * (TOKENS // 2)
    sides = [EncodedSequence([number] * TOKENS, turns) for number in (5, 6)]
    settings = TrainingSettings(algorithm="dpo", max_steps=2, batch_size=1, max_tokens=TOKENS)
    card = TrainingCard(model=model, settings=settings, examples=1)
    with RunFolder(Path(folder)) as run:
        card = run.claim(card) if is_main() else run.join(card)
        options = RunOptions(save_every=1, monitor=0, shard=shard)
        train(Dataset([Example("pair", (sides[0],), (sides[1],))]), load_tokenizer(model), card, run, options)


def measure(processes: int, model: Path, folder: Path) -> dict[str, float]:
    """Peaks in GiB of a run that is interrupted, and of the same run when it resumes."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    words = [
        sys.executable,
        *(launcher if processes > 1 else []),
        __file__,
        "--train",
        str(model),
        str(folder),
    ]
    words += ["--shard"] if processes > 1 else []
    first = run(words, until=folder / "checkpoints" / "checkpoint-1")
    resumed = run(words)
    return {"first_gib": round(first / (1 << 30), 2), "resumed_gib": round(resumed / (1 << 30), 2)}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/sharding_memory.json")
    parser.add_argument("--train", nargs=2, metavar=("MODEL", "FOLDER"), help="be one process of a run")
    parser.add_argument("--shard", action="store_true", help="split the model, for --train")
    arguments = parser.parse_args()
    if arguments.train:
        train(*arguments.train, shard=arguments.shard)
        return
    with tempfile.TemporaryDirectory() as folder:
        model = save_tiny_llama(Path(folder) / "model", **SHAPE)
        size = sum(file.stat().st_size for file in model.glob("*.safetensors")) // 4
        found = {str(each): measure(each, model, Path(folder) / str(each)) for each in arguments.processes}
    result = {"parameters": size, "processes": found}
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
