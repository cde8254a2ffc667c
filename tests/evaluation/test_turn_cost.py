import asyncio

import pytest

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.evaluation.turn_cost import PricedScorer
from sweetrl.types import Ending, Episode, Failure, Reply, Task, Turn, Verdict, digest

TASK = Task(id="t", domain="backend", request="r", secret=BackendSecret(reference="x", tests={"a": "f()"}))


def episode(turns: int) -> Episode:
    said = [Turn("What?", "What?", Reply("That.")) for _ in range(turns - 1)] + [Turn("So.", "So.")] * (
        turns > 0
    )
    return Episode(
        task_id="t",
        attempt=0,
        seed=0,
        agent="a",
        collaborator="c",
        request="r",
        turns=tuple(said),
        ending=Ending.ANSWERED,
        answer="So.",
    )


class FixedScorer:
    name = "fixed/1"

    def __init__(self, reward: float | None) -> None:
        self._reward = reward

    async def score(self, task: Task, episode: Episode) -> Verdict:
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest=digest(episode.answer),
            reward=self._reward,
            success=self._reward == 1.0,
            failure=Failure("score", "Broken", "ours") if self._reward is None else None,
        )


def priced(reward: float | None, turns: int, cost: float = 0.1) -> Verdict:
    return asyncio.run(PricedScorer(FixedScorer(reward), cost).score(TASK, episode(turns)))


@pytest.mark.parametrize(("turns", "reward"), [(0, 1.0), (1, 1.0), (2, 0.9), (4, 0.7)])
def test_each_question_before_the_answer_costs(turns: int, reward: float) -> None:
    verdict = priced(1.0, turns)
    assert verdict.reward == pytest.approx(reward)
    assert verdict.success


def test_a_reward_never_falls_below_zero_so_that_giving_up_does_not_pay() -> None:
    assert priced(0.2, 8).reward == 0.0
    assert priced(0.0, 1).reward == priced(0.0, 9).reward == 0.0


def test_what_could_not_be_scored_stays_unscored() -> None:
    verdict = priced(None, 3)
    assert verdict.reward is None
    assert verdict.failure is not None


def test_verdicts_of_different_prices_have_different_scorers() -> None:
    assert priced(1.0, 2).scorer != priced(1.0, 2, cost=0.05).scorer != "fixed/1"
