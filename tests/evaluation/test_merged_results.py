"""One study from several runs: each figure from the run that has more of its seeds, and only with the same settings."""

from typing import Any

import pytest
from msgspec.structs import replace

from sweetrl.evaluation.credit import CreditQuality
from sweetrl.evaluation.merged_results import merged_results
from sweetrl.evaluation.studies import (
    CriticResult,
    Curve,
    Earlier,
    MethodResult,
    Missing,
    Share,
    Step,
    StudyResults,
)
from sweetrl.types import Metric

SEEDS = (0, 1, 2)
SETTINGS: dict[str, Any] = {
    "title": "A study",
    "output": "runs/study",
    "seeds": 3,
    "tasks": {"train": "t"},
    "critics": {"sweet": {"epochs": 2}, "blind": {"blind": True}},
    "methods": {
        "base": {"algorithm": "none", "critic": None},
        "dpo": {"algorithm": "dpo", "critic": None},
        "sweet": {"algorithm": "sweet", "critic": "sweet"},
        "blind": {"algorithm": "sweet", "critic": "blind"},
    },
    "best_of": {"n": [1, 4], "critics": ["sweet", "blind"]},
    "sizes": {"tasks": ["s"], "methods": ["dpo"]},
    "credit": {"turns": 9, "critics": ["sweet", "blind"]},
    "off_policy": None,
}
TABLES = {"base": "main", "dpo": "main", "sweet": "main", "blind": "ablations"}


def metric(level: float) -> Metric:
    return Metric("success", level, level, level, 10)


def method(name: str, level: float, seeds: tuple[int, ...] = SEEDS) -> MethodResult:
    by_seed = {str(seed): {"success": metric(level)} for seed in seeds}
    figures = {"success": metric(level)}
    return MethodResult(
        label=name.upper(), table=TABLES[name], figures=figures, by_seed=by_seed, failed=0, unscored=0
    )


def step(first: str, second: str, value: float, seeds: int = 3) -> Step:
    return Step(
        first=first,
        second=second,
        value=value,
        low=value,
        high=value,
        seeds=seeds,
        seeds_above=seeds,
        tasks=10,
        wins=1,
        losses=1,
    )


def critic(level: float) -> CriticResult:
    found = metric(level)
    quality = CreditQuality(
        critic="c",
        turns=3,
        undecided=1,
        spearman=found,
        pooled_spearman=found,
        auc=found,
        gain=found,
        top1=found,
    )
    return CriticResult(label="SWEET", by_seed={str(seed): quality for seed in SEEDS})


def curve(name: str, level: float) -> Curve:
    return Curve(name=name, label=name.upper(), points=((1.0, metric(level)),))


def lacks(part: str, name: str, *seeds: int) -> Missing:
    return Missing(part=part, name=name, label=name.upper(), seeds=seeds or SEEDS)


def results(**fields: Any) -> StudyResults:
    whole: dict[str, Any] = {"methods": {}, "steps": (), "settings": SETTINGS, "seeds": SEEDS}
    return StudyResults(title="A study", tasks="t", **(whole | fields))


@pytest.fixture
def earlier() -> StudyResults:
    """A run of the main table, that was not finished with the ablation."""
    return results(
        methods={
            "base": method("base", 0.1),
            "dpo": method("dpo", 0.2),
            "sweet": method("sweet", 0.3),
            "blind": method("blind", 0.4, (0,)),
        },
        steps=(
            step("base", "dpo", 0.1),
            step("dpo", "sweet", 0.1),
            step("base", "sweet", 0.2),
            step("sweet", "blind", 0.1, seeds=1),
        ),
        missing=(lacks("ablations", "blind", 1, 2), lacks("credit", "sweet"), lacks("best_of", "sweet")),
    )


@pytest.fixture
def now() -> StudyResults:
    """Another one on a new machine, of what the first had not done."""
    return results(
        methods={"sweet": method("sweet", 0.35), "blind": method("blind", 0.45)},
        steps=(step("sweet", "blind", 0.15),),
        credit={"sweet": critic(0.7)},
        best_of=(curve("sweet", 0.5),),
        missing=(lacks("methods", "base"), lacks("methods", "dpo"), lacks("sizes", "dpo")),
    )


def test_each_figure_is_of_the_run_that_has_more_of_its_seeds(
    now: StudyResults, earlier: StudyResults
) -> None:
    both = merged_results(now, earlier)
    levels = {name: each.figures["success"].value for name, each in both.methods.items()}
    assert levels == {"base": 0.1, "dpo": 0.2, "sweet": 0.35, "blind": 0.45}
    assert list(both.methods) == ["base", "dpo", "sweet", "blind"]
    assert both.credit == now.credit
    assert both.best_of == now.best_of


def test_the_page_knows_what_is_from_the_earlier_run_and_what_is_in_none(
    now: StudyResults, earlier: StudyResults
) -> None:
    both = merged_results(now, earlier)
    assert both.earlier == (Earlier(part="methods", label="BASE"), Earlier(part="methods", label="DPO"))
    assert both.missing == (lacks("sizes", "dpo"),)


def test_steps_are_of_the_run_with_more_seeds_and_in_the_order_of_the_study(
    now: StudyResults, earlier: StudyResults
) -> None:
    found = [(each.first, each.second, each.value) for each in merged_results(now, earlier).steps]
    assert found == [
        ("base", "dpo", 0.1),
        ("dpo", "sweet", 0.1),
        ("base", "sweet", 0.2),
        ("sweet", "blind", 0.15),
    ]


