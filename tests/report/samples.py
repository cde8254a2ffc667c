"""Small runs that the tests of reports share."""

import struct
import zlib
from collections.abc import Sequence

from sweetrl.types import (
    Check,
    Ending,
    Episode,
    Failure,
    Outcome,
    Reply,
    Turn,
    TurnCredit,
    Verdict,
    digest,
)

ANSWER = "def double(x):\n    return 2 * x"


def episode(task: str, attempt: int = 0, *, turns: int = 2, failed: bool = False) -> Episode:
    asked = [Turn(f"Question {number}?", f"Question {number}?", Reply("Yes.")) for number in range(1, turns)]
    last = f"I WANT TO ANSWER:\n{ANSWER}"
    return Episode(
        task_id=task,
        attempt=attempt,
        seed=7,
        agent="agent",
        collaborator="collaborator",
        request=f"Please write {task}.",
        turns=(*asked, Turn(last, last)),
        ending=Ending.FAILED if failed else Ending.ANSWERED,
        answer=None if failed else ANSWER,
        failure=Failure("agent", "ModelError", "gone") if failed else None,
    )


def verdict(
    task: str, reward: float | None, attempt: int = 0, *, scorer: str = "backend-module/1"
) -> Verdict:
    passed = 0 if reward is None else round(reward * 10)
    checks = [Check(f"test{number}", Outcome.PASSED) for number in range(passed)]
    checks += [Check(f"test{number}", Outcome.WRONG, "returned 3") for number in range(passed, 10)]
    return Verdict(
        task_id=task,
        episode_id=f"{task}#{attempt}",
        scorer=scorer,
        answer_digest=digest(ANSWER),
        reward=reward,
        success=reward == 1.0,
        checks=() if reward is None else tuple(checks),
        failure=Failure("score", "SandboxError", "no isolation") if reward is None else None,
    )


def records(
    rewards: dict[str, float | None], *, scorer: str = "backend-module/1"
) -> tuple[list[Episode], list[Verdict]]:
    """One dialogue on each task, with these rewards."""
    return [episode(task) for task in rewards], [
        verdict(task, reward, scorer=scorer) for task, reward in rewards.items()
    ]


def credit(task: str, advantages: Sequence[float | None], attempt: int = 0) -> list[TurnCredit]:
    return [
        TurnCredit(
            episode_id=f"{task}#{attempt}",
            task_id=task,
            turn=turn,
            critic="critic:c@1",
            advantage=advantage,
            failure=None if advantage is not None else Failure("credit", "ModelError", "gone"),
        )
        for turn, advantage in enumerate(advantages)
    ]


def png(width: int, height: int, colour: tuple[int, int, int] = (200, 30, 30)) -> bytes:
    """A picture of one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    rows = (b"\0" + bytes(colour) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
