"""What `--shard` and `merge` cost beside the work: reading the input in every shard, and joining the files.

    python benchmarks/merging.py [--episodes 20000] [--shards 100] [--json FILE]

Prints processor time for each episode and the peak of memory; docs/more-machines.md multiplies them.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from sweetrl.candidates.sample import stored_turns
from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.sharding import Parts, ShardedStage
from sweetrl.experiments.stages.merge import merge_shards
from sweetrl.experiments.stages.rollout import open_episodes
from sweetrl.records import RunCard, part_of, shard_path, write_card
from sweetrl.types import Ending, Episode, Reply, Turn

TURNS = 6
DRIVEN = 1000
"""Shards of one stage that a run starts."""
WORDS = (
    "what should happen with orders that arrive after the deadline, and which of the two dates counts? " * 5
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), chosen.episodes, chosen.shards)
    print(json.dumps(found, indent=2))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")


def measure(folder: Path, episodes: int, shards: int) -> dict[str, float]:
    """The costs of so many dialogues in so many shards."""
    ids = [f"task-{number}#0" for number in range(episodes)]
    started = time.process_time()
    files = [_write_shard(folder, ids, f"{index}/{shards}") for index in range(1, shards + 1)]
    wrote = time.process_time() - started
    output = folder / "episodes.jsonl"
    started = time.process_time()
    merge_shards(files, output)
    merged = time.process_time() - started
    started = time.process_time()
    turns = stored_turns(distinct_episodes(output))
    part = part_of((stored.id for stored in turns), f"1/{shards}")
    read = time.process_time() - started
    started = time.process_time()
    _drive(folder)
    drove = time.process_time() - started
    return {
        "episodes": episodes,
        "shards": shards,
        "bytes_per_episode": round(output.stat().st_size / episodes),
        "turns_of_the_first_shard": part.total,
        "write_and_arrange_us_per_episode": round(1e6 * wrote / episodes, 1),
        "merge_us_per_episode": round(1e6 * merged / episodes, 1),
        "read_input_us_per_episode": round(1e6 * read / episodes, 1),
        "driver_us_per_shard": round(1e6 * drove / DRIVEN, 1),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "python": sys.version.split()[0],  # type: ignore[dict-item]
    }


def _drive(folder: Path) -> None:
    """What a run does for its shards but merge: commands, folders, cards, names."""
    stage = Stage("rollout", ("rollout", "-o", str(folder / "driven")), (), folder / "driven/episodes.jsonl")
    parts = Parts(stage, folder / "shards", DRIVEN, workers=1)
    shards = ShardedStage(parts, _Done, DRIVEN, lambda *_: None)
    while shards.poll() is None:
        pass


class _Done:
    """A shard that is complete at once; the merge fails, and is not measured."""

    def __init__(self, stage: Stage, _place: int | None) -> None:
        self._code = int(stage.arguments[0] == "merge")
        if not self._code:
            folder, shard = Path(stage.arguments[2]), stage.arguments[4]
            card = RunCard(command="rollout", config={}, versions={}, started="", sha256="")
            write_card(shard_path(folder / "episodes.jsonl", shard), card)

    def poll(self) -> int:
        return self._code

    def terminate(self) -> None:
        pass

    def wait(self) -> None:
        pass


def _write_shard(folder: Path, ids: list[str], shard: str) -> Path:
    part = part_of(ids, shard)
    with open_episodes(folder, "rollout", {"seed": 0}, part) as log:
        for identity in reversed(part.ids):  # the worst order
            log.append(identity, _episode(identity))
        log.finish()
        return log.path


def _episode(identity: str) -> Episode:
    return Episode(
        task_id=identity.partition("#")[0],
        attempt=0,
        seed=0,
        agent="agent",
        collaborator="collaborator",
        request=WORDS,
        turns=(Turn(WORDS, WORDS, Reply(WORDS)),) * TURNS,
        ending=Ending.ANSWERED,
        answer=WORDS,
    )


if __name__ == "__main__":
    main()
