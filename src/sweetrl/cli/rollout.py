"""`sweetrl rollout`: its options. What it does with them is in `dialogues.py`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sweetrl.cli import interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.critics import CriticPrompt
from sweetrl.cli.domains import DomainOption
from sweetrl.errors import UsageError

if TYPE_CHECKING:
    from sweetrl.cli.dialogues import Plan
    from sweetrl.cli.players import Player

TasksOption = Annotated[
    str,
    typer.Option(
        "--tasks",
        metavar="TASKS",
        help="A tasks.jsonl, a ColBench file, or mini-frontend:SPLIT:N.",
    ),
]
AgentOption = Annotated[
    str, typer.Option("--agent", metavar="MODEL", help="openai:MODEL@URL, hf:PATH_OR_ID or scripted:NAME.")
]
CollaboratorOption = Annotated[
    str | None,
    typer.Option(
        "--collaborator", metavar="MODEL", help="As --agent; replay:EPISODES.jsonl; designer[:quote]."
    ),
]
OutputOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write episodes.jsonl in.")
]
AttemptsOption = Annotated[int, typer.Option("--attempts", min=1, help="Dialogues on each task.")]
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", min=1, help="Dialogues open at a time, at most.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed gives the same dialogues.")]
SingleTurnFlag = Annotated[
    bool, typer.Option("--single-turn", help="The agent has one message, which is the answer.")
]
TurnLimitOption = Annotated[
    int, typer.Option("--turn-limit", min=1, help="How often the agent speaks at most.")
]
AgentTemperature = Annotated[float, typer.Option("--agent-temperature", min=0)]
AgentMaxTokens = Annotated[int, typer.Option("--agent-max-tokens", min=1, help="New tokens in one turn.")]
AgentPrompt = Annotated[
    Path | None, typer.Option("--agent-prompt", metavar="FILE", help="In place of the prompt that ships.")
]
CollaboratorTemperature = Annotated[float, typer.Option("--collaborator-temperature", min=0)]
CollaboratorMaxTokens = Annotated[
    int, typer.Option("--collaborator-max-tokens", min=1, help="New tokens in one reply.")
]
CollaboratorPrompt = Annotated[
    Path | None,
    typer.Option("--collaborator-prompt", metavar="FILE", help="In place of the prompt that ships."),
]
GuardFlag = Annotated[
    bool, typer.Option("--guard", help="Ask the collaborator again when a reply gives code away.")
]
BestOf = Annotated[
    int, typer.Option("--best-of", min=1, help="Drafts of each turn, of which a critic chooses one.")
]
Critic = Annotated[
    str | None,
    typer.Option("--critic", metavar="CRITIC", help="Who chooses; sees the task. As in `sweetrl rank`."),
]
ShowOption = Annotated[
    Literal["pictures", "source"],
    typer.Option("--show", help="How a model that plays the collaborator sees pages: rendered, or as HTML."),
]
PriceAgent = Annotated[
    str | None,
    typer.Option("--price-agent", metavar="IN/OUT", help="Per million tokens read and written: 0.5/1.5."),
]
PriceCollaborator = Annotated[
    str | None, typer.Option("--price-collaborator", metavar="IN/OUT", help="As --price-agent.")
]
MaxTokensTotal = Annotated[
    int | None, typer.Option("--max-tokens-total", min=1, help="Stop after so many tokens, of both sides.")
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", min=0, help="Stop after this cost, in the prices' currency.")
]
TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", metavar="TIME", help="Stop after this time: 90, 45m or 2h.")
]
RequestTimeout = Annotated[
    float, typer.Option("--request-timeout", min=0.1, help="Seconds that an endpoint has for one reply.")
]
RequestAttempts = Annotated[
    int, typer.Option("--request-attempts", min=1, help="How often a failing request is sent.")
]


def rollout(
    tasks: TasksOption,
    agent: AgentOption,
    output: OutputOption,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    collaborator: CollaboratorOption = None,
    attempts: AttemptsOption = 1,
    concurrency: ConcurrencyOption = 64,
    seed: SeedOption = 0,
    single_turn: SingleTurnFlag = False,
    turn_limit: TurnLimitOption = 10,
    agent_temperature: AgentTemperature = 1.0,
    agent_max_tokens: AgentMaxTokens = 1024,
    agent_prompt: AgentPrompt = None,
    collaborator_temperature: CollaboratorTemperature = 0.0,
    collaborator_max_tokens: CollaboratorMaxTokens = 512,
    collaborator_prompt: CollaboratorPrompt = None,
    guard: GuardFlag = False,
    best_of: BestOf = 1,
    critic: Critic = None,
    critic_prompt: CriticPrompt = None,
    show: ShowOption = "pictures",
    price_agent: PriceAgent = None,
    price_collaborator: PriceCollaborator = None,
    max_tokens_total: MaxTokensTotal = None,
    max_cost: MaxCost = None,
    time_limit: TimeLimit = None,
    request_timeout: RequestTimeout = 300.0,
    request_attempts: RequestAttempts = 12,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Hold dialogues between an agent and a collaborator.

    Each dialogue is added to DIR/episodes.jsonl when it ends. The same command again does what is missing or
    failed, and nothing else. Ctrl-C lets the open dialogues finish; a second one drops them.
    """
    from sweetrl.cli.dialogues import Plan

    replies = (collaborator_temperature, collaborator_max_tokens, collaborator_prompt, price_collaborator)
    plan = Plan(
        agent=player_of(agent, agent_temperature, agent_max_tokens, agent_prompt, price_agent),
        collaborator=None if collaborator is None else player_of(collaborator, *replies),
        guard=guard,
        best_of=best_of,
        critic=critic,
        critic_prompt=critic_prompt,
        pictures=show == "pictures",
        turn_limit=turn_limit,
        single_turn=single_turn,
        attempts=attempts,
        concurrency=concurrency,
        seed=seed,
        max_tokens=max_tokens_total,
        max_cost=max_cost,
        seconds=None if time_limit is None else parse_time(time_limit),
        request_timeout=request_timeout,
        request_attempts=request_attempts,
    )
    _hold(plan, tasks, output, json=json, quiet=quiet)


def _hold(plan: "Plan", tasks: str, output: Path, *, json: bool, quiet: bool) -> None:
    """Hold the dialogues that are planned and say what became of them."""
    from sweetrl.cli.dialogues import hold

    plan.check()
    interrupts.run(hold, plan, tasks, output, quiet=quiet).report(json=json, quiet=quiet)


def player_of(
    spec: str, temperature: float, max_tokens: int, prompt_file: Path | None, price: str | None = None
) -> "Player":
    """One side of the dialogues, from its options."""
    from sweetrl.cli.players import Player, parse_price
    from sweetrl.types import Sampling

    sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
    return Player(spec, sampling, parse_price(price), prompt_file)


def parse_time(text: str) -> float:
    """`90`, `90s`, `45m` or `2h` in seconds."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if matched is None:
        raise UsageError(f"{text!r} is not a time; write seconds, or 45m, or 2h")
    return float(matched[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[matched[2]]
