"""The Ray executor on a real cluster of three raylets, whose workers and machines are killed while they write."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sweetrl.cli import main
from sweetrl.domains.backend.secret import backend_secret
from sweetrl.domains.sources import load_tasks
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.runner import Runner
from sweetrl.records import read_card

ray = pytest.importorskip("ray", reason="ray is not installed: make test-integrations", exc_type=ImportError)

from sweetrl.experiments.on_ray import RayExecutor  # noqa: E402

pytestmark = pytest.mark.timeout(900)
STORE = 80 << 20
os.environ.setdefault("RAY_worker_niceness", "0")  # else workers starve on a machine that is busy


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three machines with a core each, as far as Ray can tell."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": STORE}
    made = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    for _ in range(2):
        made.add_node(**node)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


class Killer(threading.Thread):
    """Stops whoever writes a shard when some of its records are there, and kills it, or the raylet that it is of."""

    def __init__(self, shards: Path, name: str, size: int, *, raylet: bool, spared: int) -> None:
        """The raylet `spared` is the one that this process is connected to."""
        super().__init__(daemon=True)
        self.records = 0
        """How many there were when the process was killed."""
        self.attempt = Path()
        self.ended: list[int] = []
        """That process and all that it had started."""
        self._pattern = f"*.attempt-1/{name}.*-of-*.jsonl"
        self._shards, self._size = shards, size
        self._raylet, self._spared = raylet, spared

    def run(self) -> None:
        while not self.records:
            for path in self._shards.glob(self._pattern):
                self._try(path)
            time.sleep(0.001)

    def _try(self, path: Path) -> None:
        writer = writer_of(path)
        if self.records or writer is None or (self._raylet and parent_of(writer) == self._spared):
            return
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(writer, signal.SIGSTOP)
            count = path.read_bytes().count(b"\n")
            if 0 < count < self._size and writer_of(path) == writer:
                self.ended = [writer, *descendants(writer)]
                if self._raylet:
                    os.kill(parent_of(writer), signal.SIGKILL)
                else:
                    os.kill(writer, signal.SIGKILL)
                self.records, self.attempt = count, path.parent
            else:
                os.kill(writer, signal.SIGCONT)


def writer_of(path: Path) -> int | None:
    """The process that has a file open, other than this one."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and b"ray::" in (process / "cmdline").read_bytes():
                for descriptor in (process / "fd").iterdir():
                    if descriptor.readlink() == path:
                        return int(process.name)
    return None


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def descendants(process: int) -> list[int]:
    found = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return found + [each for child in found for each in descendants(child)]


