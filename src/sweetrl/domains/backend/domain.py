"""The backend domain: Python functions, specified by a colleague and scored by hidden tests."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.domain import Domain, FactTracker, Labels, Prompts, SecretPart
from sweetrl.domains.facts import Fact, facts_of
from sweetrl.prompts import load
from sweetrl.types import Message, Task

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from sweetrl.browser.session import BrowserSession
    from sweetrl.domains.scoring import ScoringBackend, ScoringOptions
    from sweetrl.protocols import Agent, Collaborator

# What is heavy is imported by the function that needs it: commands ask a domain for its labels, too.

MINI = "mini-backend"
TEXTS = "sweetrl.domains.backend"


def _scoring(options: "ScoringOptions") -> "AbstractContextManager[ScoringBackend]":
    from sweetrl.domains.backend.scoring import open_sandboxes

    return open_sandboxes(options)


def _make_tasks(split: str, count: int, seed: int) -> Iterator[Task]:
    from sweetrl.domains.backend.mini_backend import make_tasks

    return make_tasks(split, count, seed)


def _colleague(_: "BrowserSession") -> "Collaborator":
    from sweetrl.domains.backend.colleague import ScriptedColleague

    return ScriptedColleague()


def _oracle(tasks: Sequence[Task], _: int) -> "Agent":
    from sweetrl.domains.backend.colleague import OracleProgrammer

    return OracleProgrammer(tasks)


def _random(_: Sequence[Task], turn_limit: int) -> "Agent":
    from sweetrl.domains.backend.colleague import RandomProgrammer

    return RandomProgrammer(turn_limit)


def _tracker(tasks: Mapping[str, Task]) -> FactTracker | None:
    from sweetrl.domains.backend import mini_backend

    if all(task.startswith(f"{MINI}-") for task in tasks):
        return FactTracker(mini_backend.hidden_facts, mini_backend.asked_fact)
    return None


def _turn_worth(task: Task, history: Sequence[Message], output: str) -> float:
    from sweetrl.domains.backend.mini_backend import turn_worth

    return turn_worth(task, history, output)


def _published_line(task: Task) -> bytes:
    from sweetrl.domains.colbench import published_line

    return published_line(task)


def _reference(secret: BackendSecret) -> str:
    return secret.reference


def _parts(secret: BackendSecret) -> list[SecretPart]:
    tests = "\n".join(f"{call}  # {name}" for name, call in secret.tests.items())
    return [SecretPart("reference", secret.reference, "python"), SecretPart("tests", tests, "python")]


def _facts(secret: BackendSecret, request: str) -> Sequence[Fact]:
    return facts_of(secret.reference, request)


BACKEND = Domain(
    name="backend",
    secret=BackendSecret,
    reference=_reference,
    prompts=Prompts(
        agent=load("agent-backend", TEXTS),
        single_turn=load("agent-backend-single-turn", TEXTS),
        collaborator=load("collaborator-backend", TEXTS),
        privileged=load("privileged-backend", TEXTS),
        more=(load("privileged-mini", TEXTS),),
    ),
    labels=Labels(agent="Programmer", language="python", reward="tests passed", checks="hidden tests passed"),
    reply_limit=400,
    scoring=_scoring,
    collaborators={"colleague": _colleague},
    agents={"mini-oracle": _oracle, "mini-random": _random},
    generators={MINI: _make_tasks},
    published_line=_published_line,
    secret_parts=_parts,
    facts=_facts,
    tracker=_tracker,
    oracles={MINI: _turn_worth},
)
