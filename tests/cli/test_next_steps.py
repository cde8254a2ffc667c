"""The commands that a quickstart ends with."""

import importlib.util
import shlex
import sys
from pathlib import Path

import pytest

from command_lines import complaint
from conftest import CHECKOUT
from sweetrl.cli.quickstart import RECIPES, next_steps, shipped
from sweetrl.errors import installing
from sweetrl.settings import load_study


def commands_after_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, output: str = "quickstart"
) -> list[str]:
    """The commands that a run in this folder ends with."""
    monkeypatch.chdir(folder)
    recipe = shipped(RECIPES[""])
    study = load_study(recipe, ["page=", f"output={output}"])
    return [line.strip() for line in next_steps(study, "mini-backend:validation:300:0", recipe)][1:]


def test_what_to_do_next_is_commands_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = commands_after_a_run(tmp_path, monkeypatch)
    assert len(commands) == 5
    words = [line.partition(" ")[2] for line in commands]
    assert [complaint(each) for each in words] == [None] * 5
    [_, recipe, *changes] = shlex.split(next(each for each in words if each.startswith("run ")))
    assert load_study(Path(recipe), [each for each in changes if "=" in each]).output == "quickstart-beta"


def test_a_folder_with_a_space_in_its_name_is_one_word_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [shlex.split(line) for line in commands_after_a_run(tmp_path, monkeypatch, "my run")]
    assert "my run/seed-0/evaluations/sweet/episodes.jsonl" in words[0]
    assert load_study(Path(words[3][2]), [each for each in words[3] if "=" in each]).output == "my run-beta"
    assert words[4][-1] == "my run"


def test_credit_is_told_the_outcomes_of_the_dialogues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [words] = [
        shlex.split(each) for each in commands_after_a_run(tmp_path, monkeypatch) if " credit " in each
    ]
    assert words[words.index("--verdicts") + 1] == "quickstart/seed-0/evaluations/sweet/verdicts.jsonl"


def test_the_viewer_is_named_with_how_it_is_installed_where_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "starlette" else there(name)
    )
    last = commands_after_a_run(tmp_path, monkeypatch)[-1]
    assert last.startswith(f"{installing('view')} && ")
    assert last.endswith("sweetrl view quickstart")


def test_a_program_that_the_shell_does_not_find_is_called_by_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", str(CHECKOUT / ".venv/bin/python"))
    commands = commands_after_a_run(CHECKOUT, monkeypatch)
    assert {line.split()[0] for line in commands} == {".venv/bin/sweetrl"}
    assert any(" run recipes/quickstart.toml " in line for line in commands)


def test_a_program_that_the_shell_finds_is_called_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "sweetrl"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert {line.split()[0] for line in commands_after_a_run(tmp_path, monkeypatch)} == {"sweetrl"}
