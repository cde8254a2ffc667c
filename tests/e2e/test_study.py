"""Whole studies on the tiny model that ships: all their parts, killed and resumed, and the quickstart."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import CHECKOUT, Finished
from sweetrl.cli import main, quickstart
from sweetrl.experiments import runner, study_report
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.records import read_records
from sweetrl.types import Episode

Sweetrl = Callable[..., Finished]

STUDY = """
output = "{output}"
title = "Tiny"
[tasks]
train = "mini-backend:train:6:{{seed}}"
test = "mini-backend:test:3:{{seed}}"
[agent]
model = "mini"
max_tokens = 128
[collaborator]
model = "colleague"
[rollout]
attempts = 4
turn_limit = 8
[pairs]
rule = "all"
[critic]
prompt = "privileged-mini"
learning_rate = 1e-3
batch_size = 4
max_steps = 2
save_every = 1
[candidates]
n = 2
attempts = 1
[turn_pairs]
pairs = 1
[policy]
learning_rate = 1e-3
batch_size = 4
max_steps = 2
save_every = 1
[critics.sweet]
[methods.base]
algorithm = "none"
[methods.dpo]
label = "DPO"
algorithm = "dpo"
"""
RFT = """
[methods.rft]
algorithm = "rft"
"""
SWEET = """
[methods.sweet]
label = "SWEET-RL"
algorithm = "sweet"
critic = "sweet"
"""
PARTS = """
[critics.zero]
use = "zero:mini"
[critics.oracle]
replays = 2
turns = 4
[methods.oracle]
algorithm = "sweet"
critic = "oracle"
table = "ablations"
[methods.again]
algorithm = "none"
table = "ablations"
against = "dpo"
[best_of]
n = [1, 2]
critics = ["sweet", "zero"]
tasks = "mini-backend:test:2:{seed}"
[sizes]
tasks = ["mini-backend:train:4:{seed}"]
methods = ["dpo", "sweet"]
[off_policy]
model = "mini"
methods = ["base", "sweet"]
[credit]
tasks = "mini-backend:validation:2:{seed}"
turns = 4
replays = 2
critics = ["sweet", "zero"]
"""


class InThisProcess:
    """A stage that runs when it is asked how it is, so that PyTorch is loaded once for all stages."""

    latest: "InThisProcess | None" = None
    """The one that was started last."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._before, InThisProcess.latest = InThisProcess.latest, self

    def poll(self) -> int | None:
        """Of several stages the one that was started last is done first."""
        if InThisProcess.latest is not self:
            return None
        InThisProcess.latest = self._before
        return main.run([*self._stage.arguments, "--quiet"])

    def terminate(self) -> None:
        """There is nothing to end."""

    def wait(self) -> None:
        """The same."""


@pytest.fixture(scope="module")
def in_this_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        _let_stages_run_here(monkeypatch)
        yield


def _let_stages_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalExecutor, "start", lambda _executor, _number, stage: InThisProcess(stage))
    monkeypatch.setattr(InThisProcess, "latest", None)
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(study_report, "EXAMPLES", 2)  # each is credited by a critic


def written(folder: Path, *parts: str, name: str = "run") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(STUDY.format(output=folder / name) + "".join(parts))
    return path


def results_of(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "results.json").read_text())
    assert isinstance(found, dict)
    return found


pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture(scope="module")
def whole(in_this_process: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study with all parts, done one stage after the other."""
    folder = tmp_path_factory.mktemp("whole")
    assert main.run(["run", str(written(folder, RFT, SWEET, PARTS)), "--quiet"]) == 0
    return folder / "run"


def test_all_parts_of_a_study_come_to_results_a_page_and_a_report(sweetrl: Sweetrl, whole: Path) -> None:
    ended = sweetrl("run", whole.parent / "run.toml", "--report-only", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["report"] == str(whole / "report.html")
    results = results_of(whole)
    assert results["missing"] == []
    assert list(results["methods"]) == ["base", "dpo", "rft", "sweet", "oracle", "again"]
    assert results["methods"]["sweet"]["figures"]["success"]["count"] == 3
    assert {"reward", "turns", "coverage", "repeats", "premature"} < set(
        results["methods"]["base"]["figures"]
    )
    steps = [(step["first"], step["second"]) for step in results["steps"]]
    assert steps == [
        ("base", "dpo"),
        ("dpo", "rft"),
        ("rft", "sweet"),
        ("base", "sweet"),
        ("dpo", "sweet"),
        ("sweet", "oracle"),
        ("dpo", "again"),
    ]
    assert [[place for place, _ in curve["points"]] for curve in results["best_of"]] == [[1, 2], [1, 2]]
    assert [[place for place, _ in curve["points"]] for curve in results["sizes"]] == [[16, 24], [16, 24]]
    assert list(results["off_policy"]) == ["base", "sweet"]
    assert list(results["credit"]) == ["sweet", "zero"]
    page = (whole / "results.md").read_text()
    assert "| SWEET-RL |" in page
    assert "Not finished" not in page
    assert (whole / "results" / "best_of.svg").is_file()
    report = (whole / "report.html").read_text()
    assert all(word in report for word in ("SWEET-RL", "advantage", "critics/sweet", "sweetrl turn-pairs"))
    assert "of tasks it has never seen" in headline(report)
    # A study that is too small for a ranking opens with that, and not with one.
    told = sweetrl(
        "run", whole.parent / "run.toml", "--report-only", "--set", 'caution="Too small to rank methods."'
    )
    assert told.code == 0, told.err
    assert headline((whole / "report.html").read_text()) == "Too small to rank methods."


def headline(page: str) -> str:
    return page.partition('<h1 id="top">')[2].partition("</h1>")[0]


def _tells_times(path: Path) -> bool:
    return path.name == "log.jsonl" or "checkpoints" in path.parts


def made_in(folder: Path) -> dict[str, bytes]:
    """All that stages wrote, without the name of the folder and how long anything took."""
    names = ("*.jsonl", "metrics.json", "model.safetensors")
    found = [path for name in names for path in folder.rglob(name) if not _tells_times(path)]
    return {str(path.relative_to(folder)): _content(path, folder) for path in found}


def _content(path: Path, folder: Path) -> bytes:
    """Records are written as they come, so their order says nothing."""
    content = path.read_bytes().replace(str(folder).encode(), b"")
    return b"\n".join(sorted(content.splitlines())) if path.suffix == ".jsonl" else content


def test_stages_side_by_side_in_any_order_write_the_same_files(
    sweetrl: Sweetrl, whole: Path, tmp_path: Path
) -> None:
    parts = ("--only", "methods,best_of", "--jobs", "99")
    ended = sweetrl("run", written(tmp_path, RFT, SWEET, PARTS), *parts)
    assert ended.code == 0, ended.err
    one, many = (
        [entry["stage"] for entry in json.loads((folder / "run.json").read_text())]
        for folder in (whole, tmp_path / "run")
    )
    one = [stage for stage in one if stage in many]
    assert one != many
    assert sorted(one) == sorted(many)
    made, wanted = made_in(tmp_path / "run"), made_in(whole)
    assert len(made) > 20
    assert made == {name: wanted[name] for name in made}
    results, all_results = results_of(tmp_path / "run"), results_of(whole)
    for name, method in results["methods"].items():
        assert method == all_results["methods"][name]
    assert results["best_of"] == all_results["best_of"]


UNTRAINED = """
[critics.zero]
use = "zero:mini"
[methods.again]
label = "once more"
algorithm = "none"
table = "ablations"
[best_of]
n = [2]
critics = ["zero"]
"""


@pytest.mark.usefixtures("in_this_process")
def test_parts_and_seeds_that_are_not_done_are_named_and_in_no_figure(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    recipe = written(tmp_path, UNTRAINED)
    without_dpo = ("--set", "methods={base={algorithm='none'}, again={algorithm='none', table='ablations'}}")
    command = ("run", recipe, *without_dpo)
    nothing = sweetrl(*command, "--report-only")
    assert (nothing.code, "nothing has been evaluated yet" in nothing.err) == (2, True)
    assert not (tmp_path / "run").exists()
    assert sweetrl(*command, "--only", "methods").code == 0
    results = results_of(tmp_path / "run")
    assert (list(results["methods"]), results["best_of"]) == (["base"], [])
    assert sweetrl(*command, "--only", "ablations,best_of").code == 0
    results = results_of(tmp_path / "run")
    assert (list(results["methods"]), len(results["best_of"])) == (["base", "again"], 1)
    assert results["missing"] == []
    ended = sweetrl(*command, "--set", "seeds=3", "--report-only")
    assert ended.code == 0, ended.err
    page = (tmp_path / "run" / "results.md").read_text()
    said = "methods: base (seeds 1, 2); ablations: again (seeds 1, 2); best\\_of: zero (seeds 1, 2)."
    assert f"**Not finished and in no figure: {said}**" in page
    assert "seed 0" in page.partition("##")[0]
    assert not (tmp_path / "run" / "seed-1").exists()


def test_a_page_is_made_again_from_what_is_kept_beside_it(
    sweetrl: Sweetrl, whole: Path, tmp_path: Path
) -> None:
    page = tmp_path / "docs" / "study.md"
    command = ("run", whole.parent / "run.toml", "--report-only", "--set", f"page={page}")
    assert sweetrl(*command).code == 0
    first = without_settings(page)
    assert all(heading in first for heading in ("## Methods", "## The best of N", "## Number", "## Credit"))
    kept = sorted(path.relative_to(page.parent) for path in page.parent.rglob("seed-*/**/*.json"))
    assert Path("study/seed-0/evaluations/dpo.json") in kept
    elsewhere = sweetrl(*command, "--set", f"output={tmp_path / 'elsewhere'}", "--json")
    assert elsewhere.code == 0, elsewhere.err
    assert json.loads(elsewhere.out).keys() == {"output", "page"}
    assert without_settings(page) == first
    assert not (tmp_path / "elsewhere").exists()


def without_settings(page: Path) -> str:
    return page.read_text().partition("## Settings")[0]


@pytest.mark.usefixtures("in_this_process")
def test_a_run_adds_to_what_others_measured_with_the_same_commands(sweetrl: Sweetrl, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "study.md"
    methods = "methods={base={algorithm='none'}, again={algorithm='none', table='ablations'}}"
    command = ("run", written(tmp_path, UNTRAINED), "--set", methods, "--set", f"page={page}")
    assert sweetrl(*command, "--only", "methods").code == 0
    shutil.rmtree(tmp_path / "run")
    assert sweetrl(*command, "--only", "ablations", "--set", "seeds=2").code == 0
    results = results_of(tmp_path / "run")
    assert {name: list(found["by_seed"]) for name, found in results["methods"].items()} == {
        "base": ["0"],
        "again": ["0", "1"],
    }
    assert next((each["name"], each["seeds"]) for each in results["missing"]) == ("base", [1])
    colder = ("--set", "agent.temperature=0.5", "--set", f"output={tmp_path / 'other'}", "--report-only")
    ended = sweetrl(*command, *colder)
    assert (ended.code, "nothing has been evaluated yet" in ended.err) == (2, True)
    kept = page.with_suffix("") / "seed-0" / "evaluations" / "base.json"
    text = page.read_text()
    kept.write_text('{"schema":')
    ended = sweetrl(*command, "--report-only")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert f"{kept}: not a measurement of a study" in ended.err
    assert page.read_text() == text


def test_parts_that_a_study_does_not_have_are_refused(sweetrl: Sweetrl, tmp_path: Path) -> None:
    recipe = written(tmp_path, UNTRAINED)
    for name, hint in (("bestof", "did you mean 'best_of'?"), ("x", "there are methods, ablations, best_of")):
        ended = sweetrl("run", recipe, "--only", f"methods,{name}")
        assert (ended.code, ended.err) == (
            2,
            f"error: --only: the study has no part '{name}'; {hint}\n",
        )
    ended = sweetrl("run", CHECKOUT / "recipes" / "laptop.toml", "--only", "methods")
    assert (ended.code, "is a recipe, not a study" in ended.err) == (2, True)


@pytest.mark.usefixtures("in_this_process")
def test_several_seeds_learn_from_other_tasks_and_meet_the_same_ones(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    ended = sweetrl("run", written(tmp_path), "--set", "seeds=2", "--set", "seed=3")
    assert ended.code == 0, ended.err
    folder = tmp_path / "run"
    tasks = [
        {episode.task_id for episode in read_records(folder / f"seed-{seed}" / name, Episode)}
        for name in ("episodes.jsonl", "evaluations/dpo/episodes.jsonl")
        for seed in (3, 4)
    ]
    assert tasks[0].isdisjoint(tasks[1])
    assert tasks[2] == tasks[3]
    results = results_of(folder)
    assert list(results["methods"]["dpo"]["by_seed"]) == ["3", "4"]
    assert results["methods"]["dpo"]["figures"]["success"]["count"] == 6
    row = (folder / "report.html").read_text().partition("<tbody>")[2].partition("</tr>")[0]
    both_seeds, none_unscored = '<td>6<span class="basis">3 tasks</span></td>', "<td>0</td>"
    assert row.endswith(both_seeds + none_unscored)
    again = sweetrl("run", written(tmp_path), "--set", "seeds=2", "--set", "seed=3")
    assert again.err.count("done before") == len(json.loads((folder / "run.json").read_text()))
    assert results_of(folder) == results


@pytest.mark.usefixtures("in_this_process")
def test_the_quickstart_gives_the_same_table_for_the_same_seed(
    sweetrl: Sweetrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = written(tmp_path, RFT, SWEET)
    monkeypatch.setattr(quickstart, "shipped", lambda _: recipe)
    tables = []
    for name in ("a", "b"):
        ended = sweetrl("quickstart", "-o", tmp_path / name, "--seed", 7)
        assert ended.code == 0, ended.err
        assert "SWEET-RL" in ended.out
        assert f"Report: {tmp_path / name}/report.html" in ended.out.replace("\n", "")
        assert "DPO: learns from pairs of dialogues" in ended.err
        tables.append((tmp_path / name / "metrics.json").read_bytes())
    assert tables[0] == tables[1]
    methods = json.loads(tables[0])["methods"]
    assert list(methods) == ["base", "dpo", "rft", "sweet"]
    assert all({"success", "low", "high", "count", "turns"} <= each.keys() for each in methods.values())
    again = sweetrl("quickstart", "-o", tmp_path / "a", "--seed", 7)
    assert "was finished before" in again.err
    assert "SWEET-RL" in again.out
    other = sweetrl("quickstart", "-o", tmp_path / "a", "--seed", 8)
    assert other.code == 0, other.err
    assert json.loads((tmp_path / "a" / "metrics.json").read_text())["seeds"] == [8]
    back = sweetrl("quickstart", "-o", tmp_path / "a", "--seed", 7)
    assert back.code == 0, back.err
    assert (tmp_path / "a" / "metrics.json").read_bytes() == tables[0]


def test_fast_and_full_contradict_each_other(sweetrl: Sweetrl) -> None:
    ended = sweetrl("quickstart", "--fast", "--full")
    assert (ended.code, ended.err) == (
        2,
        "error: --fast and --full contradict each other; give one of them\n",
    )


@pytest.mark.parametrize("name", quickstart.RECIPES.values())
def test_the_package_holds_the_recipes_of_the_quickstart(name: str) -> None:
    assert quickstart.shipped(name).read_bytes() == (CHECKOUT / "recipes" / name).read_bytes()


# ---------------------------------------------------------------- killed


def command(recipe: Path, output: Path, jobs: int = 1) -> list[str]:
    run = [sys.executable, "-m", "sweetrl", "run", str(recipe), "--jobs", str(jobs)]
    return [*run, "--set", f"output={output}", "--quiet"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_study_killed_again_and_again_comes_to_the_same_results(jobs: int, tmp_path: Path) -> None:
    recipe = written(tmp_path, SWEET)
    subprocess.run(command(recipe, tmp_path / "whole"), check=True)
    parts = tmp_path / "parts"
    seed, kills = parts / "seed-0", 0
    for path in (
        *(seed / "evaluations/base/episodes.jsonl", seed / "episodes.jsonl", seed / "pairs.jsonl"),
        *(seed / "policies/dpo/checkpoints/checkpoint-1", seed / "critics/sweet/checkpoints/checkpoint-1"),
        *(seed / "candidates.jsonl", seed / "ranked/sweet.jsonl", seed / "turn_pairs/sweet.jsonl"),
        seed / "evaluations/sweet/verdicts.jsonl",
    ):
        process = subprocess.Popen(command(recipe, parts, jobs))
        # Side by side, a stage may be over, and its checkpoints gone, by the time of its turn here.
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills > 6
    subprocess.run(command(recipe, parts), check=True)
    whole, again = results_of(tmp_path / "whole"), results_of(parts)
    assert {name for name in whole if whole[name] != again[name]} == {"settings"}
