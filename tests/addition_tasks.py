"""Backend tasks that are easy to solve and to fail: task N wants a function that adds N."""

from pathlib import Path

import msgspec

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import Task


def addition_task(number: int) -> Task:
    secret = BackendSecret(reference=f"def f(x): return x + {number}", tests={"t1": "f(1)", "t2": "f(2)"})
    return Task(id=f"t{number}", domain="backend", request=f"Write function {number}.", secret=secret)


def write_addition_tasks(path: Path, count: int = 4) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(addition_task(number)) + b"\n" for number in range(count)))
    return path
