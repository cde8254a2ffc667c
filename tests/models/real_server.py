"""A real OpenAI-compatible server with a real language model: llama.cpp with SmolLM2, on this CPU."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from models.smollm2 import require_gguf

PROGRAM = Path(__file__).resolve().parent / "llama_cpp_process.py"


@dataclass(frozen=True)
class RealServer:
    """Where the server listens, and what its model is called there."""

    base_url: str
    model: str

    @property
    def spec(self) -> str:
        """How the command line names the model."""
        return f"openai:{self.model}@{self.base_url}"


@contextmanager
def serving_smollm2(*, parallel: int = 4) -> Iterator[RealServer]:
    """A server that answers `parallel` requests at a time; skips the test where a package is missing."""
    gguf = require_gguf()
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs the package xllamacpp (pip install xllamacpp)")
    command = [sys.executable, PROGRAM, gguf, "smollm2", str(parallel)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                pytest.fail(f"the server ended with code {process.wait()} before it listened")
            yield RealServer(f"{address}/v1", "smollm2")
        finally:
            process.kill()
