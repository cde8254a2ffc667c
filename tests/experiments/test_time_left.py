"""How long the stages of a plan still take."""

import pytest

from conftest import CHECKOUT
from sweetrl.experiments.schedule import Schedule
from sweetrl.experiments.study_plan import plan
from sweetrl.experiments.time_left import WATCHED, Clock, weight
from sweetrl.settings import load_study


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


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
