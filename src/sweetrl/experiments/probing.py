"""Asks the endpoints of agents, before the first stage that talks to them, whether they do what they are told.

A server that does not sample would otherwise be noticed when candidates are drawn, after the critic is trained.
"""

import asyncio
import contextlib
from collections.abc import Iterable

from sweetrl.critics.served import read_spec
from sweetrl.errors import EndpointDown, StageError, UsageError
from sweetrl.experiments.events import EndpointLimited, Listener
from sweetrl.experiments.machine import examine_model
from sweetrl.experiments.pipeline import SERVED, Stage
from sweetrl.models import EndpointOptions, Endpoints, open_prompt_logprobs
from sweetrl.models.probe import probe

DRAWING = ("rollout", "candidates")
"""Commands that need an agent that samples."""
UNUSED = "logprobs"
"""What no stage asks an agent for."""
OPTIONS = EndpointOptions(timeout=60.0, patience=2.0, attempts=2, costly_attempts=1)
"""An endpoint that does not answer soon is left to its stage, which is patient and says why it gives up."""


class Probes:
    """What the endpoints of a plan are asked, each once."""

    def __init__(self, planned: Iterable[Stage]) -> None:
        """`planned` are the stages that are not done yet."""
        stages = list(planned)
        drawing = {command: _named("--agent", stages, command) for command in DRAWING}
        self._candidates = drawing["candidates"]
        self._ranking = {each for spec in _named("--critic", stages, "rank") for each in _models_of(spec)}
        self._unasked = {each for specs in drawing.values() for each in specs if each.startswith("openai:")}

    def ask(self, stage: Stage, report: Listener) -> None:
        """Ask the agent of a stage that is about to start; an error if a later stage could not work with it."""
        for spec in _named("--agent", [stage]) & self._unasked:
            self._unasked.remove(spec)
            with contextlib.suppress(StageError, EndpointDown):
                self._examine(spec, report)
                if spec in self._ranking:
                    asyncio.run(_score(spec))

    def _examine(self, spec: str, report: Listener) -> None:
        for finding in examine_model(spec, asyncio.run(probe(spec, Endpoints(OPTIONS)))):
            if finding.status == "missing" and spec in self._candidates:
                raise UsageError(f"{finding.found}; {finding.purpose}; {finding.advice}")
            if finding.status != "ok" and finding.name != UNUSED:
                report(EndpointLimited(spec, finding.name, finding.advice))


async def _score(spec: str) -> None:
    """Ask for log-probabilities of a prompt; the error says what to do if there are none."""
    model = open_prompt_logprobs(spec, endpoints=Endpoints(OPTIONS))
    try:
        await model.of([1], [2])
    finally:
        await model.close()


def _named(option: str, stages: Iterable[Stage], command: str | None = None) -> set[str]:
    """What the stages, or those of one command, give to an option."""
    return {
        value
        for stage in stages
        if command in (None, stage.arguments[0])
        for name, value in zip(stage.arguments, stage.arguments[1:], strict=False)
        if name == option
    }


def _models_of(critic: str) -> list[str]:
    """The endpoints of a served critic; none of other critics."""
    return read_spec(critic.removeprefix(SERVED))[1] if critic.startswith(SERVED) else []
