"""`sweetrl candidates`: draw alternative messages of an agent at each turn of stored dialogues."""

from sweetrl import interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import PromptDomainOption
from sweetrl.cli.options import EpisodesOption, KnownTasksOption, OutputOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.domains.registry import DEFAULT
from sweetrl.experiments.stages.candidates import draw_candidates
from sweetrl.settings import SamplingSettings


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
    reporter, domain = TerminalReporter(quiet=quiet), domain or DEFAULT
    tally = interrupts.run(
        draw_candidates, settings, episodes, tasks, output, domain=domain, reporter=reporter
    )
    report_tally(tally, json=json, quiet=quiet)
