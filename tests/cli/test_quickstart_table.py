"""The table that a quickstart ends with."""

import io

from rich.console import Console

from sweetrl.cli.quickstart import results_table
from sweetrl.evaluation.studies import MethodResult, StudyResults
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
