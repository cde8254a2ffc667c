"""Several stages at a time: real processes that start, fail and are killed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from multiprocessing import forkserver
from pathlib import Path

import pytest

from sweetrl import interrupts
from sweetrl.errors import UsageError
from sweetrl.experiments import local, progress
from sweetrl.experiments import runner as runner_module
from sweetrl.experiments.events import (
    Event,
    ServerStarting,
    StageFailed,
    StageFinished,
    StageInterrupted,
    StageSkipped,
    StagesProgressed,
    StageStarted,
)
from sweetrl.experiments.local import MEMORY, THREADS, LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.runner import RunFailedError, Runner
from sweetrl.settings import ServerSettings

AWAIT = "import pathlib, sys, time\ndef await_(path):\n    while not pathlib.Path(path).exists(): time.sleep(0.01)\n"


class Scripts(LocalExecutor):
    """Stages are short programs: their only argument."""

    def _words(self, stage: Stage) -> list[str]:
        return [sys.executable, "-c", AWAIT + textwrap.dedent(stage.arguments[0])]


def runner_of(folder: Path, planned: list[Stage], *, jobs: int = 1, logs: bool = False, **options) -> Runner:
    executor = Scripts(folder, jobs=jobs, logs=logs)
    return Runner(folder, planned, executor=executor, jobs=jobs, **options)


def stage(output: Path, script: str, *inputs: Path) -> Stage:
    return Stage(output.name, (script,), tuple(map(str, inputs)), output)


def done(run: Runner) -> list[str]:
    return [entry["stage"] for entry in run._journal.entries]


def test_stages_run_at_the_same_time_and_those_that_read_wait(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in "abc")
    planned = [
        # Either would wait for ever for the other if it ran alone.
        stage(a, f"open({str(a)!r}, 'w'); await_({str(b)!r})"),
        stage(c, f"assert pathlib.Path({str(b)!r}).read_text() == 'whole'", b),
        stage(b, f"await_({str(a)!r}); open({str(b)!r}, 'w').close(); time.sleep(0.2)\n"
              f"pathlib.Path({str(b)!r}).write_text('whole')"),
    ]  # fmt: skip
    run = runner_of(tmp_path, planned, jobs=3)
    run.run()
    assert sorted(done(run)) == ["a", "b", "c"]
    assert done(run)[-1] == "c"


@pytest.mark.parametrize(("code", "wanted"), [(1, 1), (2, 2), (3, 1)])
def test_when_a_stage_fails_its_neighbour_ends_and_nothing_starts(
    tmp_path: Path, code: int, wanted: int
) -> None:
    noticed = tmp_path / "noticed"
    planned = [
        stage(tmp_path / "bad", f"sys.exit({code})"),
        stage(tmp_path / "slow", f"await_({str(noticed)!r})"),
        stage(tmp_path / "late", f"open({str(tmp_path / 'late')!r}, 'w')"),
    ]
    failures: list[StageFailed] = []

    def listen(event: Event) -> None:
        if isinstance(event, StageFailed):
            failures.append(event)
            noticed.touch()

    run = runner_of(tmp_path, planned, jobs=2)
    with pytest.raises(RunFailedError, match=f"the stage bad ended with code {code}") as ended:
        run.run(listen)
    assert ended.value.exit_code == wanted
    assert done(run) == ["slow"]
    assert not (tmp_path / "late").exists()
    assert failures == [StageFailed(0, planned[0], code, beside=("slow",))]


def recording(output: Path, *identities: str, of: int) -> str:
    """A script that makes some records of a stage that has so many, and ends with 1: as if items had failed."""
    return f"""
        from sweetrl.records import Part, open_log
        from sweetrl.types import Failure, Verdict
        failure = Failure(stage="score", kind="sandbox", message="it broke")
        verdict = dict(task_id="t", scorer="s", answer_digest="d", reward=None, success=False)
        settings = dict(command="score", config={{}}, identity=lambda each: each.episode_id, part=Part({of}))
        with open_log(pathlib.Path({str(output)!r}), Verdict, **settings) as log:
            for each in {identities!r}:
                if not log.has(each):
                    log.append(each, Verdict(episode_id=each, failure=failure, **verdict))
            log.arrange()
        sys.exit(1)
    """


@pytest.mark.parametrize("script", ["sys.exit(1)", "raise RuntimeError('a fault of ours')", "some"])
def test_a_stage_without_all_of_its_records_is_not_done_whatever_is_allowed(
    tmp_path: Path, script: str
) -> None:
    output = tmp_path / "a.jsonl"
    broken = recording(output, "x", of=2) if script == "some" else script
    planned = [stage(output, broken), stage(tmp_path / "b", "", output)]
    for _ in range(2):
        run = runner_of(tmp_path, planned, allow_failures=True)
        with pytest.raises(RunFailedError, match=r"the stage a\.jsonl ended with code 1"):
            run.run()
        assert done(run) == []
    whole = stage(output, recording(output, "x", "y", of=2))
    run = runner_of(tmp_path, [whole, planned[1]], allow_failures=True)
    run.run()
    assert done(run) == ["a.jsonl", "b"]


def test_failures_that_are_allowed_stop_nothing_and_are_reported(tmp_path: Path) -> None:
    a = tmp_path / "a.jsonl"
    planned = [stage(a, recording(a, "x", "y", of=2)), stage(tmp_path / "b", "", a)]
    run, heard = runner_of(tmp_path, planned, jobs=2, allow_failures=True), list[Event]()
    run.run(heard.append)
    assert done(run) == ["a.jsonl", "b"]
    ended = [event.some_failed for event in heard if isinstance(event, StageFinished)]
    assert ended == [True, False]


def test_a_run_reports_what_becomes_of_each_stage(tmp_path: Path) -> None:
    planned = [stage(tmp_path / name, "") for name in "ab"]
    runner_of(tmp_path, planned[:1]).run()
    heard: list[Event] = []
    runner_of(tmp_path, planned).run(heard.append)
    told = [event for event in heard if not isinstance(event, StagesProgressed)]
    assert told[:2] == [StageSkipped(0, planned[0]), StageStarted(1, planned[1])]
    [finished] = told[2:]
    assert isinstance(finished, StageFinished)
    assert (finished.number, finished.stage) == (1, planned[1])


def test_the_progress_of_running_stages_is_reported(tmp_path: Path) -> None:
    script = f"""
        import os
        pathlib.Path(os.environ[{progress.VARIABLE!r}]).write_text("1 4")
        await_({str(tmp_path / "seen")!r})
    """

    def listen(event: Event) -> None:
        if isinstance(event, StagesProgressed) and event.shares.get(0) == 0.25:
            (tmp_path / "seen").touch()

    run = runner_of(tmp_path, [stage(tmp_path / "a", script)], logs=True)
    run.run(listen)
    assert done(run) == ["a"]


def test_a_server_that_is_started_is_reported(tmp_path: Path) -> None:
    served = (ServerSettings(command="exit 3; {output}", ready="http://127.0.0.1:1/", stages=("a",)),)
    heard: list[Event] = []
    with pytest.raises(UsageError, match="the server ended with code 3"):
        Runner(tmp_path, [stage(tmp_path / "a", "")], served).run(heard.append)
    assert ServerStarting(f"exit 3; {tmp_path}") in heard


@pytest.mark.parametrize(("jobs", "threads"), [(1, ""), (2, "4"), (16, "1")])
def test_stages_share_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, threads: str
) -> None:
    monkeypatch.setattr(local, "usable_cores", lambda: 8)
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    script = "import os; open({!r}, 'w').write(os.environ.get('OMP_NUM_THREADS', '') + os.environ['MKL_NUM_THREADS'])"
    runner_of(tmp_path, [stage(tmp_path / "a", script.format(str(tmp_path / "a")))], jobs=jobs).run()
    assert (tmp_path / "a").read_text() == threads + "7"


def test_stages_keep_memory_unless_the_user_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in MEMORY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MALLOC_TOP_PAD_", "7")
    script = "import os; open({!r}, 'w').write(' '.join(map(os.environ.get, {!r})))"
    given = script.format(str(tmp_path / "a"), list(MEMORY))
    runner_of(tmp_path, [stage(tmp_path / "a", given)]).run()
    assert (tmp_path / "a").read_text().split() == [str(32 << 20), str(256 << 20), "7"]


def test_stages_with_launchers_or_servers_run_alone(tmp_path: Path) -> None:
    planned = [stage(tmp_path / name, "") for name in ("a", "served", "b")]
    planned.append(Stage("launched", ("",), (), tmp_path / "launched", launcher=("torchrun",)))
    servers = (ServerSettings(command="x", ready="http://x", stages=("served",)),)
    assert Runner(tmp_path, planned, servers, jobs=4)._alone() == {1, 3}


def test_what_stages_say_is_in_their_logs_and_reported_when_they_fail(tmp_path: Path) -> None:
    planned = [
        stage(tmp_path / "good", "print('all is well')"),
        stage(tmp_path / "bad", "print('the reason', file=sys.stderr); sys.exit(2)", tmp_path / "good"),
    ]
    heard: list[Event] = []
    for _ in range(2):
        with pytest.raises(RunFailedError):
            runner_of(tmp_path, planned, jobs=2, logs=True).run(heard.append)
    bad = tmp_path / "logs" / "bad.log"
    assert (tmp_path / "logs" / "good.log").read_text() == "all is well\n"
    assert bad.read_text() == "the reason\n" * 2
    failed = [event for event in heard if isinstance(event, StageFailed)]
    assert failed == [StageFailed(1, planned[1], 2, log=bad, said="the reason\n")] * 2


def never(arguments: Sequence[str]) -> int:
    """A stage that must not be forked."""
    raise AssertionError(arguments)


def test_stages_that_cannot_be_forked_start_from_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(_: object) -> None:
        raise EOFError

    monkeypatch.setattr(forkserver, "connect_to_new_process", broken)
    planned = [stage(tmp_path / "a", f"open({str(tmp_path / 'a')!r}, 'w')")]
    executor = Scripts(tmp_path, logs=True, warm=never)
    run = Runner(tmp_path, planned, executor=executor)
    run.run()
    assert done(run) == ["a"]


# ---------------------------------------------------------------- killed

DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_runner import runner_of, stage
from sweetrl import interrupts
from sweetrl.experiments import runner
folder, runner.GRACE_SECONDS = Path(sys.argv[1]), float(sys.argv[2])
script = "open({{!r}}, 'w'); time.sleep(600)"
planned = [stage(folder / name, script.format(str(folder / name))) for name in ("a", "b")]
try:
    with interrupts.handled():
        runner_of(folder, planned, jobs=2).run()
except KeyboardInterrupt as error:
    print(error)
"""


