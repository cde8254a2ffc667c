"""What is found before the first stage."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from recipe_files import write_recipe
from sweetrl import critics
from sweetrl.critics.critic_type import CriticType
from sweetrl.critics.scripted import ScriptedCritic
from sweetrl.experiments import checks
from sweetrl.experiments.checks import Problem, usual_rate
from sweetrl.experiments.model_size import parameters_of
from sweetrl.experiments.pipeline import servers_of, stages
from sweetrl.settings import load_recipe

MINI = ["policy.model=hf:mini", "policy.learning_rate=1e-3"]


@pytest.fixture(autouse=True)
def _large_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found must not depend on what this machine has free."""
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**15))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


def problems(recipe: Path, *changes: str, fatal: bool = True) -> list[str]:
    loaded = load_recipe(recipe, [*MINI, *changes])
    found = checks.check(stages(loaded), [loaded], servers_of(loaded))
    return [problem.text for problem in found if problem.fatal == fatal]


def test_a_sound_recipe_has_no_problem(recipe: Path) -> None:
    assert problems(recipe) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("tasks.train=gone.jsonl", "tasks.train: gone.jsonl: no such file"),
        ("tasks.test=mini-backend:test:x", "tasks.test: mini-backend:test:x: write mini-backend:SPLIT:N"),
        ("tasks.test=mini-frontend:test:2", 'tasks.test: has frontend tasks, but domain = "backend"'),
        ("episodes=old.jsonl", "episodes: old.jsonl: no such file"),
        ("agent.prompt=gone.txt", "agent.prompt: gone.txt: no such file"),
        ("agent.model=hf:./gone", "agent.model: ./gone: no such folder"),
        ("agent.model=opnai:x", "agent.model: there is no kind of model 'opnai'; did you mean openai:"),
        ("agent.model=scripted:nobody", "agent.model: "),
        ("agent.model=openai:gpt-x", "agent.model: OpenAI's service needs a key"),
        ("collaborator.model=replay:old.jsonl", "collaborator.model: old.jsonl: no such file"),
        ("collaborator.model=colleague", "collaborator.model: the colleague knows mini-backend tasks only"),
        (
            "collaborator.model=designer",
            "collaborator.model: the collaborator designer is for frontend tasks",
        ),
        ("candidates.critic=./critic", "candidates.critic: ./critic: no such folder of a critic"),
        ("candidates.critic=judge:opnai:x", "candidates.critic: there is no kind of model 'opnai'"),
        ("candidates.critic=served:./critic", "candidates.critic: cannot read 'served:./critic'"),
        ("policy.model=/gone", "policy.model: /gone: no such folder"),
        ("policy.model=openai:x", "policy.model: openai:... cannot be trained here"),
    ],
)
def test_what_a_stage_would_stumble_over_is_named_by_its_key(
    recipe: Path, change: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    [found] = problems(recipe, change)
    assert found.startswith(said)


def test_dialogues_on_other_tasks_are_found_before_the_first_stage(recipe: Path) -> None:
    stored = Path(__file__).parents[2] / "examples" / "episodes.jsonl"
    [found] = problems(recipe, f"episodes={stored}", "tasks.train=mini-backend:train:2")
    assert found.startswith("episodes: ")
    assert "the task shipping-fee is not among the tasks" in found
    assert problems(recipe, f"episodes={stored}", f"tasks.train={stored.with_name('tasks.jsonl')}") == []


def test_a_folder_without_a_configuration_is_no_model(recipe: Path, tmp_path: Path) -> None:
    [found] = problems(recipe, f"agent.model=hf:{tmp_path}")
    assert "has no config.json" in found


def test_what_a_stage_writes_is_not_looked_for(recipe: Path, tmp_path: Path) -> None:
    assert problems(recipe, f"candidates.critic={tmp_path}/run/policy") == []


def test_an_installed_kind_of_critic_is_taken_for_no_folder(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = CriticType(name="own", usage="own:NAME, ours", open=lambda *_: ScriptedCritic(lambda *_: 0.0))
    monkeypatch.setattr(critics, "critic_types", lambda: {"own": own})
    assert problems(recipe, "candidates.critic=own:any") == []
    folders = replace(own, argument="folder")
    monkeypatch.setattr(critics, "critic_types", lambda: {"own": folders})
    assert problems(recipe, "candidates.critic=own:any") == [
        "candidates.critic: any: no such folder of a critic"
    ]


def test_all_problems_are_found_at_once(recipe: Path) -> None:
    assert len(problems(recipe, "tasks.train=a", "episodes=b", "agent.model=hf:./c", "policy.model=/d")) == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["policy.learning_rate=2e-7"], "policy.learning_rate: 2e-07 is very low for a model of"),
        (["policy.learning_rate="], "policy.learning_rate: 2e-07 (the default) is very low"),
        (["policy.learning_rate=0.5"], "policy.learning_rate: 0.5 is very high for a model of"),
    ],
)
def test_learning_rates_far_from_what_is_usual_are_warned_of(
    recipe: Path, changes: list[str], said: str
) -> None:
    found = problems(recipe, *changes, fatal=False)
    assert any(text.startswith(said) for text in found), found


