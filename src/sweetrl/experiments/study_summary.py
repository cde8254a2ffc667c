"""The results of a study in short: its `metrics.json`, and caveats for its table."""

from collections.abc import Iterator

import msgspec

from sweetrl.evaluation.studies import StudyResults


def metrics_of(results: StudyResults) -> dict[str, object]:
    """The metrics of each method in short, and nothing that depends on the machine's speed or folders."""
    return {
        "methods": {
            name: {
                "label": method.label,
                "success": method.figures["success"].value,
                "low": method.figures["success"].low,
                "high": method.figures["success"].high,
                "count": method.figures["success"].count,
                "unscored": method.unscored + method.failed,
                **{key: metric.value for key, metric in method.figures.items() if key != "success"},
            }
            for name, method in results.methods.items()
        },
        "steps": msgspec.to_builtins(results.steps),
        "tasks": results.tasks,
        "seeds": results.seeds,
        "caution": results.caution,
    }


def caveats(results: StudyResults) -> Iterator[str]:
    """Caveats about the table, one sentence each."""
    if results.caution:
        yield results.caution
    labels = {name: method.label for name, method in results.methods.items()}
    level = [
        f"{labels[step.first]} and {labels[step.second]}"
        for step in results.steps
        if step.low is not None and step.high is not None and step.low <= 0 <= step.high
    ]
    if level:
        yield f"Not told apart by this run (the interval of the difference holds 0): {'; '.join(level)}."
