"""CPU of the rollout per turn with different HTTP clients under the model, over a real server on loopback.

The dialogues, the server and its latencies are those of `rollout.py`; only the transport differs, and all must
roll out the same dialogues. Clients that are not installed are left out. Prints the results and writes them to
benchmarks/results/http_clients.json.
"""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import json
import multiprocessing
import platform
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rollout
from sweetrl.models import server
from sweetrl.models.transport import Reply, Transport

ROUNDS = 3
RESULTS = Path(__file__).parent / "results" / "http_clients.json"


class HttpxTransport:
    """What `Transport` does, with httpx or its successor httpx2 and their own connection pool."""

    package: Any

    def __init__(
        self, address: str, headers: Mapping[str, str], *, max_body: int, connect_timeout: float
    ) -> None:
        """As `Transport`."""
        self.closed = False
        self._address = address
        self._max_body = max_body
        limits = self.package.Limits(max_connections=None, max_keepalive_connections=None)
        timeout = self.package.Timeout(None, connect=connect_timeout)
        self._client = self.package.AsyncClient(
            limits=limits, timeout=timeout, trust_env=False, headers=headers
        )

    async def post(self, body: bytes) -> Reply:
        """As `Transport`."""
        async with self._client.stream("POST", self._address, content=body) as response:
            content = bytearray()
            async for part in response.aiter_raw():
                content += part
                assert len(content) <= self._max_body
            return Reply(response.status_code, response.headers, bytes(content))

    async def close(self) -> None:
        """As `Transport`."""
        self.closed = True
        await self._client.aclose()


def transports() -> dict[str, Any]:
    """A transport for every client that is installed."""
    found: dict[str, Any] = {"aiohttp": Transport}
    for name in ("httpx2", "httpx"):
        if importlib.util.find_spec(name) is not None:
            found[name] = type(name, (HttpxTransport,), {"package": importlib.import_module(name)})
    return found


def cpu_ms_per_turn(transport: Any, port: int) -> tuple[float, list[list[str]]]:
    """CPU milliseconds of this process per turn, and the transcripts."""
    server.Transport = transport
    _, cpu, held = asyncio.run(rollout.with_models(rollout.independent, port))
    return 1000 * cpu / sum(len(each) - 1 for each in held), held


def measure(port: int) -> dict[str, object]:
    """All clients in turn, several times, so that a busy machine disturbs them alike."""
    found = transports()
    measured: dict[str, list[float]] = {name: [] for name in found}
    transcripts = []
    for _ in range(ROUNDS):
        for name, transport in found.items():
            milliseconds, held = cpu_ms_per_turn(transport, port)
            measured[name].append(milliseconds)
            transcripts.append(held)
            print(name, round(milliseconds, 3), flush=True)
    assert all(held == transcripts[0] for held in transcripts), "all clients must get the same replies"
    return {
        name: {
            "version": importlib.metadata.version(name),
            "cpu_ms_per_turn": round(statistics.median(each), 3),
            "rounds": [round(value, 3) for value in each],
        }
        for name, each in measured.items()
    }


def main() -> None:
    """Measure, print, store."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=rollout.serve_in_process, args=(there,), daemon=True)
    process.start()
    try:
        results = measure(here.recv())
    finally:
        process.terminate()
        process.join()
    results["python"] = platform.python_version()
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