@pytest.mark.parametrize(
    ("parameters", "rate", "adapters"),
    [
        (8.03e9, 2e-7, False),
        (8.03e9, 1e-6, False),
        (1.35e8, 1e-5, False),
        (1.35e8, 1e-4, True),
        (8e9, 1e-4, True),
        (3.9e4, 1e-4, True),
        (5.9e5, 1e-3, False),
    ],
)
def test_learning_rates_that_people_use_are_usual(parameters: float, rate: float, adapters: bool) -> None:
    usual, far = usual_rate(parameters, adapters=adapters)
    assert usual / far < rate < usual * far


def test_tasks_that_are_trained_on_and_tested_on_are_warned_of(recipe: Path) -> None:
    assert any("3 tasks are in tasks.train too" in text for text in problems(recipe, fatal=False))
    assert problems(recipe, "tasks.test=mini-backend:test:2", fatal=False) == []


def test_a_model_that_must_be_fetched_is_a_warning_unless_that_is_forbidden(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert any("will be fetched" in text for text in problems(recipe, "policy.model=no/such", fatal=False))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert any("HF_HUB_OFFLINE forbids" in text for text in problems(recipe, "policy.model=no/such"))


def test_a_missing_package_is_named_with_how_to_install_it(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda _: None)
    assert any("torch is missing" in text and "[train]" in text for text in problems(recipe))
    assert not any("ray is missing" in text for text in problems(recipe))
    assert any("ray is missing" in text and "[ray]" in text for text in problems(recipe, "executor=ray"))


def test_a_full_disk_is_found_before_it_is_written_to(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
    [found] = problems(recipe)
    assert "0.1 GiB are free, and the run needs about 1.0" in found


# ---------------------------------------------------------------- endpoints


@pytest.fixture
def listening() -> Iterator[int]:
    """A server that answers everything with 401."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_endpoint_answers_whatever_it_says(recipe: Path, listening: int) -> None:
    assert problems(recipe, f"agent.model=openai:m@http://127.0.0.1:{listening}/v1") == []


def test_an_endpoint_that_does_not_answer_is_named(recipe: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        [found] = problems(recipe, f"agent.model=openai:m@{address}")
        assert found.startswith(f"agent.model: no connection to {address}")
        own = f"servers=[{{command='x', ready='{address}/models', stages=['rollout']}}]"
        assert problems(recipe, f"agent.model=openai:m@{address}", own) == []


def test_servers_that_rank_are_asked_too(recipe: Path) -> None:
    served = ["candidates.critic=", "critic.model=mini"]
    served += [f"candidates.{name}=openai:m@http://127.0.0.1:1/v1" for name in ("critic_at", "reference_at")]
    found = [each for each in problems(recipe, *served) if "no connection" in each]
    assert [each.partition(":")[0] for each in found] == ["candidates.critic_at", "candidates.reference_at"]
    address = "http://127.0.0.1:1/v1"
    found = problems(recipe, f"candidates.critic=served:./critic,openai:a@{address},openai:b@{address}")
    assert found[0].startswith("candidates.critic: ./critic: no such folder of a critic")
    assert found[1].startswith(f"candidates.critic: no connection to {address}")


def test_a_run_does_not_ask_endpoints_that_may_still_come_up(recipe: Path) -> None:
    loaded = load_recipe(recipe, [*MINI, "agent.model=openai:m@http://127.0.0.1:9/v1"])
    found = checks.check(stages(loaded), [loaded], endpoints=False)
    assert [problem for problem in found if problem.fatal] == []


def test_problems_are_told_once(recipe: Path) -> None:
    loaded = load_recipe(recipe, ["episodes=old.jsonl", *MINI])
    found = checks.check(stages(loaded), [loaded] * 3)
    assert (
        found.count(Problem("episodes: old.jsonl: no such file; leave out episodes to have some rolled out"))
        == 1
    )


def test_the_size_of_a_model_is_read_from_its_files(tmp_path: Path) -> None:
    assert 100_000 < (parameters_of("mini") or 0) < 10_000_000
    assert parameters_of("no/such") is None
    (tmp_path / "model.safetensors").write_bytes(b"half")
    assert parameters_of(str(tmp_path)) is None
