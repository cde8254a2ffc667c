"""How long the stages of a plan still take."""

import pytest

from conftest import CHECKOUT
from sweetrl.experiments.schedule import Schedule, needs_of
from sweetrl.experiments.study_plan import plan
from sweetrl.experiments.time_left import Clock, kind_of, weight
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
    assert watched.left({}) == pytest.approx(3000, rel=0.03)
    time.seconds += 1000.0
    assert watched.left({1: 0.5}) == pytest.approx(2000, rel=0.03)
    assert watched.left_of(1, {1: 0.5}) == pytest.approx(1000, rel=0.03)
    assert watched.share({1: 0.5}) == pytest.approx(1500 / 2500)


def test_a_stage_goes_on_at_its_own_pace_and_others_of_its_kind_at_the_same() -> None:
    time = Time()
    watched = clock([1000.0, 1000.0, 1000.0], time, jobs=2)
    watched.kinds = ["train", "talk", "talk"]
    begin(watched)
    time.seconds = 404.0
    parts = {0: 0.8, 1: 0.1}  # one twice as fast as expected, one four times as slow
    assert watched.left_of(0, parts) == pytest.approx(100, rel=0.1)
    assert watched.left_of(1, parts) == pytest.approx(3600, rel=0.1)
    assert watched.left_of(2, parts) > 3000


def test_a_stage_that_still_starts_says_nothing_about_the_speed() -> None:
    time = Time()
    watched = clock([100.0, 100.0], time)
    begin(watched)
    time.seconds = 30.0
    assert watched.left({0: 0.0}) == pytest.approx(200)


MEASURED = {
    "evaluations/base": 15.0,
    "episodes": 41.8,
    "verdicts": 19.1,
    "policies/rft": 47.0,
    "evaluations/rft": 22.2,
    "pairs": 1.1,
    "candidates": 120.2,
    "critics/sweet": 312.9,
    "policies/dpo": 364.7,
    "evaluations/dpo": 25.4,
    "ranked/sweet": 46.6,
    "turn_pairs/sweet": 1.7,
    "policies/sweet": 249.3,
    "evaluations/sweet": 21.6,
}
"""Seconds of the stages of a quickstart, two at a time on two cores that had other work as well."""


@pytest.mark.parametrize("slower", [0.4, 1.0, 2.5])
def test_after_the_first_minute_the_time_left_of_a_quickstart_is_right_within_a_factor_of_two(
    slower: float,
) -> None:
    planned = plan(load_study(CHECKOUT / "recipes" / "quickstart.toml"))
    weights = [weight(*each) for each in zip(planned.recipes, planned.stages, strict=True)]
    seconds = [slower * MEASURED[stage.name.partition("/")[2]] for stage in planned.stages]
    time = Time()
    watched = Clock(
        weights, Schedule(needs_of(planned.stages), jobs=2), list(map(kind_of, planned.stages)), time
    )
    ends: dict[int, float] = {}
    announced = []
    while begin_all(watched, ends, seconds) or ends:
        time.seconds += 1.0
        for number in [number for number, at in ends.items() if at <= time.seconds]:
            end(watched, number)
            del ends[number]
        parts = {number: 1 - (at - time.seconds) / seconds[number] for number, at in ends.items()}
        announced.append((time.seconds, watched.left(parts)))
    whole = time.seconds
    # At the end seconds decide, and nobody minds.
    wrong = [(at, left, whole - at) for at, left in announced if 60 <= at <= whole - 20]
    assert wrong
    assert [each for each in wrong if not each[2] / 2 <= each[1] <= 2 * each[2]] == []


def begin_all(clock: Clock, ends: dict[int, float], seconds: list[float]) -> list[int]:
    started = begin(clock)
    ends.update({number: clock.now() + seconds[number] for number in started})
    return started


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
    assert watched.left({0: 0.5, 1: 0.25}) < 100
