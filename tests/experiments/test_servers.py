"""Real servers on real ports, known by the models that they list."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conftest import CHECKOUT
from sweetrl.errors import UsageError
from sweetrl.experiments import listings
from sweetrl.experiments.pipeline import servers_of
from sweetrl.experiments.servers import Servers
from sweetrl.settings import Recipe, ServerSettings, load_experiment

LISTING = """
import http.server, json, os, sys
print("started as", os.getpid(), flush=True)
answer = sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.encode())
    def do_POST(self):
        global answer
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print("loads", body["lora_name"], body["lora_path"], flush=True)
        answer = json.dumps({"data": [*json.loads(answer)["data"], {"id": body["lora_name"]}]})
        self.send_response(200 if self.path == "/v1/load_lora_adapter" and "adapters" in sys.argv else 404)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def words(port: int, answer: str, *more: str) -> list[str]:
    return [sys.executable, "-c", LISTING, str(port), answer, *more]


def server(port: int, answer: str, serves: str | None, *more: str, **settings: Any) -> ServerSettings:
    address = f"http://127.0.0.1:{port}/v1/models"
    command = f"exec {shlex.join(words(port, answer, *more))}"
    return ServerSettings(
        command=command, ready=address, serves=serves, stages=("a", "b"), timeout=120, **settings
    )


def running(settings: ServerSettings, folder: Path) -> AbstractContextManager[None]:
    return Servers((settings,), folder).serving("a", lambda _: None)


def said(folder: Path) -> list[str]:
    """What the server wrote, a line for each start and each adapter."""
    lines = (folder / "server-0.log").read_text().splitlines()
    return [line for line in lines if line.startswith(("started", "loads"))]


@pytest.mark.parametrize(
    ("answer", "serves"),
    [('{"data": [{"id": "policy"}]}', "policy"), ('{"data": [{"id": "any"}]}', None), ("ready", "policy")],
    ids=["the model", "nothing expected", "no list of models"],
)
def test_a_server_is_ready_when_it_lists_what_is_asked_of_it(
    tmp_path: Path, port: int, answer: str, serves: str | None
) -> None:
    settings = server(port, answer, serves)
    with running(settings, tmp_path):
        assert urllib.request.urlopen(settings.ready, timeout=5).read() == answer.encode()


def test_a_server_with_another_model_is_refused(tmp_path: Path, port: int) -> None:
    settings = server(port, '{"data": [{"id": "base"}]}', "policy")
    with (
        pytest.raises(UsageError, match="serves base, but the recipe asks it for policy"),
        running(settings, tmp_path),
    ):
        raise AssertionError("it must not get here")


@pytest.fixture
def foreign(port: int) -> Iterator[int]:
    process = subprocess.Popen(words(port, '{"data": [{"id": "policy"}]}'))
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None
        yield port
    finally:
        process.kill()
        process.wait()


def test_a_program_that_answers_before_the_server_is_started_is_not_taken_for_it(
    tmp_path: Path, foreign: int
) -> None:
    settings = server(foreign, "ready", "policy")
    with (
        pytest.raises(UsageError, match="another program answers there already"),
        running(settings, tmp_path),
    ):
        raise AssertionError("it must not get here")


BASE = '{"data": [{"id": "base"}]}'


@pytest.mark.parametrize("keep", [True, False])
def test_a_server_that_is_kept_is_started_once_for_all_of_its_stages(
    tmp_path: Path, port: int, keep: bool
) -> None:
    settings = server(port, BASE, "base", keep=keep)
    servers = Servers((settings,), tmp_path)
    try:
        for stage in ("a", "other", "b"):
            with servers.serving(stage, lambda _: None):
                pass
            assert (listings.answer_of(settings.ready) is not None) == keep
    finally:
        servers.close()
    assert len(said(tmp_path)) == (1 if keep else 2)
    assert listings.answer_of(settings.ready) is None


def test_a_kept_server_that_died_is_started_again(tmp_path: Path, port: int) -> None:
    servers = Servers((server(port, BASE, "base", keep=True),), tmp_path)
    try:
        with servers.serving("a", lambda _: None):
            pass
        os.kill(int(said(tmp_path)[0].split()[-1]), signal.SIGKILL)
        with servers.serving("b", lambda _: None):
            assert len(said(tmp_path)) == 2
    finally:
        servers.close()


def test_an_adapter_is_loaded_once_when_its_folder_is_complete(tmp_path: Path, port: int) -> None:
    adapter = tmp_path / "policy" / "adapter"
    adapter.mkdir(parents=True)
    settings = server(
        port, BASE, "base", "adapters", keep=True, adapters={"policy": "{output}/policy/adapter"}
    )
    servers = Servers((settings,), tmp_path)
    try:
        with servers.serving("a", lambda _: None):
            assert "policy" not in str(listings.answer_of(settings.ready))
        (adapter / "adapter_config.json").write_text("{}")
        for _ in range(2):
            with servers.serving("b", lambda _: None):
                assert said(tmp_path)[1:] == [f"loads policy {adapter}"]
                assert "policy" in str(listings.answer_of(settings.ready))
    finally:
        servers.close()


def test_a_server_that_loads_no_adapters_ends_the_run_with_advice(tmp_path: Path, port: int) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    settings = server(port, BASE, "base", adapters={"policy": "{output}"})
    with (
        pytest.raises(UsageError, match="start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"),
        running(settings, tmp_path),
    ):
        raise AssertionError("it must not get here")
    assert listings.answer_of(settings.ready) is None


def test_servers_are_expected_to_list_the_models_that_the_recipe_asks_them_for() -> None:
    recipe = load_experiment(CHECKOUT / "recipes" / "backend_8b.toml", [], lambda _: None)
    assert isinstance(recipe, Recipe)
    assert [each.serves for each in servers_of(recipe)] == [
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Llama-3.1-70B-Instruct",
        "policy",
    ]


def test_an_adapter_is_not_expected_before_it_is_trained(tmp_path: Path) -> None:
    overrides = [
        "evaluation.agent=openai:policy@http://127.0.0.1:8000/v1",
        "candidates.critic_at=openai:critic@http://127.0.0.1:8004/v1",
        "candidates.reference_at=openai:base@http://127.0.0.1:8005/v1",
    ]
    recipe = load_experiment(CHECKOUT / "recipes" / "backend_8b.toml", overrides, lambda _: None)
    assert isinstance(recipe, Recipe)
    first = recipe.servers[0]
    servers = tuple(
        replace(first, ready=f"http://127.0.0.1:{port}/v1/models", adapters=adapters)
        for port, adapters in ((8000, {"policy": "{output}/policy/adapter"}), (8004, {}), (8005, {}))
    )
    found = servers_of(replace(recipe, servers=servers))
    assert [each.serves for each in found] == ["meta-llama/Llama-3.1-8B-Instruct", "critic", "base"]
