"""`sweetrl candidates`: what else an agent might have said at each turn of stored dialogues."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.cli import inputs, interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import PromptDomainOption
from sweetrl.cli.pairs import EpisodesOption, TasksOption
from sweetrl.cli.rollout import (
    AgentMaxTokens,
    AgentOption,
    AgentPrompt,
    AgentTemperature,
    TurnLimitOption,
)
from sweetrl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweetrl.cli.filling import Tally
    from sweetrl.cli.players import Player
    from sweetrl.types import Episode, Task

ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", min=1, help="Turns that are under way at a time, at most.")
]


def candidates(
    episodes: EpisodesOption,
    agent: AgentOption,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="CANDIDATES", help="The file to write.")],
    *,
    tasks: TasksOption = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Candidates for each turn.")] = 16,
    attempts: Annotated[
        int | None, typer.Option("--attempts", min=1, help="Only for the first N dialogues on each task.")
    ] = None,
    domain: PromptDomainOption = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed draws the same candidates.")] = 0,
    agent_temperature: AgentTemperature = 1.0,
    agent_max_tokens: AgentMaxTokens = 1024,
    agent_prompt: AgentPrompt = None,
    turn_limit: TurnLimitOption = 10,
    concurrency: ConcurrencyOption = 64,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Draw candidates for every turn of stored dialogues.

    The agent is given what it had seen at that turn, and nothing else. The same command again does what is
    missing or failed.
    """
    from sweetrl.cli.players import Player
    from sweetrl.domains.registry import DEFAULT
    from sweetrl.models import FREE
    from sweetrl.types import Sampling

    domain = domain or DEFAULT
    if agent_prompt is None:
        refuse_other_domain(episodes, domain)
    sampling = Sampling(temperature=agent_temperature, max_tokens=agent_max_tokens)
    player = Player(agent, sampling, FREE, agent_prompt)
    draw = _Draw(episodes, tasks, player, domain, turn_limit, n, attempts, seed, concurrency)
    interrupts.run(draw.into, output, quiet=quiet).report(json=json, quiet=quiet)


def refuse_other_domain(episodes: Path, name: str) -> None:
    """Dialogues of ours say on their run card which prompt they were held with."""
    from sweetrl.domains.registry import all_domains
    from sweetrl.records import card_path, read_card

    if not card_path(episodes).is_file():
        return
    used = str(read_card(episodes).config.get("agent_prompt", "")).partition(" ")[0]
    for other in all_domains():
        if other.name != name and used in (other.prompts.agent.source, other.prompts.single_turn.source):
            raise UsageError(f"{episodes}: held with the prompt {used}; give --domain {other.name}")


@dataclass(frozen=True)
class _Draw:
    """What is to be drawn from whom."""

    episodes: Path
    tasks: str | None
    player: "Player"
    domain: str
    turn_limit: int
    """Of the dialogues: part of what the agent is told."""
    n: int
    attempts: int | None
    """Dialogues on each task that candidates are drawn for; None for all."""
    seed: int
    concurrency: int

    async def into(self, output: Path, *, quiet: bool) -> "Tally":
        """Add the candidates that the file `output` lacks."""
        from sweetrl.candidates.sample import sample_candidates, stored_turns
        from sweetrl.cli.filling import Tally, fill, open_output, opened_models
        from sweetrl.cli.players import seat_agent
        from sweetrl.dialogue.rules import Rules
        from sweetrl.domains.registry import find_domain
        from sweetrl.types import CandidateSet

        tasks = inputs.tasks_or_none(self.tasks)
        total = sum(1 for _ in stored_turns(self._dialogues(tasks)))
        tally = Tally(output, "turns")
        async with opened_models(tally) as models:
            agent, settings = seat_agent(
                self.player, find_domain(self.domain), Rules(turn_limit=self.turn_limit), models
            )
            with open_output(
                output, CandidateSet, command="candidates", config=self._config() | settings, quiet=quiet
            ) as log:
                drawn = sample_candidates(
                    self._dialogues(tasks),
                    agent,
                    n=self.n,
                    seed=self.seed,
                    concurrency=self.concurrency,
                    skip=log.has,
                )
                await fill(log, drawn, tally, total=total, quiet=quiet)
        return tally

    def _dialogues(self, tasks: "dict[str, Task] | None") -> "Iterator[Episode]":
        for episode in inputs.each_episode(self.episodes, tasks):
            if self.attempts is None or episode.attempt < self.attempts:
                yield episode

    def _config(self) -> dict[str, Any]:
        config = {
            "episodes": inputs.fingerprint(self.episodes),
            "turn_limit": self.turn_limit,
            "n": self.n,
            "seed": self.seed,
        }
        return config if self.attempts is None else config | {"attempts": self.attempts}
