"""`sweetrl compare`: folders in, differences out; and what cannot be compared."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from conftest import Finished
from sweetrl.types import Ending, Episode, Failure, Turn, Verdict

Sweetrl = Callable[..., Finished]


def write_run(
    folder: Path,
    rewards: dict[str, list[float | None]],
    *,
    scorer: str = "backend-module/1",
    tasks: str = "hash",
    request: str = "Write it.",
) -> Path:
    folder.mkdir()
    episodes, verdicts = [], []
    for task, given in rewards.items():
        for attempt, reward in enumerate(given):
            episode = Episode(
                task_id=task,
                attempt=attempt,
                seed=0,
                agent="a",
                collaborator="c",
                request=request,
                turns=(Turn("x", "x"),),
                ending=Ending.ANSWERED,
                answer="x",
            )
            verdict = Verdict(
                task_id=task,
                episode_id=episode.id,
                scorer=scorer,
                answer_digest="-",
                reward=reward,
                success=reward == 1,
                failure=None if reward is not None else Failure("score", "SandboxError", "gone"),
            )
            episodes.append(episode)
            verdicts.append(verdict)
    for name, records in (("episodes", episodes), ("verdicts", verdicts)):
        (folder / f"{name}.jsonl").write_bytes(
            b"".join(msgspec.json.encode(each) + b"\n" for each in records)
        )
    card = {"command": "rollout", "config": {"tasks": f"{len(rewards)} tasks {tasks}"}, "versions": {}}
    (folder / "episodes.run.json").write_text(json.dumps({**card, "started": "now"}))
    return folder


BASE = {"a": [0.0, 1.0], "b": [0.5], "c": [0.0], "d": [0.0]}
BETTER = {"a": [1.0], "b": [1.0], "c": [1.0], "d": [0.0]}


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [write_run(tmp_path / "base", BASE), write_run(tmp_path / "better", BETTER)]


def test_differences_are_paired_by_task(sweetrl: Sweetrl, runs: list[Path]) -> None:
    ended = sweetrl("compare", *runs, "--json")
    said = json.loads(ended.out)
    assert (ended.code, ended.err) == (0, "")
    [found] = said["comparisons"]
    assert (found["first"], found["second"], found["tasks"]) == (str(runs[0]), str(runs[1]), 4)
    assert found["success"]["value"] == pytest.approx((0.5 + 1 + 1 + 0) / 4)
    assert found["success"]["p"] == pytest.approx(2 / 8)
    assert found["reward"]["value"] == pytest.approx((0.5 + 0.5 + 1 + 0) / 4)
    assert found["win_rate"]["value"] == pytest.approx(3.5 / 4)
    assert [run["success"]["value"] for run in said["runs"]] == [pytest.approx(0.2), 0.75]


def test_all_runs_are_compared_with_the_first(sweetrl: Sweetrl, runs: list[Path], tmp_path: Path) -> None:
    third = write_run(tmp_path / "third", BASE)
    said = json.loads(sweetrl("compare", *runs, third, "--json").out)
    assert [(each["second"], each["success"]["p"]) for each in said["comparisons"]] == [
        (str(runs[1]), 0.25),
        (str(third), 1.0),
    ]


def test_a_table_names_runs_by_what_tells_them_apart(
    sweetrl: Sweetrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "of-a-long-study-with-many-seeds-and-methods" / "evaluations"
    deep.mkdir(parents=True)
    base, better = write_run(deep / "base", BASE), write_run(deep / "better", BETTER)
    said = sweetrl("compare", base, better).out
    assert [line.split()[1] for line in said.splitlines() if line[:2] == "│ " and line[2] != " "] == [
        *("base", "better"),
        *("base", "better"),
        *("base", "better"),
    ]
    assert "to base" in said
    monkeypatch.chdir(deep)
    assert sweetrl("compare", base, "better").out.count("better") == 3, (
        "a full path and a short one go together"
    )


def test_people_get_a_table_for_each_outcome(
    sweetrl: Sweetrl, runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    ended = sweetrl("compare", *runs)
    assert ended.code == 0
    for words in ("success, %", "tests passed, %", "+62.5 (", "0.2500", "win rate, %", "87.5 ("):
        assert words in ended.out


def test_pages_are_compared_by_similarity(sweetrl: Sweetrl, tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / name, {"a": [reward], "b": [0.5]}, scorer="frontend-layout/1")
        for name, reward in (("one", 0.4), ("two", 0.6))
    ]
    assert "similarity, %" in sweetrl("compare", *folders).out


def test_rewards_of_a_domain_that_is_not_installed_are_in_per_cent_only_if_they_can_be(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    points = [
        write_run(tmp_path / name, {"a": [7.5], "b": [got]}, scorer="shop-rows/1")
        for name, got in (("p", 2.0), ("q", 4.0))
    ]
    said = sweetrl("compare", *points).out
    assert "reward, with 95 % intervals" in said
    assert "4.75" in said
    assert "+1.00" in said
    shares = [
        write_run(tmp_path / name, {"a": [0.5], "b": [got]}, scorer="shop-rows/1")
        for name, got in (("r", 0.0), ("s", 1.0))
    ]
    said = sweetrl("compare", *shares).out
    assert "reward, %, with 95 % intervals" in said
    assert "+50.0" in said


def test_tasks_of_only_one_run_are_counted_and_named(
    sweetrl: Sweetrl, runs: list[Path], tmp_path: Path
) -> None:
    other = write_run(
        tmp_path / "other", {**BETTER, **{f"x{number}": [1.0] for number in range(9)}, "b": [None]}
    )
    ended = sweetrl("compare", runs[0], other)
    assert f"1 tasks are ignored, scored in {runs[0]} only: b\n" in ended.err
    assert f"9 tasks are ignored, scored in {other} only: x0, x1, x2, x3, x4, ...\n" in ended.err
    assert f"{other}: 1 unscored" in ended.err


@pytest.mark.parametrize(
    ("rewards", "options", "complaint"),
    [
        (BETTER, {"scorer": "backend-official/1"}, "only verdicts of one scorer can be compared"),
        (BETTER, {"request": "Write that."}, "are on different tasks: a asks for something else"),
        (BETTER, {"tasks": "other"}, "different tasks: their references or tests differ"),
        ({"z": [1.0]}, {}, "no scored task in common"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    sweetrl: Sweetrl, runs: list[Path], tmp_path: Path, rewards, options, complaint
) -> None:
    ended = sweetrl("compare", runs[0], write_run(tmp_path / "odd", rewards, **options))
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert complaint in ended.err


def test_a_sample_of_the_tasks_can_be_compared_with_all_of_them(
    sweetrl: Sweetrl, runs: list[Path], tmp_path: Path
) -> None:
    some = write_run(tmp_path / "some", {"a": [1.0], "b": [1.0]}, tasks="another hash")
    assert sweetrl("compare", runs[0], some).code == 0


def test_a_folder_without_verdicts_is_told_how_to_get_some(sweetrl: Sweetrl, runs: list[Path]) -> None:
    (runs[1] / "verdicts.jsonl").unlink()
    ended = sweetrl("compare", *runs)
    assert ended.code == 2
    assert f"{runs[1]}: holds no verdicts.jsonl; `sweetrl evaluate` and `sweetrl score` make one" in ended.err


def test_dialogues_are_not_needed_to_compare_verdicts(sweetrl: Sweetrl, runs: list[Path]) -> None:
    for run in runs:
        (run / "episodes.jsonl").unlink()
    assert sweetrl("compare", *runs).code == 0


def test_one_run_is_no_comparison(sweetrl: Sweetrl, runs: list[Path]) -> None:
    ended = sweetrl("compare", runs[0])
    assert (ended.code, "name two or more" in ended.err) == (2, True)
