import asyncio

import pytest

from sweetrl.cli import live
from sweetrl.cli.live import duration, shown, status_line
from sweetrl.dialogue.rollout import Progress
from sweetrl.experiments.stages.rollout import Status
from sweetrl.models import Meter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def status_after(seconds: float, progress: Progress, meter: Meter) -> Status:
    clock = Clock()
    status = Status(progress, meter, total=50, before=10, clock=clock)
    clock.now += seconds
    return status


def test_the_line_tells_dialogues_rates_cost_and_the_time_left() -> None:
    progress = Progress(open=4, finished=15, failed=5, turns=100)
    status = status_after(10, progress, Meter(prompt_tokens=3000, completion_tokens=500, cost=1.234))
    # Twenty of forty ended in ten seconds.
    assert status_line(status) == (
        "25/50 finished · 4 open · 5 failed · 10.0 turns/s · 350 tokens/s · cost 1.23 · 0:10 left"
    )


def test_before_the_first_dialogue_ends_no_time_is_promised_and_what_is_free_has_no_cost() -> None:
    status = status_after(0, Progress(open=40), Meter())
    assert status_line(status) == "10/50 finished · 40 open · 0 failed · 0.0 turns/s · 0 tokens/s"


def test_open_dialogues_count_by_their_turns() -> None:
    assert status_after(1, Progress(open=40), Meter()).share == 10 / 50
    begun = status_after(1, Progress(open=40, turns=100), Meter())
    assert begun.share == pytest.approx((10 + 100 / 10) / 50)  # of ten turns at most
    some = Progress(open=20, finished=20, turns=100, turns_of_ended=80)
    assert status_after(1, some, Meter()).share == pytest.approx((10 + 20 + 20 / 4) / 50)


def test_an_endpoint_that_does_not_answer_comes_first_in_the_line() -> None:
    dead = Meter(asked="http://host/v1", trouble="no connection to http://host/v1, retrying")
    status = status_after(1, Progress(open=40), dead)
    assert status_line(status).startswith("no connection to http://host/v1, retrying · 10/50 finished")
    silent = Meter(asked="http://host/v1")
    assert status_after(1, Progress(), silent).trouble == ""
    assert status_after(5, Progress(), silent).trouble == "no reply from http://host/v1 yet"
    assert status_after(5, Progress(), Meter(asked="http://host/v1", requests=1)).trouble == ""


def test_a_log_file_is_told_of_a_dead_endpoint_once_and_before_the_next_heartbeat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "WATCH_SECONDS", 0.001)

    async def wait() -> None:
        async with shown(status_after(1, Progress(), Meter(trouble="no connection, retrying")), quiet=False):
            await asyncio.sleep(0.05)

    asyncio.run(wait())
    assert capsys.readouterr().err.count("no connection, retrying") == 1


def test_durations_are_shown_as_clocks_do() -> None:
    assert [duration(seconds) for seconds in (0, 75.4, 3675)] == ["0:00", "1:15", "1:01:15"]


@pytest.mark.parametrize(("quiet", "lines"), [(False, True), (True, False)])
def test_a_log_file_gets_a_line_now_and_then_unless_it_shall_be_quiet(
    quiet: bool, lines: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.001)

    async def wait() -> set[asyncio.Task[object]]:
        async with shown(status_after(1, Progress(), Meter()), quiet=quiet):
            await asyncio.sleep(0.05)
        await asyncio.sleep(0)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(wait()) == set()
    assert ("10/50 finished" in capsys.readouterr().err) == lines
