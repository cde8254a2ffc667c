"""The report of a recipe: its trained policy beside the agent as it was, as one HTML page."""

from dataclasses import replace
from pathlib import Path

from sweetrl.domains.sources import load_tasks
from sweetrl.experiments.layout import VERDICTS
from sweetrl.experiments.model_size import parameters_of
from sweetrl.experiments.pipeline import places_in, policy_algorithm
from sweetrl.experiments.run_folder import RunFolder
from sweetrl.experiments.study_report import EXAMPLES, REPORT, are_unseen, credited
from sweetrl.models import shipped
from sweetrl.records import write_atomically
from sweetrl.report import Run, compose, render
from sweetrl.settings import Recipe

LARGEST_CRITIC = 1_000_000_000
"""Parameters of a critic that is loaded for a report; `sweetrl credit` gives the credit of larger ones."""


def write_recipe_report(recipe: Recipe) -> Path | None:
    """Write the page of a finished recipe; None if nothing was evaluated."""
    folder = Path(recipe.output)
    if recipe.tasks.test is None or not (places_in(folder).evaluation / VERDICTS).is_file():
        return None
    tasks = load_tasks(recipe.tasks.test)
    trained = RunFolder(folder, folder.name)
    runs = [run for each in _folders(recipe) if (run := each.run(tasks)) is not None]
    critic = places_in(folder).critic
    if critic.is_dir() and (parameters_of(str(critic)) or LARGEST_CRITIC) < LARGEST_CRITIC:
        runs = credited(runs, critic, tasks, recipe.seed)
    contents = compose(
        folder.name,
        [replace(run, label=_label(recipe, run)) for run in runs],
        trainings=list(trained.trainings()),
        provenance=list(trained.provenance()),
        examples=EXAMPLES,
        seed=recipe.seed,
        unseen=are_unseen(tasks, [recipe.tasks.train]),
    )
    write_atomically(folder / REPORT, render(contents).encode("utf-8", "replace"))
    return folder / REPORT


def _folders(recipe: Recipe) -> list[RunFolder]:
    """The evaluations, that of the untrained agent first."""
    places = places_in(Path(recipe.output))
    untrained = places.untrained
    known = [RunFolder(places.evaluation, "trained")]
    if untrained is not None and (untrained / VERDICTS).is_file():
        known.insert(0, RunFolder(untrained, "untrained"))
    return known


def _label(recipe: Recipe, run: Run) -> str:
    """The label that a study would give the method; a scripted agent is called by its name."""
    algorithm, agent = policy_algorithm(recipe.algorithm), recipe.agent.model
    if algorithm is None or run.name == "untrained":
        return "untrained" if agent in shipped.NAMES or agent.startswith(("openai:", "hf:")) else agent
    return "SWEET-RL" if recipe.algorithm == "sweet" else algorithm.label.removeprefix("Policy by ")
