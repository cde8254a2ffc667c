"""Actors for the shards of a stage, played by objects that end when a test says so; `test_ray.py` has real ones."""

import signal
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from sweetrl import interrupts
from sweetrl.experiments import ray_crew
from sweetrl.experiments.ray_crew import Crew, Shard
from sweetrl.experiments.sharding import LOST


class Answer:
    """A call of an actor's method, as Ray returns it."""

    def __init__(self) -> None:
        self.told: Future[int] = Future()

    def future(self) -> "Future[int]":
        return self.told


class Actor:
    """An actor that has been asked for, and starts and answers on demand."""

    def __init__(self) -> None:
        self.started = Answer()
        self.calls: list[str] = []
        self.answer = Answer()
        self.ended = False
        self.__ray_ready__ = SimpleNamespace(remote=lambda: self.started)
        self.perform = SimpleNamespace(remote=self._begin)

    def _begin(self, call: str) -> Answer:
        self.calls.append(call)
        self.answer = Answer()
        return self.answer

    def start(self) -> None:
        self.started.told.set_result(0)

    def finish(self, code: int = 0) -> None:
        self.answer.told.set_result(code)

    def die(self) -> None:
        self.answer.told.set_exception(RuntimeError("the actor died"))


class Made:
    """A crew, its shards and all actors that it has asked for."""

    def __init__(self, *calls: str) -> None:
        self.actors: list[Actor] = []
        self.crew = Crew(SimpleNamespace(remote=self._new))
        self.shards = [self.crew.start(call) for call in calls]

    def _new(self) -> Actor:
        self.actors.append(Actor())
        return self.actors[-1]

    def codes(self) -> list[int | None]:
        return [shard.poll() for shard in self.shards]

    def ended(self) -> list[bool]:
        return [actor.ended for actor in self.actors]


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(actor: Any) -> None:
        actor.ended = True

    monkeypatch.setattr(ray_crew, "end", end)


def test_an_actor_that_has_made_a_shard_makes_the_next() -> None:
    made = Made("1", "2", "3")
    first = made.actors[0]
    first.start()
    assert made.codes() == [None, None, None]
    first.finish()
    assert made.codes() == [0, None, None]
    first.finish(1)
    assert made.codes() == [0, 1, None]
    first.finish()
    assert made.codes() == [0, 1, 0]
    assert first.calls == ["1", "2", "3"]


def test_whichever_actor_is_ready_takes_a_shard_and_those_that_are_not_needed_end() -> None:
    made = Made("1", "2", "3")
    made.actors[2].start()
    made.actors[0].start()
    made.codes()
    assert [actor.calls for actor in made.actors] == [["2"], [], ["1"]]
    assert made.ended() == [False, False, False]
    made.actors[0].finish()
    made.codes()
    assert made.actors[0].calls == ["2", "3"]
    assert made.ended() == [False, True, False]  # it would start only to find nothing left
    made.actors[2].finish()
    made.actors[0].finish()
    assert made.codes() == [0, 0, 0]
    assert made.ended() == [True, True, True]


def test_a_shard_whose_actor_dies_is_lost_and_another_attempt_gets_another_actor() -> None:
    made = Made("1", "2")
    for actor in made.actors:
        actor.start()
    made.codes()
    made.actors[0].die()
    assert made.codes() == [LOST, None]
    again = made.crew.start("1 again")
    made.actors[2].start()
    assert again.poll() is None
    assert made.actors[2].calls == ["1 again"]
    assert made.actors[0].calls == ["1"]


def test_an_actor_that_cannot_start_costs_an_attempt_at_a_shard() -> None:
    made = Made("1", "2")
    made.actors[0].started.told.set_exception(RuntimeError("no such module"))
    made.actors[1].start()
    assert made.codes() == [LOST, None]
    assert made.actors[1].calls == ["2"]


def test_an_end_reaches_shards_that_wait_and_the_actor_of_one_that_does_not() -> None:
    made = Made("1", "2")
    made.actors[0].start()
    made.codes()
    for shard in made.shards:
        shard.terminate()
    assert made.actors[0].ended
    made.actors[0].die()
    assert [shard.wait() for shard in made.shards] == [-signal.SIGTERM, -signal.SIGTERM]
    assert made.ended() == [True, True]


def test_an_interrupt_ends_all_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made("1", "2")
    made.actors[0].start()
    made.codes()
    monkeypatch.setattr(interrupts, "came", lambda: True)
    assert made.codes() == [None, -signal.SIGTERM]
    made.actors[0].die()
    assert made.codes() == [-signal.SIGTERM, -signal.SIGTERM]
    assert made.ended() == [True, True]


def test_waiting_for_a_shard_that_no_actor_makes_returns_at_once() -> None:
    crew = Made("1").crew
    assert isinstance(crew.start("2"), Shard)
    assert crew.start("3").wait() is None
