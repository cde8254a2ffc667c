"""A price on questions: the reward of a dialogue less a cost for each turn before the answer.

Success is what it was. The reward never falls below zero, so that giving up early never pays more than failing
late; among dialogues that succeed, the shorter one is worth more, and pairs and critics can learn that.
"""

from msgspec.structs import replace

from sweetrl.protocols import Scorer
from sweetrl.types import Episode, Task, Verdict


class PricedScorer:
    """A scorer whose rewards are less a cost per question."""

    def __init__(self, scorer: Scorer, cost: float) -> None:
        self._scorer = scorer
        self._cost = cost

    @property
    def name(self) -> str:
        """The scorer's own name and the price: verdicts of different prices must not be mixed."""
        return f"{self._scorer.name}-{self._cost:g}-per-question"

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """The scorer's verdict with the price taken off."""
        verdict = await self._scorer.score(task, episode)
        questions = max(0, len(episode.turns) - 1)
        reward = None if verdict.reward is None else max(0.0, verdict.reward - self._cost * questions)
        return replace(verdict, scorer=self.name, reward=reward)
