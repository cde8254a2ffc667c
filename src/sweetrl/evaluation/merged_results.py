"""One study from several runs: what this run has not measured is taken from an earlier one with the same settings.

A study takes hours, and its runs may be on machines of which nothing is left but `results.json`. Each metric comes
from one run alone: from this one, unless an earlier run has more of its seeds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from sweetrl.evaluation.studies import Curve, Earlier, MethodResult, Missing, Share, Step, StudyResults


class _Labelled(Protocol):
    @property
    def label(self) -> str: ...


Found = TypeVar("Found", bound=_Labelled)

SECTIONS = {"best_of": "critics", "sizes": "methods", "off_policy": "methods", "credit": "critics"}
"""Parts that have settings of their own, and the key that lists what they are about."""
ELSEWHERE = {"title", "output", "page", "estimate", "methods", "critics", "shares", *SECTIONS}
"""Settings that change no metric, or not those of all methods and critics."""


def merged_results(now: StudyResults, earlier: StudyResults) -> StudyResults:
    """The results of this run, with those of the earlier one that it has not got, or has for fewer seeds."""
    return _Merge(now, earlier).results()


class _Merge:
    def __init__(self, now: StudyResults, earlier: StudyResults) -> None:
        self._now = now
        self._earlier = earlier
        self._taken: dict[tuple[str, str], str] = {}
        """What comes from the earlier run: part and name, and its label."""

    def results(self) -> StudyResults:
        now, earlier = self._now, self._earlier
        found = replace(
            now,
            methods=self._methods(lambda each: each.methods),
            off_policy=self._methods(lambda each: each.off_policy, "off_policy"),
            best_of=self._curves("best_of", lambda each: each.best_of),
            sizes=self._curves("sizes", lambda each: each.sizes),
            credit=self._chosen(now.credit, earlier.credit, lambda *_: "credit", _listed(now, "credit")),
            steps=self._steps(now.steps, earlier.steps, "methods"),
            shares=self._shares(),
            off_policy_steps=self._steps(now.off_policy_steps, earlier.off_policy_steps, "off_policy"),
        )
        if not self._taken:
            return now
        return replace(
            found,
            seeds=tuple(sorted({*now.seeds, *earlier.seeds})),
            missing=tuple(self._missing()),
            earlier=tuple(Earlier(part=part, label=label) for (part, _), label in self._taken.items()),
        )

    # -------- what is chosen

    def _methods(
        self, of: Callable[[StudyResults], dict[str, MethodResult]], part: str | None = None
    ) -> dict[str, MethodResult]:
        def place(method: MethodResult) -> str:
            return part or ("methods" if method.table == "main" else "ablations")

        order = _listed(self._now, part) if part else list(self._now.settings.get("methods", ()))
        return self._chosen(of(self._now), of(self._earlier), place, order)

    def _curves(self, part: str, of: Callable[[StudyResults], Sequence[Curve]]) -> tuple[Curve, ...]:
        now, earlier = ({curve.name: curve for curve in of(each)} for each in (self._now, self._earlier))
        return tuple(self._chosen(now, earlier, lambda _: part, _listed(self._now, part)).values())

    def _chosen(
        self,
        now: Mapping[str, Found],
        earlier: Mapping[str, Found],
        place: Callable[[Found], str],
        order: Sequence[str],
    ) -> dict[str, Found]:
        """By name, the better of both, in the order of the study."""
        chosen = {}
        for name in sorted({*now, *earlier}.intersection(order), key=order.index):
            old = earlier.get(name)
            if old is not None and self._is_better(place(old), name, there=name in now):
                self._taken[place(old), name] = old.label
                chosen[name] = old
            elif name in now:
                chosen[name] = now[name]
        return chosen

    def _is_better(self, part: str, name: str, *, there: bool) -> bool:
        """Whether the earlier run has more seeds of it, with the same settings."""
        if not self._is_same(part, name):
            return False
        missing = [_seeds_missing(each, part, name) for each in (self._now, self._earlier)]
        return not there or missing[1] < missing[0]

    def _is_same(self, part: str, name: str) -> bool:
        now, earlier = (_settings_of(each.settings, part, name) for each in (self._now, self._earlier))
        # As text: what was a tuple is a list once it has been in a file.
        return msgspec.json.encode(_given(now), order="sorted") == msgspec.json.encode(
            _given(earlier), order="sorted"
        )

    # -------- what follows from it

    def _steps(self, now: Sequence[Step], earlier: Sequence[Step], part: str) -> tuple[Step, ...]:
        chosen = {(step.first, step.second): step for step in now}
        for step in earlier:
            there = chosen.get((step.first, step.second))
            same = all(self._is_same(part, name) for name in (step.first, step.second))
            if same and (there is None or there.seeds < step.seeds):
                chosen[step.first, step.second] = step
        order = list(self._now.settings.get("methods", ()))
        return tuple(
            sorted(chosen.values(), key=lambda step: (order.index(step.second), -order.index(step.first)))
        )

    def _shares(self) -> tuple[Share, ...]:
        named = [tuple(names) for names in self._now.settings.get("shares", ())]
        found: dict[tuple[str, ...], Share] = {}
        for share in (*self._now.shares, *self._earlier.shares):
            names = (share.first, share.second, share.best)
            same = all(self._is_same("methods", name) for name in names)
            if names in named and same and (names not in found or found[names].seeds < share.seeds):
                found[names] = share
        return tuple(found[names] for names in named if names in found)

    def _missing(self) -> Iterator[Missing]:
        """Of each metric, what its own run lacks."""
        yield from (each for each in self._now.missing if (each.part, each.name) not in self._taken)
        yield from (each for each in self._earlier.missing if (each.part, each.name) in self._taken)


def _seeds_missing(results: StudyResults, part: str, name: str) -> int:
    return sum(len(each.seeds) for each in results.missing if (each.part, each.name) == (part, name))


def _given(settings: Any) -> Any:
    """Settings without those that are left to a default: an earlier version may not know them yet."""
    if not isinstance(settings, Mapping):
        return settings
    return {key: _given(value) for key, value in settings.items() if value is not None}


def _listed(results: StudyResults, part: str) -> list[str]:
    """The methods or critics that a part is about, in the order of the study."""
    section = results.settings.get(part)
    return [] if section is None else list(section[SECTIONS[part]])


def _settings_of(settings: Mapping[str, Any], part: str, name: str) -> dict[str, Any]:
    """All that a metric depends on."""
    section = settings.get(part) if part in SECTIONS else None
    method = None if SECTIONS.get(part) == "critics" else settings.get("methods", {}).get(name)
    critic = name if method is None else method.get("critic")
    start = method.get("init_from") if method else None
    return {
        **{key: value for key, value in settings.items() if key not in ELSEWHERE},
        "part": {key: value for key, value in (section or {}).items() if key != SECTIONS[part]},
        "method": method,
        "critic": settings.get("critics", {}).get(critic),
        "start": _settings_of(settings, part, start) if start else None,
    }
