"""Stages in shards: what they write, and what becomes of a shard whose process is lost."""

import importlib.util
import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from sweetrl.cli import main
from sweetrl.errors import ConfigError, MissingExtra
from sweetrl.experiments import local
from sweetrl.experiments.local import GPUS, LocalExecutor
from sweetrl.experiments.on_ray import RayExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.runner import RunFailedError, Runner
from sweetrl.experiments.sharding import (
    INCOMPLETE,
    LOST,
    MOST_ATTEMPTS,
    Parts,
    ShardedStage,
    loads_model,
)
from sweetrl.records import read_card, write_card
from sweetrl.settings import load_recipe, settings_fields
from sweetrl.settings.recipes import ShardedCommand
from sweetrl.settings.words import STAGES
from sweetrl.types import CandidateSet

TASKS = "mini-backend:train:5"
SIDES = ("--agent", "scripted:curious", "--collaborator", "colleague", "--concurrency", "1")


class Ended:
    """A child that has ended when it is asked for the first time."""

    def __init__(self, code: int) -> None:
        self._code = code

    def poll(self) -> int:
        return self._code

    def terminate(self) -> None:
        pass

    def wait(self) -> None:
        pass


class Running(Ended):
    """A child that ends when it is told to."""

    def __init__(self) -> None:
        self.asked = False

    def poll(self) -> int | None:
        return -signal.SIGTERM if self.asked else None

    def terminate(self) -> None:
        self.asked = True


def at_once(stage: Stage, _place: int | None = None) -> Ended:
    """The stage in this process."""
    return Ended(main.run(stage.arguments))


def in_shards(stage: Stage, folder: Path, count: int, launch: Callable = at_once, places: int = 2) -> int:
    parts = Parts(stage, folder / "shards" / stage.name, count, workers=1)
    sharded = ShardedStage(parts, launch, places, lambda *_: None)
    while (code := sharded.poll()) is None:
        pass
    return code


def rollout_to(folder: Path) -> Stage:
    words = ("rollout", "--tasks", TASKS, *SIDES, "--attempts", "2", "-o", str(folder))
    return Stage("rollout", words, (), folder / "episodes.jsonl")


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    assert main.run(rollout_to(folder).arguments) == 0
    return folder / "episodes.jsonl"


