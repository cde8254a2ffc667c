"""What `sweetrl run` and `sweetrl quickstart` do when the stages of a study are done."""

from pathlib import Path
from typing import TYPE_CHECKING

from sweetrl import interrupts

if TYPE_CHECKING:
    from sweetrl.experiments.plan import Plan
    from sweetrl.settings import Study
    from sweetrl.types import Episode, Task, TurnCredit


def finish(study: "Study", planned: "Plan") -> dict[str, str]:
    """Write the results of what is done; the files by what they are."""
    from sweetrl.experiments.results import write_results

    return write_results(study, planned, _credit_dialogues)


def _credit_dialogues(
    critic: Path, tasks: "dict[str, Task]", dialogues: "dict[str, list[Episode]]"
) -> "dict[str, list[TurnCredit]]":
    return interrupts.run(_credit, critic, tasks, dialogues)


async def _credit(
    folder: Path, tasks: "dict[str, Task]", dialogues: "dict[str, list[Episode]]"
) -> "dict[str, list[TurnCredit]]":
    from sweetrl.candidates.credit import credit_turns
    from sweetrl.cli.critics import open_critic
    from sweetrl.dialogue.building import Models
    from sweetrl.models import EndpointOptions, Meter

    critic, _ = open_critic(str(folder), Models(EndpointOptions(), Meter()))
    return {
        name: [
            turn
            async for turn in credit_turns(((tasks[each.task_id], each) for each in episodes), critic)
            if turn.advantage is not None
        ]
        for name, episodes in dialogues.items()
    }
