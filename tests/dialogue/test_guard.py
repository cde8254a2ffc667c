import asyncio
from collections.abc import Sequence

import pytest

from sweetrl.dialogue.guard import REFUSAL, GuardedCollaborator
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.leaks.detection import leaks_code
from sweetrl.errors import CollaboratorError
from sweetrl.types import Message, Reply, Role, Task

TASK = Task(
    id="t",
    domain="backend",
    request="Price a parcel: def price(weight)",
    secret=BackendSecret("def price(weight):\n    return 5 if weight <= 2 else 9", {"test1": "price(1)"}),
)
HISTORY = (Message(Role.USER, TASK.request), Message(Role.ASSISTANT, "What does it cost?"))
CODE = "Just return 5 if weight <= 2 else 9."
PROSE = "Light parcels cost five."


class Sequenced:
    """Says its lines one after the other, and remembers what it was asked."""

    name = "sequenced"

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.asked: list[str] = []
        self.seeds: list[int] = []

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        self.asked.append(history[-1].text)
        self.seeds.append(seed)
        if not self._lines:
            raise CollaboratorError("nothing left to say")
        return Reply(self._lines.pop(0), screenshot="hash")


def reply_of(inner: Sequenced, *, max_retries: int = 2) -> tuple[Reply, GuardedCollaborator]:
    guard = GuardedCollaborator(inner, leaks_code, max_retries=max_retries)
    return asyncio.run(guard.reply(TASK, HISTORY, seed=7)), guard


def test_an_honest_reply_is_passed_on_as_it_is() -> None:
    inner = Sequenced(PROSE)
    reply, guard = reply_of(inner)
    assert reply == Reply(PROSE, "hash")
    assert (inner.asked, inner.seeds) == (["What does it cost?"], [7])
    assert (guard.leaks_stopped, guard.refusals) == (0, 0)


def test_a_leak_is_asked_about_again_with_a_reminder_and_another_seed() -> None:
    inner = Sequenced(CODE, PROSE)
    reply, guard = reply_of(inner)
    assert reply.text == PROSE
    assert inner.asked[0] == "What does it cost?"
    assert inner.asked[1].startswith("What does it cost?\n\n(Please answer in plain words")
    assert len(set(inner.seeds)) == 2
    assert (guard.leaks_stopped, guard.refusals) == (1, 0)


def test_a_collaborator_that_goes_on_leaking_is_made_to_refuse() -> None:
    inner = Sequenced(CODE, CODE, CODE, PROSE)
    reply, guard = reply_of(inner)
    assert reply == Reply(REFUSAL, "hash")
    assert len(inner.asked) == 3
    assert (guard.leaks_stopped, guard.refusals) == (3, 1)


def test_without_retries_the_first_leak_is_refused() -> None:
    reply, _ = reply_of(Sequenced(CODE, PROSE), max_retries=0)
    assert reply.text == REFUSAL


def test_code_beyond_the_cut_is_no_reason_to_ask_again() -> None:
    late = "Well, " * 80 + CODE
    reply, _ = reply_of(Sequenced(late))
    assert reply.text == late


def test_the_refusal_itself_does_not_leak() -> None:
    assert not leaks_code(TASK, HISTORY, REFUSAL)


def test_the_guards_name_tells_guarded_runs_apart() -> None:
    assert GuardedCollaborator(Sequenced(), leaks_code).name == "sequenced+guard"


def test_a_breakdown_of_the_collaborator_stays_one() -> None:
    with pytest.raises(CollaboratorError):
        reply_of(Sequenced(CODE))
