"""Tasks and dialogues for the tests of candidates."""

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import Ending, Episode, Failure, Reply, Task, Turn

SECRET = "def f(x): return x * 4711"


def task(name: str = "t") -> Task:
    secret = BackendSecret(reference=SECRET, tests={"test1": "f(1)"})
    return Task(id=name, domain="backend", request=f"Write {name}.", secret=secret)


def episode(name: str = "t", attempt: int = 0, *, turns: int = 3, failed: bool = False) -> Episode:
    spoken = [
        Turn(f"thought OUTPUT: Question {number}?", f"Question {number}?", Reply(f"Reply {number}."))
        for number in range(turns - 1)
    ]
    return Episode(
        task_id=name,
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=f"Write {name}.",
        turns=(*spoken, Turn("I WANT TO ANSWER: x", "I WANT TO ANSWER: x")),
        ending=Ending.FAILED if failed else Ending.ANSWERED,
        answer=None if failed else "x",
        failure=Failure("agent", "timeout", "slow") if failed else None,
    )
