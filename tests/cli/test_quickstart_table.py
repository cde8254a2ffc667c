"""The table that a quickstart ends with."""

import io

import msgspec
from rich.console import Console

from sweetrl.cli.quickstart import results_table, shipped
from sweetrl.evaluation.studies import MethodResult, Step, StudyResults
from sweetrl.experiments.study_summary import caveats
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
    [line] = caveats(results_with(dpo=(-0.1, 0.2), sweet=(0.05, 0.3)))
    assert "BASE and DPO" in line
    assert "SWEET" not in line


def test_a_clear_result_has_no_caveat_unless_the_run_is_a_fast_one() -> None:
    clear = results_with(sweet=(0.05, 0.3))
    assert list(caveats(clear)) == []
    fast = load_study(shipped("quickstart_fast.toml"))
    [line] = caveats(msgspec.structs.replace(clear, settings=msgspec.to_builtins(fast)))
    assert "too small to rank" in line
