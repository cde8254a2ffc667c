"""The screen of a quickstart in a real terminal, tmux, at the usual widths."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPLAY = """
import sys, time
from sweetrl.cli.quickstart import shipped
from sweetrl.cli.screen import Screen
from sweetrl.experiments.stage_words import in_words
from sweetrl.experiments.events import StageFinished, StagesProgressed, StageStarted
from sweetrl.experiments.schedule import Schedule, needs_of
from sweetrl.experiments.study_plan import plan
from sweetrl.experiments.time_left import Clock, kind_of, weight
from sweetrl.settings import load_study

study = load_study(shipped("quickstart.toml"))
planned = plan(study)
weights = [weight(*each) for each in zip(planned.recipes, planned.stages)]
schedule = Schedule(needs_of(planned.stages), jobs=2)
clock = Clock(weights, schedule, list(map(kind_of, planned.stages)))
screen = Screen(clock, lambda stage: in_words(study, stage), quiet=False)
with screen.shown():
    while started := list(schedule.starting()):
        for number in started:
            screen(StageStarted(number, planned.stages[number]))
        for share in (0.1, 0.5, 0.9):
            screen(StagesProgressed({number: share for number in started}))
            time.sleep(0.06)
        if len(schedule.done) == 4:
            trouble = "no connection to http://a-host-with-a-long-name.example.org:8000/v1, retrying"
            screen(StagesProgressed({number: 0.9 for number in started}, {started[0]: trouble}))
            time.sleep(0.15)
            open(sys.argv[1], "w").close()
            while not __import__("os").path.exists(sys.argv[2]):
                time.sleep(0.05)
        for number in started:
            schedule.end(number)
            screen(StageFinished(number, planned.stages[number], 12.0))
sys.stderr.write("the end\\n")
time.sleep(60)
"""


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux on PATH")
@pytest.mark.parametrize("columns", [80, 100])
def test_bars_and_lines_do_not_run_into_each_other(tmp_path: Path, columns: int) -> None:
    script, seen, go = tmp_path / "replay.py", tmp_path / "seen", tmp_path / "go"
    script.write_text(REPLAY)
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]

    def screen() -> list[str]:
        shown = subprocess.run(
            [*tmux, "capture-pane", "-p", "-J"], capture_output=True, text=True, check=True
        )
        return [line.rstrip() for line in shown.stdout.splitlines() if line.strip()]

    command = f"{sys.executable} {script} {seen} {go}"
    subprocess.run([*tmux, "new-session", "-d", "-x", str(columns), "-y", "40", command], check=True)
    try:
        while not seen.exists():
            time.sleep(0.1)
        during = screen()
        go.touch()
        while (after := screen())[-1:] != ["the end"]:
            time.sleep(0.1)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    bars = [line for line in during if "━" in line]
    assert [re.sub(r"^[━╸╺ ]+", "", line)[:4].strip()[-1] for line in bars] == ["%"] * 3
    assert during[-3:] == bars  # below all lines, one line each
    assert "no connection" in bars[1]
    done = [line for line in after if line.startswith("[")]
    assert [int(line[1:].partition("/")[0]) for line in done] == list(range(1, 15))
    others = " ".join(line for line in after if not line.startswith("["))
    assert "━" not in others  # nothing of the bars is left behind
