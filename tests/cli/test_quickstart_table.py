"""The table that a quickstart ends with."""

import io
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console

from command_lines import complaint
from conftest import CHECKOUT
from sweetrl.cli.quickstart import RECIPES, caveats, next_steps, results_table, shipped
from sweetrl.evaluation.studies import MethodResult, Step, StudyResults
from sweetrl.settings import load_study
from sweetrl.types import Metric

LABELS = ("untrained", "rejection fine-tuning", "multi-turn DPO", "SWEET-RL")
FIGURES = ("success", "reward", "turns", "coverage", "repeats", "premature")


def test_a_narrow_terminal_cuts_nothing_off() -> None:
    figures = {
        name: Metric(name=name, value=0.503, low=0.421, high=0.598, count=300, unscored=0) for name in FIGURES
    }
    methods = {
        label: MethodResult(label=label, table="main", figures=figures, by_seed={}, failed=0, unscored=0)
        for label in LABELS
    }
    results = StudyResults(
        title="Quickstart", tasks="mini-backend:validation:300:0", seeds=(0,), methods=methods, steps=()
    )
    screen = Console(width=80, file=io.StringIO())
    screen.print(results_table(results))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert shown.count("50.3 (42.1 to 59.8)") == len(LABELS)
    for word in " ".join(LABELS).split():
        assert word in shown


def results_with(**intervals: tuple[float, float]) -> StudyResults:
    """Two methods and a step from the first to each other one, with this interval."""
    methods = {
        name: MethodResult(label=name.upper(), table="main", figures={}, by_seed={}, failed=0, unscored=0)
        for name in ("base", *intervals)
    }
    steps = tuple(
        Step(
            first="base",
            second=name,
            value=sum(interval) / 2,
            low=interval[0],
            high=interval[1],
            seeds=1,
            seeds_above=1,
            tasks=9,
            wins=1,
            losses=1,
        )
        for name, interval in intervals.items()
    )
    return StudyResults(title="t", tasks="t", seeds=(0,), methods=methods, steps=steps)


def test_methods_that_a_run_cannot_tell_apart_are_named_under_its_table() -> None:
    [line] = caveats(results_with(dpo=(-0.1, 0.2), sweet=(0.05, 0.3)), fast=False)
    assert "BASE and DPO" in line
    assert "SWEET" not in line


def test_a_clear_result_has_no_caveat_unless_the_run_is_a_fast_one() -> None:
    clear = results_with(sweet=(0.05, 0.3))
    assert list(caveats(clear, fast=False)) == []
    [line] = caveats(clear, fast=True)
    assert "too small to rank" in line


def commands_after_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that a run in this folder ends with."""
    monkeypatch.chdir(folder)
    recipe = shipped(RECIPES[""])
    study = load_study(recipe, ["page="])
    return [line.strip() for line in next_steps(study, "mini-backend:validation:300:0", recipe)][1:]


def test_what_to_do_next_is_commands_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = commands_after_a_run(tmp_path, monkeypatch)
    assert len(commands) == 4
    words = [line.partition(" ")[2] for line in commands]
    assert [complaint(each) for each in words] == [None] * 4
    [_, recipe, *changes] = shlex.split(next(each for each in words if each.startswith("run ")))
    assert load_study(Path(recipe), [each for each in changes if "=" in each]).output == "quickstart-beta"


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
