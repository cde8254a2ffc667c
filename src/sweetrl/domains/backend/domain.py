"""The backend domain: Python functions, specified by a colleague and scored by hidden tests."""

from collections.abc import Mapping

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.domain import Domain, FactTracker, Labels, Prompts, SecretPart, TaskWriter, lazily
from sweetrl.domains.facts import facts_of
from sweetrl.prompts import load
from sweetrl.types import Task

HERE = "sweetrl.domains.backend"
MINI = "mini-backend"


def _parts(secret: BackendSecret) -> list[SecretPart]:
    tests = "\n".join(f"{call}  # {name}" for name, call in secret.tests.items())
    return [SecretPart("reference", secret.reference, "python"), SecretPart("tests", tests, "python")]


def _tracker(tasks: Mapping[str, Task]) -> FactTracker | None:
    from sweetrl.domains.backend import mini_backend

    if all(task.startswith(f"{MINI}-") for task in tasks):
        return FactTracker(mini_backend.hidden_facts, mini_backend.asked_fact, mini_backend.explained_fact)
    return None


BACKEND = Domain(
    name="backend",
    secret=BackendSecret,
    reference=lambda secret: secret.reference,
    prompts=Prompts(
        agent=load("agent-backend", HERE),
        single_turn=load("agent-backend-single-turn", HERE),
        collaborator=load("collaborator-backend", HERE),
        privileged=load("privileged-backend", HERE),
        more=(load("privileged-mini", HERE),),
    ),
    labels=Labels(
        task="An agent gets a vague request for a Python function, asks a colleague who knows the solution, "
        "and then writes code that hidden tests score.",
        agent="Programmer",
        collaborator="colleague",
        language="python",
        reward="tests passed",
        meaning="Share of the hidden tests that the answers pass.",
        checks="hidden tests passed",
        goal="Ask about what the request leaves open, then hand in the Python function; hidden tests score it.",
    ),
    reply_limit=400,
    scoring=lazily(f"{HERE}.scoring:open_sandboxes"),
    collaborators={"colleague": lazily(f"{HERE}.colleague:open_colleague")},
    agents={
        "mini-oracle": lazily(f"{HERE}.colleague:OracleProgrammer"),
        "mini-random": lazily(f"{HERE}.colleague:RandomProgrammer"),
    },
    generators={MINI: lazily(f"{HERE}.mini_backend:make_tasks")},
    turn_limits={MINI: 8},
    writer=TaskWriter(
        prompt=load("write-backend", HERE),
        read=lazily(f"{HERE}.writing:read_draft"),
        normal_form=lazily(f"{HERE}.writing:normal_form"),
    ),
    published_line=lazily("sweetrl.domains.colbench:published_line"),
    secret_parts=_parts,
    facts=lambda secret, request: facts_of(secret.reference, request),
    tracker=_tracker,
    oracles={MINI: lazily(f"{HERE}.mini_backend:turn_worth")},
)
