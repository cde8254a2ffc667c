"""How fast runs are indexed for `sweetrl view`, and how fast its pages and searches are afterwards.

Generates a run (dialogues, verdicts, credit of every turn), indexes it in a process of its own, asks the index for
pages and searches, and then a real server for each kind of page, whose peak memory counts. Speeds are per second of
CPU time of one core. Writes benchmarks/results/viewer_index.json.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import msgspec

from sweetrl.types import Check, Ending, Episode, Outcome, Reply, Turn, TurnCredit, Verdict

ROOT = Path(__file__).resolve().parent.parent
STARTS = ("ba", "co", "di", "fe", "gu", "ha", "ki", "lo", "mu", "ne")
ENDS = ("ade", "ion", "ing", "or", "ed", "al", "ist", "um", "ness", "ly")
WORDS = [a + b + c for a in STARTS for b in "bdglmnprst" for c in ENDS]
SENTENCES = 5_000
"""Different ones of each length."""
REPEATS = 5


@cache
def sentences(length: int) -> list[str]:
    """Of words from a vocabulary of 1,000."""
    rng = random.Random(length)
    return [" ".join(rng.choices(WORDS, k=length)) + "?" for _ in range(SENTENCES)]


def sentence(rng: random.Random, length: int) -> str:
    """One of them."""
    return sentences(length)[int(rng.random() * SENTENCES)]


def dialogue(number: int, rng: random.Random, turns: int) -> Episode:
    """A dialogue of a few questions and an answer."""
    asked = tuple(Turn(said := sentence(rng, 12), said, Reply(sentence(rng, 15))) for _ in range(turns - 1))
    answer = f"def total(n):\n    n = max(n, {number})\n    return n"
    last = f"I WANT TO ANSWER:\n{answer}"
    return Episode(
        task_id=f"task-{number // 4}",
        attempt=number % 4,
        seed=0,
        agent="agent",
        collaborator="collaborator",
        request=sentence(rng, 20),
        turns=(*asked, Turn(last, last)),
        ending=Ending.ANSWERED,
        answer=answer,
    )


def about(episode: Episode, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """The episode, its verdict and the credit of its turns, each with the name of its file."""
    yield "episodes.jsonl", episode
    passed = rng.randint(0, 10)
    checks = tuple(Check(f"test{n}", Outcome.PASSED if n < passed else Outcome.WRONG) for n in range(10))
    yield (
        "verdicts.jsonl",
        Verdict(
            task_id=episode.task_id,
            episode_id=episode.id,
            scorer="backend-module/2",
            answer_digest="-",
            reward=passed / 10,
            success=passed == 10,
            checks=checks,
        ),
    )
    for turn in range(len(episode.turns)):
        yield (
            "credit.jsonl",
            TurnCredit(
                episode_id=episode.id,
                task_id=episode.task_id,
                turn=turn,
                critic="c",
                advantage=rng.gauss(0, 1),
            ),
        )


def write_run(folder: Path, count: int, turns: int) -> None:
    """A run of `count` dialogues."""
    rng, encode = random.Random(0), msgspec.json.Encoder().encode
    names = ("episodes.jsonl", "verdicts.jsonl", "credit.jsonl")
    files = {name: (folder / name).open("wb") for name in names}
    for number in range(count):
        for name, record in about(dialogue(number, rng, turns), rng):
            files[name].write(encode(record) + b"\n")
    for file in files.values():
        file.close()


def build(folder: Path, index: Path) -> dict[str, float]:
    """Index the run in this process; its CPU time and peak memory."""
    from sweetrl.viewer.index import Index
    from sweetrl.viewer.sources import parse_words

    started = time.process_time()  # what is imported is not counted
    with Index(index, parse_words([str(folder)])) as made:
        made.extend()
    return {
        "cpu_seconds": time.process_time() - started,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_own_process(folder: Path, index: Path) -> dict[str, float]:
    """`build`, so that nothing else counts."""
    command = [sys.executable, __file__, "--build", str(folder), str(index)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def milliseconds(ask: Callable[[], object]) -> float:
    """The median CPU time of a question."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        ask()
        times.append(time.process_time() - started)
    return round(1000 * statistics.median(times), 1)


