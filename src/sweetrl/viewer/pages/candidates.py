"""What else might have been said at a turn: candidates in the order of their advantages, with replay values."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from sweetrl.report.charts import advantage_bar
from sweetrl.report.dialogues import fold
from sweetrl.report.markup import Markup, counted, element, excerpt, join
from sweetrl.report.messages import message
from sweetrl.types import CandidateSet, Turn, TurnValues

SHOWN = 24
"""Different candidates of one turn that are listed."""


class _Candidate(NamedTuple):
    """One distinct output of a turn: how often it was sampled, its advantage and its replay value."""

    output: str
    drawn: int
    advantage: float | None
    value: float | None
    replays: int


def candidates_fold(turn: Turn, sets: Sequence[CandidateSet], values: Sequence[TurnValues]) -> Markup | None:
    """The candidates of each critic; None where there are none."""
    if not sets:
        return None
    count = len(sets[0].outputs)
    lists = [_ranking(turn, each, values) for each in sets]
    return fold(f"what else might have been said: {count} candidates", *lists)


def _ranking(turn: Turn, candidates: CandidateSet, values: Sequence[TurnValues]) -> Markup:
    found = _distinct(candidates, values)
    scale = max((abs(each.advantage) for each in found if each.advantage is not None), default=0.0)
    rows = [_row(each, scale, said=each.output == turn.output) for each in found[:SHOWN]]
    left_out = len(found) - len(rows)
    who = f"ranked by {excerpt(candidates.critic, 80)}" if candidates.advantages is not None else "not ranked"
    return join(
        [
            element("p", who, class_="note"),
            element("ol", *rows, class_="candidates" if candidates.advantages else "candidates unranked"),
            element("p", f"… {left_out} more", class_="cut") if left_out else None,
        ]
    )


def _distinct(candidates: CandidateSet, values: Sequence[TurnValues]) -> list[_Candidate]:
    """Each output once, the best first."""
    counts = Counter(candidates.outputs)
    advantages = dict(zip(candidates.outputs, candidates.advantages or (), strict=False))
    worth = {
        output: value.rewards
        for each in values
        for output, value in zip(each.outputs, each.values or (), strict=False)
    }
    found = [
        _Candidate(
            output,
            count,
            advantages.get(output),
            sum(rewards) / len(rewards) if (rewards := worth.get(output)) else None,
            len(rewards or ()),
        )
        for output, count in counts.items()
    ]
    return sorted(found, key=lambda each: -(each.advantage or 0.0))


def _row(candidate: _Candidate, scale: float, *, said: bool) -> Markup:
    return element(
        "li",
        None if candidate.advantage is None else _advantage(candidate.advantage, scale),
        element("div", message(candidate.output or "(nothing)", limit=1500), class_="output"),
        element(
            "span",
            element("span", "said", class_="tag") if said else None,
            element("span", f"drawn {candidate.drawn} times") if candidate.drawn > 1 else None,
            _value(candidate),
            class_="facts",
        ),
    )


def _advantage(advantage: float, scale: float) -> Markup:
    number = f"{advantage:+.3f}".replace("-", "−")
    return element(
        "span", advantage_bar(advantage, scale), element("span", number, class_="value"), class_="credit"
    )


def _value(candidate: _Candidate) -> Markup | None:
    if candidate.value is None:
        return None
    return element("span", f"value {candidate.value:.2f} in {counted(candidate.replays, 'replay')}")
