"""`sweetrl rollout`: dialogues between an agent and a collaborator."""

from sweetrl import interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import FolderOption, TasksOption
from sweetrl.cli.reporting import TerminalReporter, report_dialogues
from sweetrl.experiments.stages.rollout import check_dialogues, run_rollout
from sweetrl.settings import BudgetSettings, DialogueSettings


def rollout(
    tasks: TasksOption,
    output: FolderOption,
    settings: DialogueSettings,
    budget: BudgetSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run dialogues between an agent and a collaborator.

    Each dialogue is added to DIR/episodes.jsonl when it ends. Rerun the same command to do what is missing or
    failed, and nothing else. Ctrl-C lets the open dialogues finish; a second one drops them.

    Example:
        sweetrl rollout --tasks mini-backend:train:20 --agent mini --collaborator colleague -o run
    """
    check_dialogues(settings, budget)
    summary = interrupts.run(run_rollout, settings, tasks, output, budget, TerminalReporter(quiet=quiet))
    report_dialogues(summary, json=json, quiet=quiet)
