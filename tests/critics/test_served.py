"""A critic behind endpoints says what the same critic says in this process."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from transformers import AutoModelForCausalLM

from models.logprob_server import Entries, LogprobServer, serving
from models.tiny_llama import save_tiny_llama
from sweetrl.critics import load_critic, open_critic
from sweetrl.critics.opening import open_with_models
from sweetrl.dialogue.building import Models
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import ModelError, UsageError
from sweetrl.learning.critic_cards import CriticCard, write_critic_card
from sweetrl.learning.settings import CriticKind, Normalisation
from sweetrl.models import EndpointOptions
from sweetrl.types import Message, Role, Task, Unfinished

TASK = Task(
    id="t",
    domain="backend",
    request="Write a function that sums prices.",
    secret=BackendSecret(reference="def f(prices):\n    return sum(prices)\n", tests={"test1": "f([1])"}),
)
HISTORY = [
    Message(Role.USER, TASK.request),
    Message(Role.ASSISTANT, "Are there prices below zero?"),
    Message(Role.USER, "No."),
]
OUTPUTS = ["And an empty list?", "Why?", "Why?", "I WANT TO ANSWER: def f(): pass", Unfinished("Why?")]
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def seed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("seed"), max_position_embeddings=4096)


def trained(folder: Path, seed_model: Path, **changes: Any) -> Path:
    """A folder as training leaves it; random weights stand for learned ones."""
    save_tiny_llama(folder, seed=1, max_position_embeddings=4096)
    card = {"kind": CriticKind.ADVANTAGE, "privileged": BACKEND.prompts.privileged.text, "system": "Be kind."}
    write_critic_card(
        folder, CriticCard(**{"reference": str(seed_model), "max_tokens": 1000, **card, **changes})
    )
    return folder


def asking(
    folder: Path,
    seed_model: Path,
    ask: Callable[[Any], Coroutine[Any, Any, Result]],
    change: Callable[[Entries], Entries | None] = lambda entries: entries,
    models: tuple[str, str] = ("critic", "base"),
) -> tuple[Result, LogprobServer]:
    """What the critic of the folder answers when a server has its models."""
    served = {"critic": folder, "base": seed_model}
    networks = {name: AutoModelForCausalLM.from_pretrained(each).eval() for name, each in served.items()}

    async def answer(server: LogprobServer) -> Result:
        async with Models(EndpointOptions(attempts=2, first_backoff=0.01)) as opened:
            spec = ",".join(f"openai:{name}@{server.url}" for name in models)
            return await ask(open_with_models(f"served:{folder},{spec}", opened))

    with serving(networks, change) as server:
        return asyncio.run(answer(server)), server


def advantages(critic: Any) -> Coroutine[Any, Any, list[float]]:
    found: Coroutine[Any, Any, list[float]] = critic.advantages(TASK, HISTORY, OUTPUTS)
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"plain_reference": True},
        {"privileged": None, "normalisation": Normalisation.NONE},
        {"max_tokens": 260},
    ],
    ids=["as usual", "plain reference", "no secret", "a cut history"],
)
def test_advantages_are_those_of_the_critic_in_this_process(
    tmp_path: Path, seed_model: Path, changes: dict[str, Any]
) -> None:
    folder = trained(tmp_path, seed_model, **changes)
    found, server = asking(folder, seed_model, advantages)
    assert found == pytest.approx(asyncio.run(advantages(load_critic(folder))), abs=1e-4)
    # Equal outputs are asked for once; the unfinished one is another: it lacks its end.
    assert len(server.asked) == 2 * 4


def test_tokens_get_the_credit_that_they_get_in_this_process(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path, seed_model)

    def ask(critic: Any) -> Any:
        return critic.token_advantages(TASK, HISTORY, OUTPUTS[0])

    found, _ = asking(folder, seed_model, ask)
    expected = asyncio.run(ask(load_critic(folder)))
    assert [each.text for each in found] == [each.text for each in expected]
    assert [each.advantage for each in found] == pytest.approx(
        [each.advantage for each in expected], abs=1e-4
    )


def test_a_server_that_tells_no_logprobs_of_prompts_ends_the_run(tmp_path: Path, seed_model: Path) -> None:
    with pytest.raises(
        UsageError, match=r"critic@.* gives no log-probabilities of prompts .*; serve it with vLLM"
    ):
        asking(trained(tmp_path, seed_model), seed_model, advantages, lambda _: None, ("critic", "critic"))


@pytest.mark.parametrize(
    "change",
    [lambda entries: entries[1:], lambda entries: entries[::-1], lambda entries: [None for _ in entries]],
    ids=["one too few", "of other tokens", "of none"],
)
def test_logprobs_of_other_tokens_are_not_taken_for_ours(
    tmp_path: Path, seed_model: Path, change: Callable[[Entries], Entries]
) -> None:
    with pytest.raises(ModelError, match="log-probabilities of other tokens"):
        asking(trained(tmp_path, seed_model), seed_model, advantages, change)


def test_a_model_that_is_not_served_is_named(tmp_path: Path, seed_model: Path) -> None:
    with pytest.raises(ModelError, match="not_found"):
        asking(trained(tmp_path, seed_model), seed_model, advantages, models=("critic", "nobody"))


def test_the_name_changes_with_every_training_and_with_the_servers(tmp_path: Path, seed_model: Path) -> None:
    async def marks(*specs: str) -> list[str]:
        async with Models() as opened:
            return [open_with_models(f"served:{folder},{spec}", opened).name for spec in specs]

    folder = trained(tmp_path / "critic", seed_model)
    specs = [f"openai:critic@http://127.0.0.1:{port}/v1,openai:base@http://h/v1" for port in (1, 2, 1)]
    one, other, again = asyncio.run(marks(*specs))
    assert one == again != other
    assert one.startswith("served:critic@")
    (folder / "sweetrl.json").write_text("{}")
    assert asyncio.run(marks(specs[0])) != [one]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("served:critic", "has 0 endpoints; write served:DIR,openai:CRITIC@URL,openai:REFERENCE@URL"),
        ("served:critic,openai:a@http://h/v1", "has 1 endpoints"),
        ("served:,openai:a@http://h/v1,openai:b@http://h/v1", "write served:DIR"),
        ("served:", "lacks its second half"),
    ],
)
def test_a_name_that_cannot_be_read_is_explained(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_critic(spec)
    assert said in str(caught.value)


def test_a_critic_with_a_head_is_refused(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path, seed_model, kind=CriticKind.VALUE)
    with pytest.raises(UsageError, match="only a log-ratio critic of texts can be served"):
        open_critic(f"served:{folder},openai:a@http://h/v1,openai:b@http://h/v1")
