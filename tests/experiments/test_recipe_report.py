"""The page that a recipe ends with."""

import shutil
from pathlib import Path

import msgspec

from recipe_files import write_recipe
from report.reading import read
from report.samples import records
from sweetrl.experiments.recipe_report import write_recipe_report
from sweetrl.settings import load_recipe


def evaluated(folder: Path, reward: float) -> None:
    folder.mkdir(parents=True)
    for name, items in zip(("episodes", "verdicts"), records({"t0": reward, "t1": 0.0}), strict=True):
        (folder / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in items))


def test_the_policy_is_shown_beside_the_untrained_agent(tmp_path: Path) -> None:
    recipe = load_recipe(write_recipe(tmp_path), ["algorithm=dpo", "agent.model=mini"])
    assert write_recipe_report(recipe) is None
    evaluated(tmp_path / "run" / "untrained", 0.0)
    evaluated(tmp_path / "run" / "evaluation", 1.0)
    path = write_recipe_report(recipe)
    assert path == tmp_path / "run" / "report.html"
    page = read(path.read_text())
    said = page.one("h1").text.replace("\N{NO-BREAK SPACE}", " ")
    # The recipe trains on the tasks that it tests on, so they are not called unseen.
    assert said.startswith("multi-turn DPO solves 50 % of 2 tasks, untrained 0 %")
    assert page.all(class_="duel")
    write_recipe_report(load_recipe(tmp_path / "recipe.toml", ["algorithm=sweet"]))
    said = read(path.read_text()).one("h1").text.replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith(
        "SWEET-RL solves 50 % of 2 tasks, scripted:curious 0 %"
    )  # a script is no untrained model
    shutil.rmtree(tmp_path / "run" / "untrained")
    assert write_recipe_report(recipe) == path
    assert not read(path.read_text()).all(class_="duel")
