"""The metrics of the runs from the index alone, as reports have them: no dialogue is read again."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sweetrl.errors import SweetError
from sweetrl.evaluation.intervals import clustered_mean, clustered_share
from sweetrl.evaluation.scores import FAILURES_AS_ZERO
from sweetrl.experiments.layout import METRICS
from sweetrl.experiments.run_folder import CARD, LOG, RunFolder, read_metrics
from sweetrl.report import Method, ReportContents, TaskScore, Training
from sweetrl.report.compose import compared, measures_for, pairs
from sweetrl.report.headline import reward_measure
from sweetrl.types import Metric
from sweetrl.viewer.queries import Reader
from sweetrl.viewer.sources import Given


class _Tally(NamedTuple):
    """What the dialogues of a run on one task add up to."""

    task: str
    request: str
    dialogues: int
    scored: int
    successes: int
    reward: float
    turns: int
    most_turns: int


_SELECT = """
SELECT r.title, IFNULL(MAX(v.scorer), ''), e.task, MAX(e.request), COUNT(*), COUNT(v.reward),
    IFNULL(SUM(CASE WHEN v.reward IS NULL THEN 0 ELSE v.success END), 0), IFNULL(SUM(v.reward), 0.0),
    SUM(e.turns), MAX(e.turns)
FROM episodes e JOIN runs r ON r.id = e.run LEFT JOIN verdicts v ON v.key = e.key
GROUP BY r.id, e.task ORDER BY r.title, e.task
"""


def method_of(title: str, scorer: str, folder: Path, tallies: Sequence[_Tally]) -> Method:
    """One run as a row of the results."""
    scored = [each for each in tallies if each.scored]
    measured = [*_measured(scorer, tallies), *_also_measured(folder)]
    return Method(
        name=title,
        scorer=scorer,
        metrics=tuple({metric.name: metric for metric in reversed(measured)}.values())[::-1],
        dialogues=sum(each.dialogues for each in tallies),
        tasks={
            each.task: TaskScore(each.scored, each.successes, each.reward / each.scored) for each in scored
        },
        requests={each.task: each.request for each in tallies},
        unscored=sum(each.dialogues - each.scored for each in tallies),
        with_failures={each.task: each.successes / each.dialogues for each in tallies},
    )


def _measured(scorer: str, tallies: Sequence[_Tally]) -> Iterator[Metric]:
    counts, everyone = [each.scored for each in tallies], [each.dialogues for each in tallies]
    successes = [each.successes for each in tallies]
    unscored = sum(everyone) - sum(counts)
    if scorer:
        yield clustered_share("success", successes, counts, unscored=unscored)
        yield clustered_share(FAILURES_AS_ZERO, successes, everyone)
        rewards = [each.reward for each in tallies]
        yield clustered_mean(reward_measure(scorer).name, rewards, counts, unscored=unscored)
    longest = max((each.most_turns for each in tallies), default=0)
    yield clustered_mean("turns", [each.turns for each in tallies], everyone, bounds=(0, longest))


def _also_measured(folder: Path) -> tuple[Metric, ...]:
    """Metrics that the index cannot know, such as hidden facts asked about, from the run's own file."""
    try:
        found = read_metrics(folder / METRICS)
    except SweetError:
        return ()
    return tuple(metric for metric in found if metric.name != "reward")


@dataclass
class Metrics:
    """The metrics of all runs; computed again when the index or a training log has changed."""

    reader: Reader
    given: Sequence[Given]
    _known: dict[tuple[int, int], ReportContents] = field(default_factory=dict)

    def contents(self) -> ReportContents:
        """Everything for the page of metrics."""
        # What lies beside a file that was named is not about it.
        folders = (each.path for each in self.given if each.path.is_dir())
        logs = list(chain.from_iterable(map(_logs, folders)))
        state = (self.reader.version(), sum(_size(log) for log in logs))
        if state not in self._known:
            methods = tuple(self._methods())
            differences = (compared(*pair) for pair in pairs(methods))
            self._known = {
                state: ReportContents(
                    title="Metrics",
                    methods=methods,
                    measures=tuple(measures_for(methods)),
                    comparisons=tuple(chain.from_iterable(differences)),
                    trainings=tuple(_trainings(logs)),
                )
            }
        return self._known[state]

    def _methods(self) -> Iterator[Method]:
        folders = {run.title: Path(run.folder) for run in self.reader.runs()}
        tallies: dict[str, list[_Tally]] = {title: [] for title in folders}
        scorers: dict[str, set[str]] = {title: set() for title in folders}
        with self.reader.connected() as db:
            for title, scorer, *numbers in db.execute(_SELECT):
                tallies[title].append(_Tally(*numbers))
                scorers[title].add(scorer)
        short = short_titles(list(folders))
        for title, folder in folders.items():
            scorer = ", ".join(sorted(scorers[title] - {""}))
            yield replace(method_of(title, scorer, folder, tallies[title]), label=short[title])


def short_titles(titles: Sequence[str]) -> dict[str, str]:
    """The last folders of each title, as few as tell it from the others: charts have little room."""
    ends = {
        title: ["/".join(parts[-n:]) for n in range(1, len(parts) + 1)]
        for title in titles
        for parts in [title.split("/")]
    }
    known = Counter(chain.from_iterable(ends.values()))
    return {title: next((end for end in ends[title] if known[end] == 1), title) for title in titles}


def _logs(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob(LOG) if path.with_name(CARD).is_file())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _trainings(logs: Sequence[Path]) -> Iterator[Training]:
    """The curves of trained models; a log whose last line is being written shows the next time."""
    for log in logs:
        model = log.parent
        try:
            yield from RunFolder(model, f"{model.parent.name}/{model.name}").trainings()
        except SweetError:
            continue


def as_json(contents: ReportContents) -> list[Mapping[str, object]]:
    """The results as the API gives them."""
    return [
        {
            "run": method.name,
            "scorer": method.scorer,
            "dialogues": method.dialogues,
            "unscored": method.unscored,
            "metrics": {metric.name: metric for metric in method.metrics},
        }
        for method in contents.methods
    ]
