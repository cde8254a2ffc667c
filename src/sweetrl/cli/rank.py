"""`sweetrl rank`: what a critic thinks of the candidates of each turn."""

from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import CandidatesOption, EpisodesOption, OutputOption, TasksOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.experiments.stages.rank import rank_file
from sweetrl.settings import RankSettings


def rank(
    tasks: TasksOption,
    episodes: EpisodesOption,
    candidates: CandidatesOption,
    output: OutputOption,
    settings: RankSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Let a critic that sees the reference rank the candidates.

    Each candidate of a turn gets an advantage. Rerun the same command to do what is missing or failed.

    Example:
        sweetrl rank --critic zero:mini --tasks mini-backend:train:20 --episodes run/episodes.jsonl
        --candidates candidates.jsonl -o ranked.jsonl
    """
    tally = rank_file(settings, tasks, episodes, candidates, output, TerminalReporter(quiet=quiet))
    report_tally(tally, json=json, quiet=quiet)
