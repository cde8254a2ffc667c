"""What a person is shown of the stages of a run."""

import shlex
import sys
import textwrap
from pathlib import Path

import pytest
import typer

from conftest import CHECKOUT
from sweetrl.cli import screen
from sweetrl.cli.screen import Asked, Lines, View, run_stages
from sweetrl.experiments.events import StageFailed
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.stage_words import in_words
from sweetrl.experiments.study_plan import plan
from sweetrl.records import RunCard, write_card
from sweetrl.settings import load_study


def test_stages_are_told_in_words_with_the_name_of_their_method() -> None:
    study = load_study(CHECKOUT / "recipes" / "mini_paper.toml")
    told = {stage.name: in_words(study, stage) for stage in plan(study).stages}
    assert told["seed-2001/policies/dpo"] == "seed-2001, multi-turn DPO: learns from pairs of dialogues"
    assert told["seed-2000/evaluations/base"].startswith("seed-2000, untrained: ")
    assert "critic" in told["seed-2000/critics/sweet"]
    assert told["seed-2000/best_of/sweet-4"].startswith("seed-2000, sweet-4: ")


class Scripts(LocalExecutor):
    """Stages are short programs: their only argument."""

    def _words(self, stage: Stage) -> list[str]:
        return [sys.executable, "-c", textwrap.dedent(stage.arguments[0])]


def stage(output: Path, script: str, *inputs: Path) -> Stage:
    return Stage(output.name, (script,), tuple(map(str, inputs)), output)


@pytest.fixture
def good_and_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Stage]:
    """A stage that ends well, and one that reads what it writes and fails."""
    monkeypatch.setattr(screen, "LocalExecutor", Scripts)
    monkeypatch.setattr(screen.warm_workers, "is_possible", lambda: False)
    failing = "import sys\nfor n in range(25): print('reason', n, file=sys.stderr)\nsys.exit(2)"
    return [
        stage(tmp_path / "good", "print('all is well')"),
        stage(tmp_path / "bad", failing, tmp_path / "good"),
    ]


def test_stages_one_by_one_are_announced_and_speak_for_themselves(
    tmp_path: Path, good_and_bad: list[Stage], capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        with pytest.raises(typer.Exit) as ended:
            run_stages(tmp_path, good_and_bad, Asked(jobs=1))
        assert ended.value.exit_code == 2
    lines = capfd.readouterr().err.splitlines()
    reasons = [f"reason {n}" for n in range(25)]
    complaint = "the stage bad ended with code 2; fix this and run the same command again"
    start = [f"[2/2] bad: {shlex.quote(good_and_bad[1].arguments[0])}".replace("\n", " ")]
    failing = [*start, *reasons, complaint]
    assert lines == [
        f"[1/2] good: {shlex.quote(good_and_bad[0].arguments[0])}",
        "all is well",
        *failing,
        "[1/2] good: done before",
        *failing,
    ]


def test_of_stages_that_are_watched_the_last_words_are_shown_when_they_fail(
    tmp_path: Path, good_and_bad: list[Stage], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        run_stages(tmp_path, good_and_bad, Asked(jobs=2), view=View([1.0, 1.0]))
    said = capfd.readouterr().err
    assert "all is well" not in said
    assert said.startswith("[1/2] good (0:0")
    shown = [f"reason {n}" for n in range(5, 25)]
    log = tmp_path / "logs" / "bad.log"
    complaint = "the stage bad ended with code 2; fix this and run the same command again"
    assert said.splitlines()[1:] == [*shown, f"more in {log}", complaint]


def test_who_waits_for_stages_beside_one_that_failed_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failed = StageFailed(0, stage(tmp_path / "bad", ""), -9, beside=("slow", "slower"))
    Lines(3, quiet=False)(failed)
    assert capfd.readouterr().err.splitlines() == [
        "the stage bad was ended by signal 9; rerun the same command to resume",
        "waiting for what runs beside it: slow, slower",
    ]


def test_failures_that_are_allowed_are_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screen, "LocalExecutor", Scripts)
    card = RunCard(command="score", config={}, versions={}, started="now", sha256="f" * 64)
    write_card(tmp_path / "a", card)
    planned = [stage(tmp_path / "a", "raise SystemExit(1)")]
    entries, fresh = run_stages(tmp_path, planned, Asked(jobs=1, allow_failures=True))
    assert ([entry["code"] for entry in entries], fresh) == ([1], True)
    assert "a: some items failed; going on without them" in capfd.readouterr().err


def test_whoever_asked_for_quiet_hears_nothing_but_what_stages_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screen, "LocalExecutor", Scripts)
    planned = [stage(tmp_path / "a", "import sys; print(sys.argv[1:])")]
    run_stages(tmp_path, planned, Asked(jobs=1, quiet=True))
    assert capfd.readouterr().err == "['--quiet']\n"
    assert run_stages(tmp_path, planned, Asked(jobs=1, quiet=True))[1] is False
    assert capfd.readouterr().err == ""
