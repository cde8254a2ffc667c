"""`sweetrl candidates`: what else an agent might have said at each turn of stored dialogues."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl import interrupts
from sweetrl.candidates.sample import sample_candidates, stored_turns
from sweetrl.cli import inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import PromptDomainOption
from sweetrl.cli.filling import Tally, fill, open_output, opened_models
from sweetrl.cli.options import EpisodesOption, KnownTasksOption, OutputOption
from sweetrl.dialogue.building import build_agent, model_settings
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.domain import Domain
from sweetrl.domains.registry import DEFAULT, all_domains, find_domain
from sweetrl.errors import UsageError
from sweetrl.records import card_path, read_card
from sweetrl.settings import SamplingSettings, recorded
from sweetrl.types import CandidateSet, Episode


def candidates(
    episodes: EpisodesOption,
    output: OutputOption,
    settings: SamplingSettings,
    *,
    tasks: KnownTasksOption = None,
    domain: PromptDomainOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Draw candidates for every turn of stored dialogues.

    The agent is given what it had seen at that turn, and nothing else. Rerun the same command to do what is missing or
    failed.

    Example:
        sweetrl candidates --episodes run/episodes.jsonl --agent mini --n 8 -o candidates.jsonl
    """
    if settings.agent.prompt is None:
        refuse_other_domain(episodes, domain or DEFAULT)
    about = find_domain(domain or DEFAULT)
    tally = interrupts.run(_draw, settings, episodes, tasks, about, output, quiet=quiet)
    tally.report(json=json, quiet=quiet)


def refuse_other_domain(episodes: Path, name: str) -> None:
    """Dialogues of ours say on their run card which prompt they were held with."""
    if not card_path(episodes).is_file():
        return
    used = str(read_card(episodes).config.get("agent_prompt", "")).partition(" ")[0]
    for other in all_domains():
        if other.name != name and used in (other.prompts.agent.source, other.prompts.single_turn.source):
            raise UsageError(f"{episodes}: held with the prompt {used}; give --domain {other.name}")


async def _draw(
    settings: SamplingSettings,
    episodes: Path,
    source: str | None,
    domain: Domain,
    output: Path,
    *,
    quiet: bool,
) -> Tally:
    """Add the candidates that the file `output` lacks."""
    tasks = inputs.tasks_or_none(source)

    def dialogues() -> Iterator[Episode]:
        most = settings.draw.attempts
        stored = inputs.each_episode(episodes, tasks)
        return (episode for episode in stored if most is None or episode.attempt < most)

    total = sum(1 for _ in stored_turns(dialogues()))
    tally, rules = Tally(output, "turns"), Rules(turn_limit=settings.turn_limit)
    async with opened_models(tally) as models:
        agent, of_agent = build_agent(model_settings(settings.agent), domain, rules, models)
        config = {"episodes": inputs.fingerprint(episodes), **recorded(settings), **of_agent}
        with open_output(output, CandidateSet, command="candidates", config=config, quiet=quiet) as log:
            drawn = sample_candidates(
                dialogues(),
                agent,
                n=settings.draw.n,
                seed=settings.seed,
                concurrency=settings.draw.concurrency,
                skip=log.has,
            )
            await fill(log, drawn, tally, total=total, quiet=quiet)
    return tally
