"""Actors of a Ray cluster that make the shards of one stage, each one shard after the other.

What a shard has loaded is there for the next: modules, sandboxes and networks. The actors end with the last shard, so
the next stage finds the GPUs empty. One is asked for with each shard; Ray starts those for which it has room, and
whichever is ready takes the next shard.
"""

import contextlib
import signal
from collections import deque
from functools import partial
from queue import SimpleQueue
from typing import Any

from sweetrl import interrupts
from sweetrl.experiments.sharding import LOST


class Crew:
    """The actors of a stage."""

    def __init__(self, actors: Any) -> None:
        """`actors` is what Ray starts one from, its resources included."""
        self._actors = actors
        self._waiting: deque[Shard] = deque()
        self._idle: set[Any] = set()
        """Actors without a shard, including those that have not started yet."""
        self._ready: SimpleQueue[tuple[Any, bool]] = SimpleQueue()
        """Idle actors that can take a shard; those that could not start are marked."""

    def start(self, *call: Any) -> "Shard":
        """Make a shard: call `perform` of an actor with these arguments."""
        shard = Shard(self, call)
        self._waiting.append(shard)
        actor = self._actors.remote()
        self._idle.add(actor)
        actor.__ray_ready__.remote().future().add_done_callback(partial(self._hear, actor))
        return shard

    def give_back(self, actor: Any) -> None:
        """An actor has made a shard."""
        self._idle.add(actor)
        self._ready.put((actor, True))

    def withdraw(self, shard: "Shard") -> None:
        """A shard that waits is not to be made."""
        self._waiting.remove(shard)

    def assign(self) -> None:
        """Give shards that wait to actors that are ready; when none waits, idle actors end."""
        while self._waiting and not self._ready.empty():
            actor, works = self._ready.get()
            self._idle.discard(actor)
            self._waiting.popleft().begin(actor if works else None)
        while self._idle and not self._waiting:
            end(self._idle.pop())

    def _hear(self, actor: Any, answer: Any) -> None:
        """Called in a thread of Ray's when an actor has started or cannot start."""
        self._ready.put((actor, answer.exception() is None))


class Shard:
    """A shard that waits for an actor or is made by one: a `Child` of the run."""

    def __init__(self, crew: Crew, call: tuple[Any, ...]) -> None:
        self._crew = crew
        self._call = call
        self._actor: Any = None
        self._future: Any = None
        self._asked = False
        self._code: int | None = None

    def begin(self, actor: Any) -> None:
        """An actor makes it; without one it is lost."""
        if actor is None:
            self._code = LOST
            return
        self._actor = actor
        self._future = actor.perform.remote(*self._call).future()

    def poll(self) -> int | None:
        """Its exit code, if it has ended; `LOST` if its process or its machine is gone."""
        if interrupts.came():
            self.terminate()  # other machines hear no Ctrl-C
        self._crew.assign()
        if self._code is None and self._future is not None and self._future.done():
            self._code = self._result()
            self._crew.assign()
        return self._code

    def terminate(self) -> None:
        """End it; its records are in its file."""
        if self._asked or self._code is not None:
            return
        self._asked = True
        if self._actor is None:
            self._code = -signal.SIGTERM
            self._crew.withdraw(self)
        else:
            end(self._actor)

    def wait(self) -> int | None:
        """Wait until the actor that makes it, if any, has ended."""
        if self._future is not None:
            with contextlib.suppress(Exception):
                self._future.result()
        return self.poll()

    def _result(self) -> int:
        try:
            code: int = self._future.result()
        except Exception:  # Ray's own: a command that fails returns its code
            end(self._actor)
            return -signal.SIGTERM if self._asked else LOST
        self._crew.give_back(self._actor)
        return code


def end(actor: Any) -> None:
    """End an actor and free its resources."""
    import ray

    ray.kill(actor)