def questions(index: Path) -> dict[str, float]:
    """What pages cost that a person opens, in milliseconds; each as the server makes it, counting included."""
    from sweetrl.viewer.queries import Query, Reader

    asked = {
        "first page": Query(),
        "search, two common words": Query(text="badade colion"),
        "search, a word of every dialogue": Query(text="return"),
        "search, a prefix of many words": Query(text="b"),
        "search, a rare word": Query(text='"77777"'),
        "search, a phrase of two words": Query(text='"badade colion"'),
        "search, a phrase of every dialogue": Query(text='"def total"'),
        "search, nothing found": Query(text="nowhere"),
        "search, most hurt by one turn first": Query(text="badade", sort="hurt"),
        "most hurt by one turn": Query(sort="hurt"),
        "failures, lowest reward": Query(outcome="failure", sort="reward"),
        "last page": Query(page=max(0, Reader(index).page(Query())[1] // 50 - 1)),
    }

    def ask(query: Query) -> None:
        reader = Reader(index)
        reader.runs()
        reader.page(query)

    return {name: milliseconds(lambda query=query: ask(query)) for name, query in asked.items()}  # type: ignore[misc]


def serving_peak(folder: Path, index: Path) -> float:
    """Megabytes that a server has taken at most when it has read an index and shown each kind of page."""
    command = [sys.executable, "-m", "sweetrl", "view", str(folder), "--index", str(index)]
    command += ["--port", "0", "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            base, _, token = json.loads(server.stdout.readline())["address"].partition("?token=")

            def get(path: str) -> bytes:
                request = Request(base + path, headers={"Authorization": f"Bearer {token}"})
                with urlopen(request) as answer:
                    content: bytes = answer.read()
                return content

            row = json.loads(get("api/dialogues"))["dialogues"][0]
            dialogue = f"of={quote(str(row['run']))}&id={quote(row['id'])}"
            shown = (f"dialogue?{dialogue}", f"dialogue?{dialogue}&hidden=1", "metrics")
            for path in ("", "?q=b", "?sort=hurt", *shown):
                get(path)
            status = Path(f"/proc/{server.pid}/status").read_text()
        finally:
            server.terminate()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(count: int, turns: int, kept: Path | None) -> dict[str, Any]:
    """Everything about a run of one size; one that is `kept` is made once."""
    with tempfile.TemporaryDirectory() as place:
        folder, index = kept or Path(place) / "run", Path(place) / "index.sqlite"
        if not folder.exists():
            folder.mkdir()
            write_run(folder, count, turns)
        files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
        everything = in_own_process(folder, index)
        (Path(place) / "alone").mkdir()
        (Path(place) / "alone" / "episodes.jsonl").symlink_to(folder / "episodes.jsonl")
        alone = in_own_process(Path(place) / "alone", Path(place) / "alone.sqlite")
        return {
            "episodes": count,
            "turns": turns,
            "megabytes": {name: round(size / 1e6, 1) for name, size in files.items()},
            "index_megabytes": round(index.stat().st_size / 1e6, 1),
            "episodes_per_second_dialogues_alone": round(count / alone["cpu_seconds"]),
            "episodes_per_second_with_verdicts_and_credit": round(count / everything["cpu_seconds"]),
            "peak_mb": round(everything["peak_mb"], 1),
            "milliseconds": questions(index),
            "serving_peak_mb": round(serving_peak(folder, index), 1),
        }


def main() -> None:
    """Measure one size, print it and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--run", type=Path, help="use the run in this folder, or make it there")
    parser.add_argument("--build", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        print(json.dumps(build(*arguments.build)))
        return
    found = measure(arguments.episodes, arguments.turns, arguments.run)
    text = json.dumps(found, indent=2)
    print(text)
    if arguments.episodes == 100_000:
        (ROOT / "benchmarks/results/viewer_index.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
