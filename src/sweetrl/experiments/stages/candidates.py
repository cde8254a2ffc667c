"""`candidates`: what else an agent might have said at each turn of stored dialogues."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl.candidates.sample import refuse_copies, sample_candidates, stored_turns
from sweetrl.dialogue.building import build_agent, model_settings
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.prompt_files import refuse_other_domain
from sweetrl.domains.registry import DEFAULT, find_domain
from sweetrl.domains.sources import tasks_or_none
from sweetrl.errors import DataError
from sweetrl.experiments.stages.filling import Tally, fill, open_output, opened_models
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.records import fingerprint, part_of
from sweetrl.seeds import SEEDS, derive_seed
from sweetrl.settings import SamplingSettings, recorded
from sweetrl.types import CandidateSet, Episode


async def draw_candidates(
    settings: SamplingSettings,
    episodes: Path,
    source: str | None,
    output: Path,
    *,
    domain: str = DEFAULT,
    reporter: Reporter = SILENT,
) -> Tally:
    """Add the candidates that the file `output` lacks; the agent has the prompt of `domain`, if no other is given."""
    if settings.agent.prompt is None:
        refuse_other_domain(episodes, domain)
    tasks = tasks_or_none(source)

    def dialogues() -> Iterator[Episode]:
        stored = distinct_episodes(episodes, tasks)
        return (episode for episode in stored if _is_chosen(episode, settings))

    if next(dialogues(), None) is None:
        raise DataError("no dialogue is chosen; raise --fraction", path=episodes)
    part = part_of((stored.id for stored in stored_turns(dialogues())), settings.shard)
    tally, rules = Tally(output, "turns"), Rules(turn_limit=settings.turn_limit)
    async with opened_models(tally) as models:
        agent, of_agent = build_agent(model_settings(settings.agent), find_domain(domain), rules, models)
        config = {"episodes": fingerprint(episodes), **recorded(settings), **of_agent}
        with open_output(output, CandidateSet, "candidates", config, reporter, part) as log:
            drawn = sample_candidates(
                dialogues(),
                agent,
                n=settings.draw.n,
                seed=settings.seed,
                concurrency=settings.draw.concurrency,
                skip=log.skips,
            )
            served = "openai:" in settings.agent.model and settings.agent.temperature != 0
            await fill(log, refuse_copies(drawn, agent.name) if served else drawn, tally, reporter)
    return tally


def _is_chosen(episode: Episode, settings: SamplingSettings) -> bool:
    """Whether candidates are drawn for a dialogue; does not depend on the other dialogues of the file."""
    draw = settings.draw
    if draw.attempts is not None and episode.attempt >= draw.attempts:
        return False
    number = derive_seed(settings.seed, "drawn", episode.id)
    return draw.fraction is None or number < draw.fraction * SEEDS
