"""`sweetrl values`: what the candidates of each turn are worth, by playing on from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.cli import inputs, interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.judging import opened_bench
from sweetrl.cli.pairs import EpisodesOption
from sweetrl.cli.rollout import (
    AgentMaxTokens,
    AgentOption,
    AgentPrompt,
    AgentTemperature,
    CollaboratorMaxTokens,
    CollaboratorPrompt,
    CollaboratorTemperature,
    ConcurrencyOption,
    ShowOption,
    TasksOption,
    TurnLimitOption,
    player_of,
)
from sweetrl.cli.studio import SimilarityOption
from sweetrl.cli.workers import IsolationOption, ModeOption, WorkersOption
from sweetrl.errors import DataError

if TYPE_CHECKING:
    from sweetrl.cli.filling import Tally
    from sweetrl.cli.players import Player
    from sweetrl.dialogue.values import Crossroads
    from sweetrl.domains.domain import Domain
    from sweetrl.domains.scoring import ScoringBackend
    from sweetrl.types import CandidateSet, Episode, Task


def values(
    tasks: TasksOption,
    episodes: EpisodesOption,
    candidates: Annotated[
        Path, typer.Option("--candidates", metavar="CANDIDATES", help="What `candidates` or `rank` wrote.")
    ],
    agent: AgentOption,
    collaborator: Annotated[
        str, typer.Option("--collaborator", metavar="MODEL", help="As in `sweetrl rollout`.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="VALUES", help="The file to write.")],
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    replays: Annotated[
        int, typer.Option("--replays", min=2, help="Dialogues played from each candidate.")
    ] = 16,
    turns: Annotated[
        int | None, typer.Option("--turns", min=1, help="Only so many turns, drawn by the seed.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed plays the same dialogues.")] = 0,
    turn_limit: TurnLimitOption = 10,
    agent_temperature: AgentTemperature = 1.0,
    agent_max_tokens: AgentMaxTokens = 1024,
    agent_prompt: AgentPrompt = None,
    collaborator_temperature: CollaboratorTemperature = 0.0,
    collaborator_max_tokens: CollaboratorMaxTokens = 512,
    collaborator_prompt: CollaboratorPrompt = None,
    show: ShowOption = "pictures",
    concurrency: ConcurrencyOption = 64,
    workers: WorkersOption = 0,
    mode: ModeOption = "module",
    isolation: IsolationOption = None,
    similarity: SimilarityOption = "layout",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Find out what candidates are worth: play on from each to the end, several times, and score.

    The agent and the collaborator should be those of the dialogues. The same command again does what is missing
    or failed; more --turns extend the file.
    """
    replies = (collaborator_temperature, collaborator_max_tokens, collaborator_prompt)
    replay = _Replay(
        agent=player_of(agent, agent_temperature, agent_max_tokens, agent_prompt),
        collaborator=player_of(collaborator, *replies),
        turn_limit=turn_limit,
        replays=replays,
        seed=seed,
        concurrency=concurrency,
        pictures=show == "pictures",
    )
    source = _Source.read(tasks, episodes, candidates).drawn(turns, seed)
    with opened_bench(
        source.domain,
        workers=workers,
        mode=mode,
        isolation=isolation,
        similarity=similarity,
        screenshots=None,
    ) as bench:
        tally = interrupts.run(replay.into, output, source, bench, quiet=quiet)
    tally.report(json=json, quiet=quiet)


@dataclass(frozen=True)
class _Source:
    """The turns to value."""

    tasks: "dict[str, Task]"
    domain: "Domain"
    episodes: "dict[str, Episode]"
    candidates: "list[CandidateSet]"
    fingerprints: dict[str, str]

    @classmethod
    def read(cls, source: str, episodes: Path, candidates: Path) -> "_Source":
        from sweetrl.cli.dialogues import load_one_domain
        from sweetrl.records import read_records
        from sweetrl.types import CandidateSet

        listed, domain = load_one_domain(source)
        tasks = {task.id: task for task in listed}
        drawn = [each for each in read_records(candidates, CandidateSet) if each.outputs]
        fingerprints = {
            "tasks": inputs.fingerprint_of_tasks(listed),
            "episodes": inputs.fingerprint(episodes),
            "candidates": inputs.fingerprint(candidates),
        }
        return cls(tasks, domain, inputs.load_episodes(episodes, tasks), drawn, fingerprints)

    def drawn(self, turns: int | None, seed: int) -> "_Source":
        """Some of the turns. More of them include fewer, so that a file can be extended."""
        from dataclasses import replace

        from sweetrl.seeds import derive_seed

        chosen = sorted(self.candidates, key=lambda each: derive_seed(seed, each.id, "drawn"))[:turns]
        return replace(self, candidates=chosen)

    def __iter__(self) -> "Iterator[Crossroads]":
        from sweetrl.dialogue.values import Crossroads

        for drawn in self.candidates:
            task, episode = self.tasks.get(drawn.task_id), self.episodes.get(drawn.episode_id)
            if task is None or episode is None:
                what = f"task {drawn.task_id}" if task is None else f"episode {drawn.episode_id}"
                raise DataError(f"the candidates of {drawn.id} are on the {what}, which is not there")
            # Candidates that a critic failed to rank are candidates all the same.
            yield Crossroads(task, episode, _unranked(drawn))


def _unranked(drawn: "CandidateSet") -> "CandidateSet":
    from msgspec.structs import replace

    return replace(drawn, advantages=None, critic="", failure=None)


@dataclass(frozen=True)
class _Replay:
    """How dialogues are played on."""

    agent: "Player"
    collaborator: "Player"
    turn_limit: int
    replays: int
    seed: int
    concurrency: int
    pictures: bool

    async def into(self, output: Path, source: _Source, bench: "ScoringBackend", *, quiet: bool) -> "Tally":
        """Add the values that the file `output` lacks."""
        from sweetrl.browser.session import BrowserSession
        from sweetrl.cli.filling import Tally, fill, open_output, opened_models
        from sweetrl.cli.players import seat_agent, seat_collaborator
        from sweetrl.dialogue.rules import Rules
        from sweetrl.dialogue.values import value_turns
        from sweetrl.types import TurnValues

        rules, session = Rules(turn_limit=self.turn_limit), BrowserSession(pictures=self.pictures)
        tally = Tally(output, "turns")
        try:
            async with opened_models(tally) as models, bench.opened() as scorer:
                tasks = list(source.tasks.values())
                agent, settings = seat_agent(self.agent, source.domain, rules, models, tasks)
                collaborator, more = seat_collaborator(
                    self.collaborator, source.domain, tasks, models, session
                )
                config = self._config() | source.fingerprints | settings | more | bench.settings
                with open_output(output, TurnValues, command="values", config=config, quiet=quiet) as log:
                    valued = value_turns(
                        source,
                        agent,
                        collaborator,
                        scorer,
                        replays=self.replays,
                        seed=self.seed,
                        concurrency=self.concurrency,
                        rules=rules,
                        skip=log.has,
                    )
                    await fill(log, valued, tally, total=len(source.candidates), quiet=quiet)
        finally:
            await session.close()
        return tally

    def _config(self) -> dict[str, Any]:
        return {"turn_limit": self.turn_limit, "replays": self.replays, "seed": self.seed}
