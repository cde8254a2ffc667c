"""`sweetrl rollout`: its options. What it does with them is in `dialogues.py`."""

from sweetrl import interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.dialogues import check, hold
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import FolderOption, TasksOption
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
    check(settings, budget)
    interrupts.run(hold, settings, tasks, output, budget, quiet=quiet).report(json=json, quiet=quiet)
