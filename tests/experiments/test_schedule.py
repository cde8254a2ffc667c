"""Which stages may run side by side."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some

from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.schedule import Schedule, needs_of


def stage(output: str, *inputs: str, also: tuple[str, ...] = ()) -> Stage:
    return Stage(output, (), inputs, Path(output), also=tuple(map(Path, also)))


def test_a_stage_needs_those_that_write_what_it_reads() -> None:
    planned = [
        stage("run/episodes.jsonl", "mini-backend:train:8"),
        stage("run/critic", "./run/episodes.jsonl"),
        stage("run/sizes/episodes.jsonl", "run/episodes.jsonl", also=("run/sizes/pairs.jsonl",)),
        stage("run/policy", "run/sizes/pairs.jsonl", "elsewhere/pairs.jsonl"),
        stage("run/report", "run/critic/model.safetensors", "run/policy"),
    ]
    assert needs_of(planned) == [frozenset(), {0}, {0}, {2}, {1, 3}]


def test_stages_start_in_the_order_of_the_plan_as_soon_as_they_can() -> None:
    schedule = Schedule([frozenset(), frozenset({0}), frozenset(), frozenset()], jobs=2)
    assert list(schedule.starting()) == [0, 2]
    assert list(schedule.starting()) == []
    schedule.end(2)
    assert list(schedule.starting()) == [3]
    schedule.end(0)
    assert list(schedule.starting()) == [1]


def test_nothing_runs_beside_a_stage_that_must_be_alone() -> None:
    schedule = Schedule([frozenset()] * 4, jobs=3, alone=frozenset({1}))
    assert list(schedule.starting()) == [0]
    schedule.end(0)
    assert list(schedule.starting()) == [1]
    assert list(schedule.starting()) == []
    schedule.end(1)
    assert list(schedule.starting()) == [2, 3]


def test_nothing_starts_after_a_stop_and_what_was_done_before_never_does() -> None:
    schedule = Schedule([frozenset(), frozenset({0}), frozenset({1})], jobs=2)
    schedule.end(0)
    assert list(schedule.starting()) == [1]
    schedule.stop()
    schedule.end(1)
    assert list(schedule.starting()) == []


@given(some.data(), some.integers(1, 4))
def test_a_schedule_takes_no_less_than_its_work_and_its_longest_chain(
    data: some.DataObject, jobs: int
) -> None:
    count = data.draw(some.integers(1, 8))
    needs = [frozenset(data.draw(some.sets(some.integers(0, n - 1))) if n else ()) for n in range(count)]
    seconds = {n: float(data.draw(some.integers(1, 9))) for n in range(count)}
    ends: list[float] = []
    for number in range(count):
        ends.append(seconds[number] + max((ends[each] for each in needs[number]), default=0.0))
    schedule = Schedule(needs, jobs=jobs)
    length = schedule.length(seconds)
    assert max(max(ends), sum(seconds.values()) / jobs) <= length <= sum(seconds.values())
    assert schedule.waiting == list(range(count))