def files_in(folder: Path) -> dict[str, bytes]:
    """Records and metrics by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in ("*.jsonl", "metrics.json")
        for path in folder.rglob(pattern)
    }


@pytest.mark.parametrize(
    "command",
    [
        ("rollout", "--tasks", TASKS, *SIDES, "--attempts", "2", "-o", "{}"),
        ("evaluate", "--tasks", TASKS, *SIDES, "-o", "{}/evaluation"),
        ("score", "--tasks", TASKS, "--episodes", "EPISODES", "-o", "{}/verdicts.jsonl"),
    ],
    ids=lambda words: words[0],
)
def test_a_stage_in_shards_writes_what_it_writes_alone(
    episodes: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    for name in ("alone", "shards"):
        (tmp_path / name).mkdir()
        words = tuple(word.replace("EPISODES", str(episodes)).format(tmp_path / name) for word in command)
        stage = Stage(command[0], words, (), Path(words[-1]))
        code = main.run(words) if name == "alone" else in_shards(stage, tmp_path / name, 3)
        assert code == 0
    assert files_in(tmp_path / "shards") == files_in(tmp_path / "alone") != {}


def test_a_model_ranks_and_draws_in_shards_as_alone(episodes: Path, tmp_path: Path) -> None:
    """On as many GPUs as there are: each shard has a process, and a model, of its own."""
    dialogues = ("--episodes", str(episodes), "--tasks", TASKS)
    drawn, ranked = tmp_path / "candidates.jsonl", tmp_path / "ranked.jsonl"
    drawing = ("candidates", *dialogues, "--agent", "mini", "--n", "2", "-o", str(drawn))
    assert in_shards(Stage("candidates", drawing, (), drawn), tmp_path, 2) == 0
    ranking = ("rank", *dialogues, "--candidates", str(drawn), "--critic", "zero:mini", "-o", str(ranked))
    assert in_shards(Stage("rank", ranking, (), ranked), tmp_path, 2) == 0

    assert main.run([*drawing[:-1], str(tmp_path / "drawn-alone.jsonl")]) == 0
    assert main.run([*ranking[:-1], str(tmp_path / "ranked-alone.jsonl")]) == 0
    assert sets_in(drawn) == sets_in(tmp_path / "drawn-alone.jsonl")
    ours, alone = sets_in(ranked), sets_in(tmp_path / "ranked-alone.jsonl")
    assert ours.keys() == alone.keys() != set()
    for identity, turn in ours.items():
        assert turn.advantages is not None
        assert turn.advantages == pytest.approx(alone[identity].advantages, abs=1e-6)


def sets_in(path: Path) -> dict[str, CandidateSet]:
    lines = path.read_bytes().splitlines()
    return {each.id: each for each in (msgspec.json.decode(line, type=CandidateSet) for line in lines)}


# ---------------------------------------------------------------- lost processes


class Losing:
    """Loses the second shard after two records, and lets its process write on when the next one works."""

    def __init__(self) -> None:
        self.found: list[int] = []
        """How many records each attempt of the shard began with."""
        self._lost = Path()

    def __call__(self, stage: Stage, _place: int | None) -> Ended:
        if "2/3" not in stage.arguments:
            return at_once(stage)
        folder = Path(stage.arguments[stage.arguments.index("-o") + 1])
        path = folder / "episodes.2-of-3.jsonl"
        self.found.append(path.read_bytes().count(b"\n") if path.exists() else 0)
        if len(self.found) > 1:
            with self._lost.open("ab") as file:
                file.write(b"of a process that lives on\n")
            return at_once(stage)
        at_once(stage)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:2]) + lines[2][:10])
        card = read_card(path)
        card.finished = card.records = card.sha256 = None
        write_card(path, card)
        self._lost = path
        return Ended(LOST)


def test_a_lost_shard_is_tried_again_with_its_records_beside_a_process_that_lives_on(
    episodes: Path, tmp_path: Path
) -> None:
    losing = Losing()
    assert in_shards(rollout_to(tmp_path), tmp_path, 3, losing) == 0
    assert losing.found == [0, 2]
    assert (tmp_path / "episodes.jsonl").read_bytes() == episodes.read_bytes()


def test_a_run_resumes_the_shards_of_another(episodes: Path, tmp_path: Path) -> None:
    def only_first(stage: Stage, _place: int | None) -> Ended:
        return at_once(stage) if "1/3" in stage.arguments else Ended(130)

    assert in_shards(rollout_to(tmp_path), tmp_path, 3, only_first, places=1) == 130
    assert not (tmp_path / "episodes.jsonl").exists()
    made: list[str] = []

    def noting(stage: Stage, _place: int | None) -> Ended:
        made.extend(word for word in stage.arguments if word.endswith("/3"))
        return at_once(stage)

    assert in_shards(rollout_to(tmp_path), tmp_path, 3, noting) == 0
    assert made == ["2/3", "3/3"]
    assert (tmp_path / "episodes.jsonl").read_bytes() == episodes.read_bytes()


def test_a_shard_that_is_always_lost_is_given_up(tmp_path: Path) -> None:
    started: list[Stage] = []

    def lose(stage: Stage, _place: int | None) -> Ended:
        started.append(stage)
        return Ended(LOST)

    assert in_shards(rollout_to(tmp_path), tmp_path, 1, lose) == LOST
    assert len(started) == MOST_ATTEMPTS


@pytest.mark.parametrize(("code", "wanted"), [(2, 2), (1, INCOMPLETE), (0, INCOMPLETE)])
def test_a_shard_without_its_records_ends_the_others(tmp_path: Path, code: int, wanted: int) -> None:
    other = Running()

    def launch(stage: Stage, _place: int | None) -> Ended:
        return other if "1/2" in stage.arguments else Ended(code)

    assert in_shards(rollout_to(tmp_path), tmp_path, 2, launch) == wanted
    assert other.asked
    assert not (tmp_path / "episodes.jsonl").exists()


def test_what_was_begun_without_shards_is_completed_without(episodes: Path, tmp_path: Path) -> None:
    lines = episodes.read_bytes().splitlines(keepends=True)
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(lines[:3]))
    card = read_card(episodes)
    card.finished = card.records = card.sha256 = None
    write_card(tmp_path / "episodes.jsonl", card)
    started: list[tuple[str, ...]] = []

    def noting(stage: Stage, _place: int | None) -> Ended:
        started.append(stage.arguments)
        return at_once(stage)

    assert in_shards(rollout_to(tmp_path), tmp_path, 3, noting) == 0
    assert started == [rollout_to(tmp_path).arguments]
    assert (tmp_path / "episodes.jsonl").read_bytes() == episodes.read_bytes()


def test_pictures_of_shards_go_to_those_of_the_stage(tmp_path: Path) -> None:
    def drawing(stage: Stage, place: int | None) -> Ended:
        if place is not None:
            pictures = Path(stage.arguments[stage.arguments.index("-o") + 1]) / "screenshots"
            pictures.mkdir()
            (pictures / f"{place}.png").touch()
        return at_once(stage)

    assert in_shards(rollout_to(tmp_path), tmp_path, 2, drawing) == 0
    assert sorted(path.name for path in (tmp_path / "screenshots").iterdir()) == ["0.png", "1.png"]
    assert not (tmp_path / "shards/rollout").exists()


# ---------------------------------------------------------------- executors


class Noting(LocalExecutor):
    """Notes the GPU of each shard that runs, and how many do at a time."""

    def __init__(self, folder: Path, shards: Mapping[str, int]) -> None:
        super().__init__(folder, shards=shards)
        self.seen: list[str | None] = []

    def _launch(self, stage: Stage, variables: Mapping[str, str]) -> Ended:
        self.seen.append(variables.get(GPUS))
        return at_once(stage)


def test_each_shard_has_a_gpu_of_its_own(
    episodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GPUS, "3,5")
    monkeypatch.setattr(local, "loads_model", lambda _: True)
    executor = Noting(tmp_path, {"rollout": 4})
    run = Runner(tmp_path, [rollout_to(tmp_path)], executor=executor)
    run.run()
    *shards, merge = executor.seen
    assert sorted(map(str, shards)) == ["3", "3", "5", "5"]
    assert merge is None
    assert (tmp_path / "episodes.jsonl").read_bytes() == episodes.read_bytes()
    [entry] = run._journal.entries
    assert entry["arguments"] == list(rollout_to(tmp_path).arguments)  # another run may have other shards
    assert executor.takes_all(rollout_to(tmp_path))


def test_a_stage_of_the_run_fails_with_its_shard(tmp_path: Path) -> None:
    executor = LocalExecutor(tmp_path, logs=True, shards={"rollout": 11})
    with pytest.raises(RunFailedError, match="rollout ended with code 2"):
        Runner(tmp_path, [rollout_to(tmp_path)], executor=executor).run()
    assert "there are only 10 records; use fewer shards" in (tmp_path / "logs/rollout.log").read_text()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("rank", "--critic", "run/critic"), True),
        (("rank", "--critic", "zero:hf:some/model"), True),
        (("rank", "--critic", "judge:openai:m@http://h:1/v1"), False),
        (("rank", "--critic", "scripted:overlap"), False),
        (("rank", "--critic", "values:run/values.jsonl"), False),
        (("candidates", "--agent", "mini"), True),
        (("candidates", "--agent", "openai:m@http://h:1/v1"), False),
        (("evaluate", "--agent", "scripted:curious", "--collaborator", "hf:some/model"), True),
        (("score",), False),
        (("train", "policy"), True),
    ],
)
def test_gpus_are_for_stages_with_a_model_of_their_own(words: tuple[str, ...], wanted: bool) -> None:
    assert loads_model(Stage("a", words, (), Path("a"))) is wanted


def test_the_commands_that_can_be_sharded_are_those_with_the_option() -> None:
    taking = {
        command
        for command, sections in STAGES.items()
        if any(field.name == "shard" for section in sections for field in settings_fields(section))
    }
    assert set(get_args(ShardedCommand)) == taking


def test_shards_of_other_commands_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text('output = "run"\nalgorithm = "none"\n[tasks]\ntrain = "a"\n[agent]\nmodel = "mini"\n'
                    '[collaborator]\nmodel = "colleague"\n')  # fmt: skip
    assert load_recipe(path, ["executor=ray", "shards.rank=8"]).shards == {"rank": 8}
    with pytest.raises(ConfigError, match="pairs"):
        load_recipe(path, ["shards.pairs=8"])


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_a_missing_ray_is_one_line(tmp_path: Path) -> None:
    run = Runner(tmp_path, [rollout_to(tmp_path)], executor=RayExecutor(tmp_path, command=main.run))
    with pytest.raises(MissingExtra, match="ray"):
        run.run()
    assert json.loads((tmp_path / "run.json").read_text() if (tmp_path / "run.json").exists() else "[]") == []