class PressedTwice(Runner):
    """Meets Ctrl-C twice in a row."""

    presses = 2

    def _watch(self) -> None:
        if self.presses:
            self.presses -= 1
            signal.raise_signal(signal.SIGINT)
        super()._watch()


def test_the_second_interrupt_gives_stages_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "GRACE_SECONDS", 600.0)
    planned = [stage(tmp_path / "a", "time.sleep(600)")]
    run, heard = PressedTwice(tmp_path, planned, executor=Scripts(tmp_path)), list[Event]()
    with interrupts.handled(), pytest.raises(KeyboardInterrupt, match="in the stage a"):
        run.run(heard.append)
    assert heard[-1] == StageInterrupted(0, planned[0])


@pytest.mark.parametrize(
    ("number", "grace"), [(signal.SIGINT, 0.1), (signal.SIGTERM, 600), (signal.SIGKILL, 600)]
)
def test_however_the_run_ends_its_stages_end_with_it(
    tmp_path: Path, number: signal.Signals, grace: float
) -> None:
    driver = DRIVER.format(tests=str(Path(__file__).parent))
    words = [sys.executable, "-c", driver, str(tmp_path), str(grace)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not all((tmp_path / name).exists() for name in "ab"):
            assert process.poll() is None
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2
        os.kill(process.pid, number)  # the parent alone
        said, _ = process.communicate(timeout=120)
        while any(Path(f"/proc/{each}").exists() for each in children):
            time.sleep(0.02)
    if number != signal.SIGKILL:
        assert said == "in the stages a, b\n"
    assert not (tmp_path / "run.json").exists()
