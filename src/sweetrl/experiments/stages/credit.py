"""`credit`: what each turn of logged dialogues was worth, by a critic or by what their outcomes teach."""

from pathlib import Path

from sweetrl import interrupts
from sweetrl.candidates.credit import credit_turns
from sweetrl.candidates.learned import learn_credit
from sweetrl.candidates.sample import stored_turns
from sweetrl.critics import type_of
from sweetrl.critics.opening import Judging, open_with_models
from sweetrl.domains.logged import (
    DialogueLog,
    LoggedDialogue,
    read_logged,
    refuse_without_outcomes,
    refuse_without_references,
)
from sweetrl.domains.sources import fingerprint_of_tasks, tasks_or_none
from sweetrl.errors import UsageError
from sweetrl.evaluation.turning_points import CreditReport
from sweetrl.experiments.stages.filling import Tally, fill, fill_at_once, open_output, opened_models
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.records import fingerprint, part_of, read_records
from sweetrl.settings import CreditSettings
from sweetrl.types import TurnCredit, Verdict


def credit_file(
    settings: CreditSettings,
    path: Path,
    output: Path,
    reporter: Reporter = SILENT,
    *,
    source: str | None = None,
    verdicts: Path | None = None,
    judge_prompt: Path | None = None,
) -> tuple[Tally, CreditReport]:
    """Add the credit that the file `output` lacks and report the findings; without a critic, learn one from outcomes.

    Episodes of ours name the tasks of a `source` and have `verdicts`; other dialogues carry what is known of theirs.
    """
    known = tasks_or_none(source)
    given = None if verdicts is None else {each.episode_id: each for each in read_records(verdicts, Verdict)}
    log = read_logged(
        path,
        tasks=known,
        verdicts=given,
        outcome_field=settings.outcome_field,
        success_at=settings.success_at,
    )
    if settings.shard is not None and settings.critic is None:
        raise UsageError("a critic that is learned reads all dialogues; leave out --shard or name a --critic")
    if settings.precision is not None and settings.critic is None:
        raise UsageError("--precision is that of a trained critic; leave it out or name a --critic")
    config = {"dialogues": fingerprint(path)}
    if known is not None:
        config["tasks"] = fingerprint_of_tasks(known.values())
    if settings.critic is None:
        return _learned(path, log, settings, output, config, reporter)
    found, left_out = log
    telling = None if settings.critic_prompt is None else Path(settings.critic_prompt)
    judging = Judging(grading=judge_prompt, telling=telling, precision=settings.precision)
    tally = interrupts.run(_asked, path, found, settings, judging, output, config, reporter)
    stored = sorted(read_records(tally.path, TurnCredit), key=lambda each: (each.episode_id, each.turn))
    if settings.shard is not None:
        credited = {each.episode_id for each in stored}
        found = [each for each in found if each.episode.id in credited]
    return tally, CreditReport(found, stored, settings.critic, left_out=left_out)


def _learned(
    path: Path,
    log: DialogueLog,
    settings: CreditSettings,
    output: Path,
    config: dict[str, str],
    reporter: Reporter,
) -> tuple[Tally, CreditReport]:
    """Credit by a critic that the dialogues themselves teach."""
    found, left_out = log
    refuse_without_outcomes(found, path, settings.outcome_field)
    learned = learn_credit(found, settings.model, seed=settings.seed)
    tally = Tally(output, "turns")
    with open_output(output, TurnCredit, "credit", {**config, "critic": learned.critic}, reporter) as file:
        fill_at_once(file, learned.credit, tally, reporter)
    return tally, CreditReport(found, learned.credit, learned.critic, learned.auc, learned.reads, left_out)


async def _asked(
    path: Path,
    found: list[LoggedDialogue],
    settings: CreditSettings,
    judging: Judging,
    output: Path,
    config: dict[str, str],
    reporter: Reporter,
) -> Tally:
    """Credit by a critic that exists."""
    name, tally = settings.critic or "", Tally(output, "turns")
    labels = {each.episode.id: each.label for each in found}
    turns = stored_turns(each.episode for each in found)
    part = part_of((turn.id for turn in turns), settings.shard)
    async with opened_models(tally) as models:
        critic = open_with_models(name, models, judging)
        if type_of(name).needs_reference:
            refuse_without_references(found, path, name)
        config = {**config, "critic": critic.name}
        if settings.precision is not None:
            config["precision"] = settings.precision
        with open_output(output, TurnCredit, "credit", config, reporter, part) as log:
            pairs = ((each.task, each.episode) for each in found)
            credited = credit_turns(
                pairs, critic, concurrency=settings.concurrency, skip=log.skips, labels=labels
            )
            await fill(log, credited, tally, reporter)
    return tally
