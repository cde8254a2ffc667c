"""What a person who watches a study is told: in words, and how long it will take."""

from pathlib import Path

import pytest

from conftest import CHECKOUT
from sweetrl.cli import progress
from sweetrl.cli.schedule import Schedule
from sweetrl.cli.screen import WATCHED, Clock, in_words, weight
from sweetrl.cli.study import plan
from sweetrl.settings import load_study


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_stages_are_told_in_words_with_the_name_of_their_method() -> None:
    study = load_study(CHECKOUT / "recipes" / "mini_paper.toml")
    told = {stage.name: in_words(study, stage) for stage in plan(study).stages}
    assert told["seed-2001/policies/dpo"] == "seed-2001, multi-turn DPO: learns from pairs of dialogues"
    assert told["seed-2000/evaluations/base"].startswith("seed-2000, untrained: ")
    assert "critic" in told["seed-2000/critics/sweet"]
    assert told["seed-2000/best_of/sweet-4"].startswith("seed-2000, sweet-4: ")


def test_more_dialogues_weigh_more() -> None:
    weights = []
    for tasks in (10, 1000):
        study = load_study(
            CHECKOUT / "recipes" / "quickstart.toml", [f"tasks.train=mini-backend:train:{tasks}"]
        )
        planned = plan(study)
        pairs = zip(planned.recipes, planned.stages, strict=True)
        weights.append({stage.name: weight(recipe, stage) for recipe, stage in pairs})
    few, many = weights
    for part in ("episodes", "candidates", "ranked/sweet", "critics/sweet", "policies/sweet", "policies/rft"):
        assert many[f"seed-0/{part}"] > 2 * few[f"seed-0/{part}"], part
    assert many["seed-0/evaluations/rft"] == few["seed-0/evaluations/rft"]


def clock(weights: list[float], time: Time, *, needs: dict[int, int] | None = None, jobs: int = 1) -> Clock:
    """Of stages each of which may need another."""
    needed = [frozenset({needs[each]} if needs and each in needs else ()) for each in range(len(weights))]
    return Clock(weights, Schedule(needed, jobs=jobs), now=time)


def begin(clock: Clock) -> list[int]:
    started = list(clock.schedule.starting())
    for number in started:
        clock.start(number)
    return started


def end(clock: Clock, number: int) -> None:
    clock.schedule.end(number)
    clock.finish(number)


def test_the_time_left_follows_the_speed_of_this_machine() -> None:
    time = Time()
    watched = clock([1000.0, 1000.0, 500.0], time)
    assert begin(watched) == [0]
    assert watched.left({0: 0.0}) == pytest.approx(2500)
    time.seconds = 2000.0
    end(watched, 0)
    assert begin(watched) == [1]
    # Twice as slow as ordinary, but for the little that an ordinary speed still counts.
    assert watched.left({}) == pytest.approx(1500 * (2000 + WATCHED) / (1000 + WATCHED))
    time.seconds += 1000.0
    assert watched.left({1: 0.5}) == pytest.approx(1000 * (3000 + WATCHED) / (1500 + WATCHED))
    assert watched.left_of(1, {1: 0.5}) == pytest.approx(500 * (3000 + WATCHED) / (1500 + WATCHED))
    assert watched.share({1: 0.5}) == pytest.approx(1500 / 2500)


def test_stages_that_were_done_before_say_nothing_about_the_speed() -> None:
    watched = clock([1000.0, 100.0], Time())
    watched.schedule.end(0)
    begin(watched)
    assert watched.left({}) == pytest.approx(100)
    assert watched.share({}) == pytest.approx(1000 / 1100)


def test_stages_side_by_side_take_less_time_unless_they_wait_for_each_other() -> None:
    weights = [1000.0, 1000.0, 500.0]
    assert clock(weights, Time(), jobs=2).left({}) == pytest.approx(1500)
    assert clock(weights, Time(), jobs=3).left({}) == pytest.approx(1000)
    assert clock(weights, Time(), jobs=3, needs={1: 0, 2: 1}).left({}) == pytest.approx(2500)
    watched = clock(weights, Time(), jobs=2)
    begin(watched)
    assert watched.left({0: 0.5, 1: 0.25}) == pytest.approx(1000 * WATCHED / (750 + WATCHED))


# ---------------------------------------------------------------- how far a command is


def test_a_command_tells_who_asked_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "progress"
    assert progress.told(path) == 0.0
    monkeypatch.setenv(progress.VARIABLE, str(path))
    tell = progress.teller()
    assert tell is not None
    tell(1, 4)
    assert progress.told(path) == 0.25
    tell(4, 4)  # the end is told however soon it comes
    assert progress.told(path) == 1.0


def test_nobody_is_told_who_did_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    assert progress.teller() is None


@pytest.mark.parametrize("content", ["", "3", "a b", "1 0", "1 2 3", "\x00"])
def test_a_line_that_is_not_whole_is_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "progress").write_text(content)
    assert progress.told(tmp_path / "progress") == 0.0


def test_rollouts_and_bars_tell_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweetrl) -> None:
    path = tmp_path / "progress"
    monkeypatch.setenv(progress.VARIABLE, str(path))
    tasks = "mini-backend:test:3"
    ended = sweetrl(
        "rollout",
        "--tasks",
        tasks,
        "--agent",
        "mini-random",
        "--collaborator",
        "colleague",
        "-o",
        tmp_path,
        "-q",
    )
    assert ended.code == 0, ended.err
    assert path.read_text().split()[1] == "3"
    path.unlink()
    ended = sweetrl(
        *(
            "score",
            "--tasks",
            tasks,
            "--episodes",
            tmp_path / "episodes.jsonl",
            "-o",
            tmp_path / "v.jsonl",
            "-q",
        )
    )
    assert ended.code == 0, ended.err
    assert path.read_text() == "3 3\n"
