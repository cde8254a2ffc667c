"""How a stage fills its file: here, what it tells while an endpoint does not answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from sweetrl.experiments.stages import filling
from sweetrl.experiments.stages.filling import Tally, fill, open_output
from sweetrl.experiments.stages.reporting import Reporter
from sweetrl.types import TurnCredit


class Listening(Reporter):
    """Keeps what the work was said to wait for."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.told = asyncio.Event()

    def progress(self, *_: Any, **__: Any) -> Any:
        def advance(_: int, waits_for: str = "") -> None:
            self.heard.append(waits_for)
            self.told.set()

        return nullcontext(advance)


def test_a_stage_tells_whom_it_waits_for_until_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "WATCH_SECONDS", 0.001)
    tally, reporter = Tally(tmp_path / "credit.jsonl", "turns"), Listening()

    async def records() -> AsyncGenerator[TurnCredit]:
        tally.meter.trouble = "no connection to http://host/v1, retrying"
        await reporter.told.wait()
        tally.meter.trouble = ""
        yield TurnCredit(episode_id="a#0", task_id="a", turn=0, critic="c", advantage=0.5)

    with open_output(tally.path, TurnCredit, "credit", {}, reporter) as log:
        asyncio.run(fill(log, records(), tally, reporter))
    assert reporter.heard[-2:] == ["no connection to http://host/v1, retrying", ""]
    assert tally.made == 1