def test_what_both_have_is_of_this_run(earlier: StudyResults) -> None:
    again = replace(
        earlier, methods={name: method(name, 0.9) for name in ("base", "dpo", "sweet")}, missing=()
    )
    both = merged_results(again, earlier)
    assert {name: each.figures["success"].value for name, each in both.methods.items()} == {
        "base": 0.9,
        "dpo": 0.9,
        "sweet": 0.9,
        "blind": 0.4,  # with the seeds that it has
    }
    assert both.missing == (lacks("ablations", "blind", 1, 2),)


def test_a_run_that_has_everything_needs_no_earlier_one(now: StudyResults) -> None:
    assert merged_results(now, now) == now


def test_results_that_were_in_a_file_have_the_same_settings(now: StudyResults, earlier: StudyResults) -> None:
    as_given = changed(now, tasks={"train": ("a", "b")})
    as_read = changed(earlier, tasks={"train": ["a", "b"]})
    assert "base" in merged_results(as_given, as_read).methods


def changed(results: StudyResults, **settings: Any) -> StudyResults:
    return replace(results, settings=SETTINGS | settings)


def test_a_setting_that_an_earlier_version_did_not_have_changes_nothing_unless_it_is_set(
    now: StudyResults, earlier: StudyResults
) -> None:
    def with_field(value: float | None) -> StudyResults:
        settings = {**now.settings, "policy": {"held_out": value}}
        return replace(now, settings=settings)

    before = replace(earlier, settings={**earlier.settings, "policy": {}})
    assert merged_results(with_field(None), before).earlier == merged_results(now, earlier).earlier != ()
    assert merged_results(with_field(0.1), before).earlier == ()


def test_other_settings_of_all_are_another_study(now: StudyResults, earlier: StudyResults) -> None:
    assert merged_results(now, changed(earlier, tasks={"train": "u"})) == now


def test_other_settings_of_one_method_leave_that_one_out(now: StudyResults, earlier: StudyResults) -> None:
    methods = SETTINGS["methods"] | {"dpo": {"algorithm": "dpo", "critic": None, "epochs": 9}}
    both = merged_results(now, changed(earlier, methods=methods))
    assert list(both.methods) == ["base", "sweet", "blind"]
    assert [(each.first, each.second) for each in both.steps] == [("base", "sweet"), ("sweet", "blind")]
    assert lacks("methods", "dpo") in both.missing


def test_another_start_makes_another_method(now: StudyResults, earlier: StudyResults) -> None:
    methods = {**SETTINGS["methods"], "dpo": {**SETTINGS["methods"]["dpo"], "init_from": "base"}}
    now, earlier = (replace(each, settings={**SETTINGS, "methods": methods}) for each in (now, earlier))
    assert merged_results(now, earlier).methods["dpo"] == earlier.methods["dpo"]
    methods = {**methods, "base": {**methods["base"], "policy": {"epochs": 3}}}
    assert (
        "dpo" not in merged_results(replace(now, settings={**SETTINGS, "methods": methods}), earlier).methods
    )


def test_another_critic_makes_another_method(now: StudyResults, earlier: StudyResults) -> None:
    without = replace(now, methods={}, steps=())
    critics = SETTINGS["critics"] | {"sweet": {"epochs": 5}}
    both = merged_results(without, changed(earlier, critics=critics))
    assert list(both.methods) == ["base", "dpo", "blind"]


def test_settings_of_other_parts_change_nothing(now: StudyResults, earlier: StudyResults) -> None:
    sections = {"best_of": None, "credit": {"turns": 1, "critics": ["blind"]}, "output": "elsewhere"}
    assert list(merged_results(now, changed(earlier, **sections)).methods) == [
        "base",
        "dpo",
        "sweet",
        "blind",
    ]


def test_curves_and_critics_are_kept_as_methods_are(now: StudyResults, earlier: StudyResults) -> None:
    again = merged_results(earlier, now)
    assert again.credit == now.credit
    assert again.best_of == now.best_of
    assert Earlier(part="credit", label="SWEET") in again.earlier
    fewer_turns = changed(now, credit={"turns": 1, "critics": ["sweet"]})
    assert not merged_results(earlier, fewer_turns).credit


def test_what_the_study_no_longer_has_is_dropped(now: StudyResults, earlier: StudyResults) -> None:
    fewer = {name: each for name, each in SETTINGS["methods"].items() if name != "dpo"}
    both = merged_results(changed(now, methods=fewer), earlier)
    assert list(both.methods) == ["base", "sweet", "blind"]
    assert all("dpo" not in (each.first, each.second) for each in both.steps)


def test_a_share_comes_from_the_run_that_has_more_seeds_of_it_as_long_as_the_study_names_it(
    now: StudyResults, earlier: StudyResults
) -> None:
    def with_share(run: StudyResults, value: float, seeds: int, *named: list[str]) -> StudyResults:
        found = Share(first="base", second="dpo", best="sweet", value=value, low=0.0, high=1.0, seeds=seeds)
        return replace(run, shares=(found,), settings={**SETTINGS, "shares": named})

    names = ["base", "dpo", "sweet"]
    both = merged_results(with_share(now, 0.4, 1, names), with_share(earlier, 0.5, 3, names))
    assert [share.value for share in both.shares] == [0.5]
    assert merged_results(with_share(now, 0.4, 1), with_share(earlier, 0.5, 3, names)).shares == ()
