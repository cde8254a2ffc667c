"""Values by replay against values by enumeration."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from math import sqrt
from statistics import fmean, stdev

import pytest
from msgspec.structs import replace

from evaluation import toy_dialogue as toy
from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.dialogue.values import BranchPoint, value_turns
from sweetrl.errors import ConfigError, DataError, ModelError
from sweetrl.types import Ending, Episode, Failure, Message, Task, TurnValues, Verdict


def branch_point(number: int = 1, questions: str = "ab", turn: int = 1) -> BranchPoint:
    held = toy.episode(number, questions)
    return BranchPoint(toy.task(number), held, toy.candidates(held, turn))


def valued(*turns: BranchPoint, scorer=None, agent=None, **options) -> list[TurnValues]:
    async def collect() -> list[TurnValues]:
        found = value_turns(
            turns,
            agent or toy.agent(),
            toy.collaborator(),
            scorer or toy.ToyScorer(),
            rules=toy.RULES,
            **options,
        )
        return [each async for each in found]

    return asyncio.run(collect())


def test_values_are_those_that_enumeration_gives() -> None:
    turns = [branch_point(number, "bc", turn) for number in range(2) for turn in (0, 1)]
    for turn, found in zip(turns, sorted(valued(*turns, replays=60), key=lambda each: each.id), strict=True):
        before = [past.said for past in turn.episode.turns[: found.turn]]
        for output, value in zip(found.outputs, found.values, strict=True):
            truth = toy.true_value(turn.task, before, output)
            if len(value.rewards) == 1:
                assert value.rewards[0] == pytest.approx(truth)
            else:
                error = stdev(value.rewards) / sqrt(len(value.rewards))
                assert fmean(value.rewards) == pytest.approx(truth, abs=4.5 * error)


def test_the_record_says_what_was_valued_by_whom() -> None:
    turn = branch_point()
    [found] = valued(turn, replays=3)
    assert (found.id, found.task_id, found.outputs) == ("t1#0@1", "t1", turn.candidates.outputs)
    assert (found.agent, found.collaborator, found.scorer) == ("toy agent", "toy person", "toy/1")
    assert found.failure is None


def test_what_ends_the_dialogue_is_played_once_and_everything_else_as_often_as_asked() -> None:
    [found] = valued(branch_point(), replays=5)
    lengths = {output: len(value.rewards) for output, value in zip(found.outputs, found.values, strict=True)}
    assert {count for output, count in lengths.items() if output.endswith("?")} == {5}
    assert {count for output, count in lengths.items() if not output.endswith("?")} == {1}
    assert all(len(each.successes) == len(each.rewards) for each in found.values)


def test_equal_candidates_have_equal_values_wherever_they_stand() -> None:
    turn = branch_point()
    shuffled = replace(turn.candidates, outputs=turn.candidates.outputs[::-1])
    [one], [other] = valued(turn, replays=4), valued(turn._replace(candidates=shuffled), replays=4)
    assert other.values == one.values[::-1]
    assert len(set(one.values)) <= len(set(one.outputs))


def test_the_order_of_events_makes_no_difference_and_another_seed_does() -> None:
    turns = [branch_point(number) for number in range(4)]
    alone = {each.id: each for each in valued(*turns, replays=6, concurrency=1)}
    together = {each.id: each for each in valued(*turns[::-1], replays=6, concurrency=500)}
    assert together == alone
    assert {each.id: each for each in valued(*turns, replays=6, seed=1)} != alone


def test_an_answer_is_judged_once_a_turn() -> None:
    scorer = toy.ToyScorer()
    [found] = valued(branch_point(), replays=50, scorer=scorer)
    assert sum(len(each.rewards) for each in found.values) > 300
    assert scorer.judged < 40


def test_turns_that_are_done_or_have_no_candidates_are_left_out() -> None:
    broken = branch_point(2)
    failed = replace(broken.candidates, outputs=(), failure=Failure("agent", "ModelError", "gone"))
    turns = [branch_point(1), broken._replace(candidates=failed), branch_point(3)]
    found = valued(*turns, replays=2, skip={"t1#0@1"}.__contains__)
    assert [each.id for each in found] == ["t3#0@1"]


def test_a_replay_that_breaks_down_leaves_its_turn_without_values() -> None:
    def sometimes(history: Sequence[Message], seed: int) -> str:
        if seed % 10 == 0 and history[0].text == "Break.":
            raise ModelError("gone", kind="dead")
        return toy.speak(history, seed)

    task, held, drawn = branch_point(2)
    fragile = BranchPoint(replace(task, request="Break."), held, drawn)
    broken, sound = sorted(
        valued(fragile, branch_point(3), agent=ScriptedAgent(sometimes), replays=10), key=lambda each: each.id
    )
    assert (broken.values, broken.failure) == (None, Failure("agent", "dead", "gone"))
    assert sound.failure is None


def test_an_answer_that_cannot_be_scored_is_no_zero() -> None:
    class Broken(toy.ToyScorer):
        async def score(self, task: Task, episode: Episode) -> Verdict:
            verdict = await super().score(task, episode)
            return replace(verdict, reward=None, failure=Failure("score", "SandboxError", "gone"))

    [found] = valued(branch_point(), scorer=Broken(), replays=2)
    assert (found.values, found.failure.kind) == (None, "SandboxError")


def test_a_replay_goes_on_from_what_was_said_and_replied() -> None:
    seen = []

    def listening(history: Sequence[Message], seed: int) -> str:
        seen.append([message.text for message in history])
        return "I WANT TO ANSWER: a"

    task, held, drawn = branch_point(1, "abc", 2)
    one = replace(drawn, outputs=("thought OUTPUT: d?",))
    valued(BranchPoint(task, held, one), agent=ScriptedAgent(listening), replays=2)
    so_far = ["Go.", "a?", "So be it.", "b?", "So be it.", "d?", "So be it."]
    assert seen == [so_far, so_far]


def test_one_replay_is_too_few() -> None:
    with pytest.raises(ConfigError, match="must be at least 2"):
        valued(branch_point(), replays=1)


def test_candidates_of_a_turn_that_was_not_taken_are_refused() -> None:
    turn = branch_point()
    odd = replace(turn.candidates, turn=7)
    with pytest.raises(DataError, match="t1#0@7 have no such turn"):
        valued(turn._replace(candidates=odd))


def test_whoever_stops_listening_leaves_nothing_running() -> None:
    async def first_only() -> int:
        turns = [branch_point(number) for number in range(5)]
        found = value_turns(
            turns, toy.agent(), toy.collaborator(), toy.ToyScorer(), rules=toy.RULES, replays=5
        )
        async with aclosing(found):
            async for _ in found:
                break
        return len(asyncio.all_tasks())

    assert asyncio.run(first_only()) == 1


def test_the_toy_is_what_it_is_said_to_be() -> None:
    worth = toy.task(1).extra["worth"]
    assert sum(worth.values()) == pytest.approx(1)
    # One turn before the limit: one of five options is the answer.
    asked = ["a?", "b?"]
    assert toy.true_value(toy.task(1), asked, "c?") == pytest.approx(
        (worth["a"] + worth["b"] + worth["c"]) / 5
    )
    assert toy.episode(1, "ab").ending is Ending.ANSWERED
