"""The pages about the quickstart and the study say what the recipes that ship would do."""

import re
import shlex
from pathlib import Path

import pytest

from sweetrl.experiments.stage_words import in_words
from sweetrl.experiments.study_plan import plan
from sweetrl.settings import Study, load_experiment, load_study

CHECKOUT = Path(__file__).parent.parent
QUICKSTART = (CHECKOUT / "docs/quickstart.md").read_text()
REPRODUCING = (CHECKOUT / "docs/reproducing.md").read_text()
COMMANDS = re.findall(r"sweetrl run (recipes/\w+\.toml(?:[^\n`#]*\\\n)*[^\n`#]*)", QUICKSTART + REPRODUCING)
SECTIONS = "\n".join(
    re.findall(
        r"^    (.*)$",
        REPRODUCING.partition("## Adding to a study")[2].partition("\n## ")[0],
        re.MULTILINE,
    )
)


def test_the_quickstart_page_lists_its_stages_in_order() -> None:
    study = load_study(CHECKOUT / "recipes/quickstart.toml")
    seed = Path(study.output) / f"seed-{study.seed}"
    planned = [
        (in_words(study, stage), str(stage.output.relative_to(seed)))
        for stage in plan(study).stages
        if stage.arguments[0] != "evaluate" or stage.output.name == "base"
    ]
    rows = re.findall(r"^\| (.+?) \| `[\w -]+` \| `(.+?)/?`.* \|$", QUICKSTART, re.MULTILINE)
    assert rows == planned


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_of_the_pages_changes_keys_that_there_are(words: str) -> None:
    recipe, *options = shlex.split(words.replace("\\\n", " "))
    changes = [word for word in options if "=" in word]
    assert isinstance(load_experiment(CHECKOUT / recipe, changes), Study)


def test_the_pages_have_such_commands() -> None:
    assert len(COMMANDS) >= 7


def test_a_run_on_validation_tasks_as_the_page_says_meets_no_test_task() -> None:
    [words] = [each for each in COMMANDS if "evaluation.on=validation" in each]
    study = load_study(
        CHECKOUT / "recipes/mini_paper.toml",
        [word for word in shlex.split(words.replace("\\\n", " ")) if "=" in word],
    )
    assert [
        stage.name for stage in plan(study).stages if any(":test:" in each for each in stage.inputs)
    ] == []


def test_the_sections_that_the_page_adds_are_a_study(tmp_path: Path) -> None:
    (tmp_path / "grown.toml").write_text(
        f'extends = "{CHECKOUT / "recipes/mini_paper.toml"}"\noutput = "run"\n{SECTIONS}'
    )
    study = load_study(tmp_path / "grown.toml")
    before = load_study(CHECKOUT / "recipes/mini_paper.toml")
    assert set(study.methods) - set(before.methods) == {"gentle"}
    assert set(study.critics) - set(before.critics) == {"heads", "judge", "truth"}
    added = {stage.name for stage in plan(study).stages} - {stage.name for stage in plan(before).stages}
    assert {name.partition("/")[2] for name in added} == {
        "turn_pairs/gentle",
        "policies/gentle",
        "evaluations/gentle",
    }