def is_alive(process: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def await_end(processes: list[int]) -> None:
    deadline = time.monotonic() + 60
    while any(map(is_alive, processes)):
        assert time.monotonic() < deadline, "processes outlived their worker"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 tasks and 500 answers, each of which takes its time; what one process makes of them."""
    folder = tmp_path_factory.mktemp("inputs")
    assert main.run(["tasks", "make", "mini-backend", "--n", "100", "-o", str(folder / "tasks.jsonl")]) == 0
    tasks = load_tasks(str(folder / "tasks.jsonl")).values()
    answers = [
        {"task_id": task.id, "attempt": attempt, "answer": f"import time\ntime.sleep(0.002)\n{code}"}
        for attempt in range(5)
        for task in tasks
        for code in [backend_secret(task).reference]
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers))
    assert main.run([*scoring(folder), str(folder / "verdicts.jsonl"), "--no-check", "--quiet"]) == 0
    assert main.run([*dialogues(folder), str(folder), "--quiet"]) == 0
    return folder


def scoring(folder: Path) -> tuple[str, ...]:
    files = ("--tasks", f"{folder}/tasks.jsonl", "--answers", f"{folder}/answers.jsonl")
    return ("score", *files, "-o")


def drawing(folder: Path) -> tuple[str, ...]:
    """Candidates by a model, which takes the training stack."""
    sampling = ("--n", "2", "--fraction", "0.12", "--agent-max-tokens", "48", "--concurrency", "1")
    return ("candidates", "--episodes", f"{folder}/episodes.jsonl", "--agent", "mini", *sampling, "-o")


def dialogues(folder: Path) -> tuple[str, ...]:
    sides = (
        "--agent",
        "scripted:curious",
        "--collaborator",
        "colleague",
        "--attempts",
        "2",
        "--concurrency",
        "1",
    )
    return ("rollout", "--tasks", f"{folder}/tasks.jsonl", *sides, "-o")


def run_on_ray(folder: Path, stage: Stage, shards: int) -> None:
    executor = RayExecutor(folder, command=main.run, shards={stage.arguments[0]: shards})
    Runner(folder, [stage], executor=executor).run()


def score_stage(inputs: Path, folder: Path) -> Stage:
    output = folder / "verdicts.jsonl"
    return Stage("score", (*scoring(inputs), str(output)), (), output)


def rollout_stage(inputs: Path, folder: Path) -> Stage:
    return Stage("rollout", (*dialogues(inputs), str(folder)), (), folder / "episodes.jsonl")


def candidates_stage(inputs: Path, folder: Path) -> Stage:
    output = folder / "candidates.jsonl"
    return Stage("candidates", (*drawing(inputs), str(output)), (), output)


def config_of(folder: Path, name: str) -> dict[str, Any]:
    card = json.loads((folder / f"{name}.run.json").read_bytes())
    return {key: card[key] for key in ("command", "config", "records", "sha256")}


@pytest.fixture(scope="module")
def drawn(inputs: Path) -> Path:
    """The inputs with candidates, drawn in one process."""
    pytest.importorskip("torch", reason="needs the extra `train`: make test-integrations")
    assert main.run([*drawing(inputs), str(inputs / "candidates.jsonl"), "--quiet"]) == 0
    return inputs


@pytest.mark.parametrize("raylet", [False, True], ids=["worker", "raylet"])
@pytest.mark.parametrize(
    ("name", "shards", "size", "make"),
    [("verdicts", 10, 50, score_stage), ("episodes", 4, 50, rollout_stage)],
    ids=["500 answers", "200 dialogues"],
)
def test_a_killed_writer_changes_no_byte(
    cluster: Any, inputs: Path, tmp_path: Path, name: str, shards: int, size: int, make: Any, raylet: bool
) -> None:
    stage, head = make(inputs, tmp_path), cluster.head_node.all_processes["raylet"][0].process.pid
    killer = Killer(tmp_path / "shards" / stage.name, name, size, raylet=raylet, spared=head)
    killer.start()
    run_on_ray(tmp_path, stage, shards)
    assert 0 < killer.records < size, "no process was killed in the middle of a shard"
    await_end(killer.ended)
    assert (tmp_path / f"{name}.jsonl").read_bytes() == (inputs / f"{name}.jsonl").read_bytes()
    assert config_of(tmp_path, name) == config_of(inputs, name)
    assert not (tmp_path / "shards").exists() or not list((tmp_path / "shards").rglob("*-of-*"))
    if raylet:
        cluster.add_node(num_cpus=1, object_store_memory=STORE)


def test_one_actor_makes_several_shards_with_its_model_and_a_killed_one_changes_no_byte(
    cluster: Any, drawn: Path, tmp_path: Path
) -> None:
    size = read_card(drawn / "candidates.jsonl").records // 6
    stage = candidates_stage(drawn, tmp_path)
    killer = Killer(tmp_path / "shards" / stage.name, "candidates", size, raylet=False, spared=0)
    killer.start()
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    executor = RayExecutor(tmp_path, command=noting, shards={"candidates": 6})
    Runner(tmp_path, [stage], executor=executor).run()
    assert killer.records > 0, "no actor was killed in the middle of a shard"
    await_end(killer.ended)
    assert (tmp_path / "candidates.jsonl").read_bytes() == (drawn / "candidates.jsonl").read_bytes()
    attempts = (tmp_path / NOTED).read_text().split()
    assert len(attempts) > 6
    assert len(set(attempts)) < len(attempts)
    await_end([int(each) for each in attempts])


NOTED = "processes.txt"


def noting(words: Sequence[str]) -> int:
    """The command, by a process that leaves its number beside the output of the run."""
    folder = Path(words[words.index("-o") + 1]).parents[3]
    if "--shard" in words:
        with (folder / NOTED).open("a") as file:
            file.write(f"{os.getpid()}\n")
    return main.run(words)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_run_that_ends_takes_its_shards_along_and_resumes_them(
    cluster: Any, inputs: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "recipe.toml").write_text(
        f'output = "run"\nalgorithm = "none"\nexecutor = "ray"\n[shards]\nevaluate = 4\n'
        f'[tasks]\ntrain = "{inputs}/tasks.jsonl"\ntest = "{inputs}/tasks.jsonl"\n'
        '[agent]\nmodel = "scripted:curious"\n[collaborator]\nmodel = "colleague"\n[rollout]\nconcurrency = 1\n'
    )
    command = [sys.executable, "-m", "sweetrl", "run", "recipe.toml", "--quiet"]
    place: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "RAY_ADDRESS": cluster.address}}
    with subprocess.Popen(command, **place) as run:
        writer = await_writer(tmp_path / "run/shards")
        run.send_signal(number)
        assert run.wait(120) == code
    await_end([writer])
    subprocess.run(command, **place, check=True)
    folder = tmp_path / "run/evaluation"
    words = ("--agent", "scripted:curious", "--collaborator", "colleague", "--concurrency", "1")
    alone = ("evaluate", "--tasks", f"{inputs}/tasks.jsonl", *words, "--quiet", "-o", str(tmp_path / "alone"))
    assert main.run(alone) == 0
    for name in ("episodes.jsonl", "verdicts.jsonl", "metrics.json"):
        assert (folder / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def await_writer(shards: Path) -> int:
    """The process that writes one of the shards, once there is a record."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for path in shards.rglob("*.attempt-*/*-of-4.jsonl"):
            if path.stat().st_size and (writer := writer_of(path)) is not None:
                return writer
        time.sleep(0.001)
    raise AssertionError("no shard is written")
