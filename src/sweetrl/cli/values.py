"""`sweetrl values`: what the candidates of each turn are worth, by playing on from them."""

from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import CandidatesOption, EpisodesOption, OutputOption, TasksOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.experiments.stages.values import measure_values
from sweetrl.settings import ScorerSettings, ValueSettings


def values(
    tasks: TasksOption,
    episodes: EpisodesOption,
    candidates: CandidatesOption,
    output: OutputOption,
    settings: ValueSettings,
    scorer: ScorerSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure what candidates are worth by replaying them.

    From each candidate the dialogue is played on to the end, several times, and scored. The agent and the collaborator
    should be those of the dialogues. Rerun the same command to do what is missing or failed; more --turns extend the
    file.

    Example:
        sweetrl values --tasks mini-backend:train:20 --episodes run/episodes.jsonl --candidates candidates.jsonl
        --agent mini --collaborator colleague --turns 50 -o values.jsonl
    """
    reporter = TerminalReporter(quiet=quiet)
    tally = measure_values(settings, scorer, tasks, episodes, candidates, output, reporter)
    report_tally(tally, json=json, quiet=quiet)
