"""Real servers on real ports, known by the models that they list."""

import shlex
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import CHECKOUT
from sweetrl.errors import UsageError
from sweetrl.experiments.pipeline import servers_of
from sweetrl.experiments.servers import running
from sweetrl.settings import Recipe, ServerSettings, load_experiment

LISTING = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[2].encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def words(port: int, answer: str) -> list[str]:
    return [sys.executable, "-c", LISTING, str(port), answer]


def server(port: int, answer: str, serves: str | None) -> ServerSettings:
    address = f"http://127.0.0.1:{port}/v1/models"
    command = f"exec {shlex.join(words(port, answer))}"
    return ServerSettings(command=command, ready=address, serves=serves, stages=("a",), timeout=120)


@pytest.mark.parametrize(
    ("answer", "serves"),
    [('{"data": [{"id": "policy"}]}', "policy"), ('{"data": [{"id": "any"}]}', None), ("ready", "policy")],
    ids=["the model", "nothing expected", "no list of models"],
)
def test_a_server_is_ready_when_it_lists_what_is_asked_of_it(
    tmp_path: Path, port: int, answer: str, serves: str | None
) -> None:
    settings = server(port, answer, serves)
    with running((settings,), tmp_path, lambda _: None):
        assert urllib.request.urlopen(settings.ready, timeout=5).read() == answer.encode()


def test_a_server_with_another_model_is_refused(tmp_path: Path, port: int) -> None:
    settings = server(port, '{"data": [{"id": "base"}]}', "policy")
    with (
        pytest.raises(UsageError, match="serves base, but the recipe asks it for policy"),
        running((settings,), tmp_path, lambda _: None),
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
        running((settings,), tmp_path, lambda _: None),
    ):
        raise AssertionError("it must not get here")


def test_servers_are_expected_to_list_the_models_that_the_recipe_asks_them_for() -> None:
    recipe = load_experiment(CHECKOUT / "recipes" / "backend_8b.toml", [], lambda _: None)
    assert isinstance(recipe, Recipe)
    assert [each.serves for each in servers_of(recipe)] == [
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Llama-3.1-70B-Instruct",
        "policy",
    ]
