"""A study as a page: what is in its tables, and that its plots are files that stand alone."""

import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from sweetrl.evaluation.credit import CreditQuality
from sweetrl.evaluation.studies import (
    CriticResult,
    Curve,
    MethodResult,
    Missing,
    StudyResults,
    over_seeds,
    step,
)
from sweetrl.report.study_page import study_page
from sweetrl.types import Metric


def method(label: str, level: float, table: str = "main") -> MethodResult:
    runs = [
        {
            "success": {f"t{n}": float(n < level * 10 + seed) for n in range(10)},
            "turns": {f"t{n}": 4.0 for n in range(10)},
        }
        for seed in (0, 1)
    ]
    figures = over_seeds(runs, 8)
    return MethodResult(
        label=label, table=table, figures=figures, by_seed={"0": figures, "1": figures}, failed=0, unscored=0
    )


def table_of(level: float) -> list[dict[str, float]]:
    return [{f"t{n}": float(n < level * 10 + seed) for n in range(10)} for seed in (0, 1)]


@pytest.fixture
def results() -> StudyResults:
    half = Metric("success", 0.5, 0.4, 0.6, 10)
    curve = Curve(name="sweet", label="A | critic", points=((1.0, half), (4.0, half)))
    agreement = CreditQuality(
        critic="c", turns=3, undecided=1, spearman=half, pooled_spearman=half, auc=half, gain=half, top1=half
    )
    return StudyResults(
        title="A *study*",
        tasks="mini-backend:test:10:0",
        seeds=(0, 1),
        methods={
            "base": method("un_trained", 0.2),
            "dpo": method("DPO", 0.5),
            "less": method("less", 0.1, "ablations"),
        },
        steps=(
            step(("base", table_of(0.2)), ("dpo", table_of(0.5))),
            step(("dpo", table_of(0.5)), ("less", table_of(0.1))),
        ),
        best_of=(curve,),
        sizes=(curve,),
        off_policy={"base": method("un_trained", 0.3)},
        off_policy_model="mini-large",
        credit={"c": CriticResult(label="SWEET", by_seed={"0": agreement, "1": agreement})},
        settings={"output": "run", "seeds": 2},
    )


def test_what_results_must_not_be_read_as_is_said_before_them(results: StudyResults) -> None:
    cautious = replace(results, settings={"caution": "Too small to rank."})
    page, _ = study_page(cautious, "plots")
    assert 0 < page.index("**Too small to rank.**") < page.index("|")
    assert "**Too small" not in study_page(results, "plots")[0]


def test_the_tables_hold_the_figures(results: StudyResults) -> None:
    page, _ = study_page(results, "plots")
    assert "| un\\_trained | 25.0 (" in page
    assert "| DPO | 55.0 (" in page
    assert "| un\\_trained → DPO | +30.0 |" in page
    assert "| 2 of 2 |" in page
    assert "| DPO → less | −40.0 |" in page
    assert page.index("## Ablations") < page.index("| less |") < page.index("mini-large")
    assert "| SWEET | 0.50 (0.50 to 0.50) |" in page
    assert '"seeds": 2' in page


def test_turns_are_counted_where_facts_are_known(results: StudyResults) -> None:
    assert "## Turn by turn" not in study_page(results, "plots")[0]
    useful = (Metric("useful", 0.25, 0.2, 0.3, 10), Metric("useful", 0.75, 0.7, 0.8, 10))
    asking = replace(results.methods["dpo"], useful=useful)
    page, plots = study_page(replace(results, methods=results.methods | {"dpo": asking}), "plots")
    section = page.partition("## Turn by turn")[2].partition("##")[0]
    assert "|  | 1 | 2 |" in section
    assert "| DPO | 25.0 (20.0 to 30.0) | 75.0 (70.0 to 80.0) |" in section
    assert "un\\_trained" not in section
    assert "useful questions" in plots["turns.svg"]


def test_a_method_with_another_model_is_told_apart_in_the_table_by_seed(results: StudyResults) -> None:
    section = study_page(results, "plots")[0].partition("## Success by seed")[2].partition("##")[0]
    first_cells = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]
    assert first_cells[-4:] == ["un\\_trained", "DPO", "less", "un\\_trained (mini-large)"]


@pytest.mark.parametrize(("domain", "called"), [("backend", "tests passed"), ("frontend", "similarity")])
def test_the_reward_is_called_what_the_domain_of_the_study_calls_it(
    results: StudyResults, domain: str, called: str
) -> None:
    reward = Metric("reward", 0.5, 0.4, 0.6, 10)
    methods = {
        name: replace(each, figures={**each.figures, "reward": reward})
        for name, each in results.methods.items()
    }
    page, _ = study_page(replace(results, methods=methods, settings={"domain": domain}), "plots")
    assert f"| {called} |" in page


def test_a_part_with_fewer_seeds_says_so(results: StudyResults) -> None:
    settings = results.settings | {"sizes": {"seeds": 1}, "best_of": {"seeds": 2}, "off_policy": None}
    page, _ = study_page(replace(results, settings=settings), "plots")
    assert page.count("With seed 0 alone.") == 1
    assert page.index("## Number of dialogues") < page.index("With seed 0 alone.")
    rest = Missing(part="sizes", name="sweet", label="SWEET", seeds=(0,))
    page, _ = study_page(replace(results, settings=settings, missing=(rest,)), "plots")
    assert "With seed 0 alone, as far as finished." in page


def test_labels_are_text_and_not_markup(results: StudyResults) -> None:
    page, plots = study_page(results, "plots")
    assert page.startswith("# A \\*study\\*\n")
    assert "A \\| critic" in page
    assert all(line.count(" | ") == 2 for line in page.splitlines() if line.startswith("| A \\| critic"))
    assert "A | critic" in plots["best_of.svg"]


def test_the_plots_are_whole_pictures_with_a_legend(results: StudyResults) -> None:
    page, plots = study_page(results, "plots")
    assert set(plots) == {"methods.svg", "best_of.svg", "sizes.svg"}
    for name, picture in plots.items():
        assert f"](plots/{name})" in page
        root = ET.fromstring(picture)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.get("width", "0")) > 100
        words = " ".join(root.itertext())
        assert ("DPO" if name == "methods.svg" else "A | critic") in words


def test_what_a_study_does_not_have_is_not_on_its_page(results: StudyResults) -> None:
    import msgspec

    small = msgspec.structs.replace(results, best_of=(), sizes=(), off_policy={}, credit={}, seeds=(3,))
    page, plots = study_page(small, "plots")
    assert list(plots) == ["methods.svg"]
    assert "by seed" not in page
    assert "seed 3" in page


def test_dialogues_that_failed_are_said_to_be_missing(results: StudyResults) -> None:
    import msgspec

    broken = {"base": msgspec.structs.replace(results.methods["base"], failed=2, unscored=1)}
    page, _ = study_page(msgspec.structs.replace(results, methods=broken, steps=()), "plots")
    assert "**3 dialogues failed or could not be scored" in page
