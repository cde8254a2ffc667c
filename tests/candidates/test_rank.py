import asyncio
from collections.abc import Sequence

import pytest

from candidates.stored import episode, task
from sweetrl.candidates import rank
from sweetrl.candidates.rank import best_candidate, rank_candidates
from sweetrl.critics.scripted import ScriptedCritic
from sweetrl.errors import DataError, ModelError, StageError
from sweetrl.protocols import Choice
from sweetrl.types import CandidateSet, Failure, Message, Task

EPISODES = {"t#0": episode("t"), "u#0": episode("u")}
TASKS = {"t": task("t"), "u": task("u")}


def drawn(turn: int, *outputs: str, name: str = "t") -> CandidateSet:
    return CandidateSet(episode_id=f"{name}#0", task_id=name, turn=turn, outputs=outputs)


def ranked(candidates: list[CandidateSet], critic, **options) -> list[CandidateSet]:
    async def collect() -> list[CandidateSet]:
        found = rank_candidates(candidates, EPISODES, TASKS, critic, **options)
        return [each async for each in found]

    return asyncio.run(collect())


class FixedCritic:
    name = "fixed"

    def __init__(self, *advantages: float) -> None:
        self._advantages = list(advantages)

    async def advantages(self, task: Task, history: Sequence[Message], outputs: Sequence[str]) -> list[float]:
        return self._advantages


def length(task: Task, history: Sequence[Message], output: str) -> float:
    return float(len(output))


def test_each_output_gets_its_advantage_in_the_order_of_the_outputs():
    [found] = ranked([drawn(0, "abc", "a", "ab")], ScriptedCritic(length, name="length"))
    assert found == CandidateSet(
        episode_id="t#0",
        task_id="t",
        turn=0,
        outputs=("abc", "a", "ab"),
        advantages=(3.0, 1.0, 2.0),
        critic="length",
    )


def test_the_critic_is_given_the_task_and_the_history_of_the_turn():
    seen = []

    def watching(task: Task, history: Sequence[Message], output: str) -> float:
        seen.append((task, tuple(history), output))
        return 0.0

    ranked([drawn(1, "x", name="u")], ScriptedCritic(watching))
    assert seen == [(TASKS["u"], EPISODES["u#0"].history(1), "x")]


def test_turns_that_are_done_and_turns_without_candidates_are_skipped():
    broken = CandidateSet(
        episode_id="t#0", task_id="t", turn=2, outputs=(), failure=Failure("agent", "timeout", "slow")
    )
    found = ranked([drawn(0, "a"), drawn(1, "b"), broken], ScriptedCritic(length), skip="t#0@0".__eq__)
    assert [each.id for each in found] == ["t#0@1"]


def test_a_turn_at_which_the_critic_breaks_down_is_recorded_and_the_others_go_on():
    def fragile(task: Task, history: Sequence[Message], output: str) -> float:
        if output == "bad":
            raise ModelError("gone", kind="timeout")
        return 1.0

    found = {each.turn: each for each in ranked([drawn(0, "bad"), drawn(1, "ok")], ScriptedCritic(fragile))}
    assert found[0].advantages is None
    assert found[0].failure == Failure("critic", "timeout", "gone")
    assert found[1].advantages == (1.0,)


@pytest.mark.parametrize(
    ("critic", "complaint"),
    [
        (FixedCritic(1.0), "1 advantages for 2 outputs"),
        (FixedCritic(1.0, float("nan")), "not a finite number"),
        (FixedCritic(1.0, float("inf")), "not a finite number"),
    ],
)
def test_advantages_that_cannot_be_used_are_a_failure(critic, complaint):
    [found] = ranked([drawn(0, "a", "b")], critic)
    assert found.advantages is None
    assert found.failure is not None
    assert complaint in found.failure.message


@pytest.mark.parametrize(
    ("orphan", "complaint"),
    [
        (drawn(3, "x"), "t#0@3 have no such turn"),
        (drawn(0, "x", name="v"), "v#0@0 have no such turn"),
        (
            CandidateSet(episode_id="t#0", task_id="w", turn=0, outputs=("x",)),
            "the task w, which is not there",
        ),
    ],
)
def test_candidates_of_something_else_are_refused(orphan, complaint):
    with pytest.raises(DataError, match=complaint):
        ranked([orphan], ScriptedCritic(length))


def test_the_best_candidate_is_the_first_of_the_highest():
    async def best(*outputs: str) -> int:
        return await best_candidate(ScriptedCritic(length), TASKS["t"], (), outputs)

    assert asyncio.run(best("a", "abc", "ab")) == 1
    assert asyncio.run(best("ab", "cd", "a")) == 0


# ---------------------------------------------------------------- critics that judge turns together


class GroupCritic(ScriptedCritic):
    """Remembers what it judged together."""

    def __init__(self, judge=length) -> None:
        super().__init__(judge, name="group")
        self.groups: list[list[str]] = []

    async def judge_together(self, choices: Sequence[Choice]) -> list[list[float] | StageError]:
        self.groups.append([choice.outputs[0] for choice in choices])
        return [
            ModelError("gone", kind="timeout") if "bad" in choice.outputs else await self.advantages(*choice)
            for choice in choices
        ]


@pytest.fixture
def two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    histories = [sum(len(message.text) for message in EPISODES["t#0"].history(turn)) for turn in range(3)]
    monkeypatch.setattr(rank, "TEXT_AT_ONCE", histories[1] + histories[0] + 10)


FIVE = [
    drawn(turn, letter, name=name)
    for turn, name, letter in zip((0, 1, 0, 1, 2), "ttuuu", "abcde", strict=True)
]


@pytest.mark.usefixtures("two_at_a_time")
def test_a_critic_that_can_is_given_groups_in_the_order_of_the_candidates():
    critic = GroupCritic()
    found = ranked(FIVE, critic)
    assert critic.groups == [["a", "b"], ["c", "d"], ["e"]]
    assert [each.outputs[0] for each in found] == list("abcde")
    assert all(each.advantages == (1.0,) and each.critic == "group" for each in found)


@pytest.mark.usefixtures("two_at_a_time")
@pytest.mark.parametrize("done", [set(), {"t#0@0"}, {"t#0@0", "t#0@1", "u#0@1"}])
def test_what_is_done_already_changes_no_group_that_is_left(done):
    critic = GroupCritic()
    found = ranked(FIVE, critic, skip=done.__contains__)
    assert [each.id for each in found] == [each.id for each in FIVE if each.id not in done]
    assert [group for group in critic.groups if group in (["a", "b"], ["c", "d"], ["e"])] == critic.groups


def test_of_a_group_only_the_turn_at_which_the_critic_breaks_down_fails():
    found = ranked([drawn(0, "bad"), drawn(1, "ok")], GroupCritic())
    assert found[0].failure == Failure("critic", "timeout", "gone")
    assert found[1].advantages == (2.0,)


def test_numbers_that_cannot_be_used_fail_their_own_turn():
    def odd(task: Task, history: Sequence[Message], output: str) -> float:
        return float(output)

    found = ranked([drawn(0, "nan"), drawn(1, "2")], GroupCritic(odd))
    assert found[0].failure is not None
    assert "not a finite number" in found[0].failure.message
    assert found[1].advantages == (2.0,)
