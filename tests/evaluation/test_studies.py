import pytest

from sweetrl.evaluation.studies import over_seeds, share, step


def test_a_step_is_the_mean_of_the_differences_on_the_same_tasks_and_seeds() -> None:
    first = [{"a": 0.0, "b": 0.0, "c": 1.0}, {"a": 0.0, "b": 0.0, "c": 1.0}]
    second = [{"a": 1.0, "b": 0.0, "c": 1.0}, {"a": 1.0, "b": 0.0, "c": 0.0}]
    found = step(("x", first), ("y", second))
    assert found.value == pytest.approx((1 + 1 - 1) / 6)
    assert (found.first, found.second, found.tasks) == ("x", "y", 3)
    assert (found.wins, found.losses, found.seeds_above) == (1, 1, 1)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high


def test_a_large_and_steady_step_is_not_a_matter_of_chance() -> None:
    first = [{f"t{n}": 0.0 for n in range(100)}] * 3
    second = [{f"t{n}": float(n % 2) for n in range(100)}] * 3
    found = step(("x", first), ("y", second))
    assert found.low is not None
    assert found.low > 0.3
    assert found.seeds_above == 3


def test_without_a_common_task_there_is_no_step() -> None:
    found = step(("x", [{"a": 1.0}]), ("y", [{"b": 1.0}]))
    assert (found.value, found.tasks) == (None, 0)


def test_a_share_is_the_gain_of_the_second_by_that_of_the_best() -> None:
    first = [{f"t{n}": 0.0 for n in range(100)}] * 3
    second = [{f"t{n}": float(n % 4 == 0) for n in range(100)}] * 3
    best = [{f"t{n}": float(n % 2 == 0) for n in range(100)}] * 3
    found = share(("a", first), ("b", second), ("c", best))
    assert found.value == pytest.approx(0.5)
    assert (found.first, found.second, found.best, found.seeds) == ("a", "b", "c", 3)
    assert found.low is not None
    assert found.high is not None
    assert 0.2 < found.low < 0.5 < found.high < 0.8


def test_without_a_gain_there_is_no_share() -> None:
    same = [{"a": 1.0, "b": 0.0}] * 2
    assert share(("a", same), ("b", same), ("c", same)).value is None


def test_figures_are_those_that_all_runs_have() -> None:
    runs = [
        {"success": {"a": 1.0, "b": 0.0}, "turns": {"a": 3.0, "b": 5.0}},
        {"success": {"a": 0.0, "b": 0.0}},
    ]
    figures = over_seeds(runs, 8)
    assert list(figures) == ["success"]
    assert figures["success"].value == pytest.approx(0.25)


def test_turns_may_be_as_many_as_there_are() -> None:
    runs = [{"turns": {"a": 8.0, "b": 2.0}}, {"turns": {"a": 7.0, "b": 8.0}}]
    figure = over_seeds(runs, 8)["turns"]
    assert figure.value == pytest.approx(6.25)
    assert figure.high is not None
    assert 6.25 < figure.high <= 8
