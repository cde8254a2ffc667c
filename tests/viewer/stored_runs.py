"""Small run folders for the tests of the viewer, and a real server over them."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from report.samples import credit, episode, png, verdict
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import (
    CandidateSet,
    Episode,
    OutputValue,
    Reply,
    Screenshots,
    Task,
    TokenCredit,
    Turn,
    TurnValues,
    picture_digest,
)
from sweetrl.viewer.app import Viewer
from sweetrl.viewer.imports import with_imports
from sweetrl.viewer.index import Index
from sweetrl.viewer.metrics import Metrics
from sweetrl.viewer.queries import Reader
from sweetrl.viewer.secrets import Secrets
from sweetrl.viewer.server import following
from sweetrl.viewer.sources import parse_words

REFERENCE = "def double(x):\n    return x + x"
HIDDEN_TEST = "double(21)"


def write_records(path: Path, records: Sequence[Any], mode: str = "wb") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.write(b"".join(msgspec.json.encode(each) + b"\n" for each in records))


def said(held: Episode, *outputs: str) -> Episode:
    """The same dialogue with other questions before the answer."""
    turns = tuple(Turn(output, output, Reply(f"About {output}: yes.")) for output in outputs)
    return msgspec.structs.replace(held, turns=(*turns, held.turns[-1]))


def write_run(folder: Path, rewards: dict[str, float | None], *, worst: float = -0.5) -> Path:
    """Dialogues of two turns with verdicts and credit; the second turn of each did harm."""
    held = [episode(task) for task in rewards]
    write_records(folder / "episodes.jsonl", held)
    write_records(folder / "verdicts.jsonl", [verdict(task, reward) for task, reward in rewards.items()])
    tokens = (TokenCredit("Question", -0.1), TokenCredit(" 1?", 0.5))
    credited = [
        msgspec.structs.replace(judged, tokens=tokens)
        for number, each in enumerate(held)
        for judged in credit(each.task_id, [0.4, worst - number / 10])
    ]
    write_records(folder / "credit.jsonl", credited)
    return folder


def write_candidates(folder: Path, name: str) -> None:
    """Three candidates for the first turn, ranked, two of them with replay values."""
    about = {"episode_id": name, "task_id": name.partition("#")[0], "turn": 0}
    outputs = ("Question 1?", "Is it blue?", "How large?")
    write_records(
        folder / "ranked.jsonl",
        [CandidateSet(**about, outputs=outputs, advantages=(0.1, -0.2, 0.7), critic="test-critic")],
    )
    values = TurnValues(
        **about,
        outputs=outputs[:2],
        values=(OutputValue((1.0, 0.0), (True, False)), OutputValue((0.25,), (False,))),
        agent="a",
        collaborator="c",
        scorer="s",
    )
    write_records(folder / "values.jsonl", [values])


def write_tasks(path: Path, ids: Sequence[str]) -> Path:
    secret = BackendSecret(REFERENCE, {"test1": HIDDEN_TEST})
    tasks = [Task(id=each, domain="backend", request=f"Please write {each}.", secret=secret) for each in ids]
    write_records(path, tasks)
    return path


def write_pages(folder: Path, task: str, *, heights: tuple[int, int] = (80, 80)) -> Path:
    """A run about a page, with screenshots of these heights."""
    names = []
    for shade, height in zip((200, 90), heights, strict=True):
        picture = png(120, height, (shade, 120, 160))
        names.append(picture_digest(picture))
        (folder / "screenshots").mkdir(parents=True, exist_ok=True)
        (folder / "screenshots" / f"{names[-1]}.png").write_bytes(picture)
    shots = Screenshots(*names)
    write_records(folder / "episodes.jsonl", [episode(task)])
    scored = msgspec.structs.replace(verdict(task, 0.5, scorer="frontend-layout/1"), screenshots=shots)
    write_records(folder / "verdicts.jsonl", [scored])
    return folder


def write_training(folder: Path, steps: int) -> None:
    """A model with the log of its training."""
    write_records(folder / "log.jsonl", [{"loss": 1 / step, "step": step} for step in range(1, steps + 1)])
    write_records(folder / "sweetrl.json", [{"model": "seed-model", "settings": {"method": "dpo"}}])


def indexed(folder: Path, *words: str) -> Reader:
    """The index of a folder, brought up to date."""
    path = folder.parent / f"{folder.name}.sqlite"
    with Index(path, parse_words([*words] or [str(folder)])) as index:
        index.extend()
    return Reader(path)


@contextmanager
def served(
    words: Sequence[str],
    index: Path,
    *,
    tasks: Sequence[str] = (),
    token: str | None = None,
    once: str | None = None,
) -> Iterator[str]:
    """The address of a real server that follows these runs."""
    import uvicorn

    given = with_imports(parse_words(words), index.with_suffix(".imported"))
    with Index(index, given) as made:
        made.extend()
        reader = Reader(index)
        viewer = Viewer(
            reader,
            Secrets(tasks, [each.root for each in given], reader.folders),
            Metrics(reader, given),
            "tester",
        )
        app = viewer.application(hosts=frozenset({"localhost"}), token=token, once=once)
        config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        started = threading.Event()
        startup = server.startup

        async def starting(sockets: Any = None) -> None:
            await startup(sockets)
            started.set()

        server.startup = starting  # type: ignore[method-assign]
        with following(made, 0.2):
            thread.start()
            assert started.wait(60)
            port = server.servers[0].sockets[0].getsockname()[1]
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                server.should_exit = True
                thread.join()
