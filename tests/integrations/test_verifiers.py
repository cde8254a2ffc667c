"""Through verifiers' own runner, with a real model server over HTTP."""

import asyncio
import json
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("verifiers", reason="needs the extra `verifiers`; run by `make test-integrations`")

import verifiers.v1 as vf
from transformers import AutoTokenizer
from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig

import sweetrl
from sweetrl.dialogue.background import run_in_background
from sweetrl.errors import UsageError
from sweetrl.integrations.verifiers import (
    ColBenchEnv,
    ColBenchEnvConfig,
    ColBenchTaskset,
    episodes_of,
    write_credit,
)
from sweetrl.models.shipped import located
from sweetrl.types import Message, Role, TokenCredit, TurnCredit

TASKS = "mini-backend:test:20:3"
EXAMPLE = Path(__file__).parents[2] / "examples/verifiers_environment/src"

Answer = Callable[[list[Message]], str]


class Server(BaseHTTPRequestHandler):
    """A model server: chats for verifiers' client `eval`; token ids, as vLLM's, for its client `train`."""

    answer: Answer
    seen: list[dict[str, Any]]
    finish_reason = "stop"
    tokenizer = AutoTokenizer.from_pretrained(located("mini"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(body)
        if self.path.endswith("/generate"):
            self._send("application/json", json.dumps(self._tokens(body)))
            return
        chat = [Message(Role(each["role"]), each["content"]) for each in body["messages"][1:]]
        message = {"role": "assistant", "content": type(self).answer(chat)}
        if not body.get("stream"):
            self._send(
                "application/json", _completion("chat.completion", self.finish_reason, message=message)
            )
            return
        chunks = [
            _completion("chat.completion.chunk", None, delta=message),
            _completion("chat.completion.chunk", self.finish_reason, delta={}),
        ]
        self._send("text/event-stream", "".join(f"data: {each}\n\n" for each in [*chunks, "[DONE]"]))

    def _tokens(self, body: dict[str, Any]) -> dict[str, Any]:
        told = self.tokenizer.decode(body["token_ids"])
        said = re.findall(r"<\|(user|agent)\|>(.*?)<\|end\|>", told, re.DOTALL)
        roles = {"user": Role.USER, "agent": Role.ASSISTANT}
        ids = self.tokenizer.encode(type(self).answer([Message(roles[who], text) for who, text in said]))
        ids.append(self.tokenizer.eos_token_id)
        logprobs = {"content": [{"token": f"token_id:{each}", "logprob": -0.5} for each in ids]}
        return {"choices": [{"index": 0, "token_ids": ids, "logprobs": logprobs, "finish_reason": "stop"}]}

    def _send(self, kind: str, content: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content.encode())))
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _completion(kind: str, finish: str | None, **said: Any) -> str:
    choice = {"index": 0, "finish_reason": finish, **said}
    return json.dumps({"id": "x", "object": kind, "created": 0, "model": "m", "choices": [choice]})


def agent(name: str) -> Answer:
    """A scripted agent of ours, for a server to speak with."""
    ours = sweetrl.load_agent(name, TASKS, rules=sweetrl.Rules(turn_limit=8))
    return lambda history: run_in_background(ours.sample(history, n=1, seed=len(history)))[0]


class Runner:
    """`vf-eval sweetrl-colbench`, against a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[str, list[vf.Episode]] = {}
        self.seen: list[dict[str, Any]] = []

    def scripted(self, name: str) -> list[vf.Episode]:
        """The 20 dialogues of a scripted agent."""
        if name not in self._done:
            self._done[name] = self.run(agent(name), name)
        return self._done[name]

    def run(
        self,
        answer: Answer,
        name: str,
        *,
        finish: str = "stop",
        client: dict[str, Any] | None = None,
        taskset: dict[str, Any] | None = None,
        **options: Any,
    ) -> list[vf.Episode]:
        self.seen = []
        handler = type(
            "Played", (Server,), {"answer": staticmethod(answer), "seen": self.seen, "finish_reason": finish}
        )
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        tasks = {"tasks": TASKS, "collaborator": "colleague", "turn_limit": 8, "seed": 1}
        environment = options.pop("env", {})
        config = EvalConfig(
            env={"taskset": {"id": "sweetrl-colbench", **tasks, **(taskset or {})}, **environment},
            model="m",
            client={
                "base_url": f"http://127.0.0.1:{server.server_port}/v1",
                "api_key_var": "NO_KEY",
                **(client or {}),
            },
            max_concurrent=4,
            rich=None,
            push=False,
            output_dir=self._folder / name,
            run={"name": "run"},
            **options,
        )
        try:
            return asyncio.run(run_eval(config))
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def written(self, name: str) -> str:
        """What the runner wrote to disk."""
        return (self._folder / name / "run/traces.jsonl").read_text()


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    sys.path.insert(0, str(EXAMPLE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_KEY", "none")
        yield Runner(tmp_path_factory.mktemp("runs"))
    sys.path.remove(str(EXAMPLE))


@pytest.fixture(scope="module")
def with_tokens(runner: Runner) -> list[vf.Trace]:
    """Two dialogues, with the agent's tokens in their traces."""
    client = {"type": "train", "renderer_model_name": located("mini")}
    episodes = runner.run(agent("mini-oracle"), "tokens", client=client, select={"limit": 2})
    return traces_of(episodes)


def traces_of(episodes: list[vf.Episode]) -> list[vf.Trace]:
    for episode in episodes:
        assert episode.ok, (episode.errors, [trace.errors for trace in episode.traces])
    return [trace for episode in episodes for trace in episode.traces]


def test_the_oracle_solves_every_task(runner: Runner) -> None:
    traces = traces_of(runner.scripted("mini-oracle"))

    assert [trace.reward for trace in traces] == [1.0] * 20
    assert {trace.metrics["success"] for trace in traces} == {1.0}
    assert all(trace.metrics["turns"] == trace.num_turns for trace in traces)


def test_a_random_agent_solves_next_to_none(runner: Runner) -> None:
    traces = traces_of(runner.scripted("mini-random"))

    assert len(traces) == 20
    assert sum(trace.metrics["success"] for trace in traces) < 2


def test_the_dialogues_are_those_of_our_own_rollout(runner: Runner) -> None:
    told = {each.task_id: each for each in episodes_of(traces_of(runner.scripted("mini-oracle")))}
    own = sweetrl.rollout(TASKS, "mini-oracle", "colleague", seed=1, turn_limit=8)

    assert len(told) == len(own) == 20
    for episode in own:
        assert [turn.reply for turn in told[episode.task_id].turns] == [turn.reply for turn in episode.turns]


def test_nothing_of_the_secret_is_written_to_disk(runner: Runner) -> None:
    runner.scripted("mini-random")
    written = runner.written("mini-random")

    for task in sweetrl.load_tasks(TASKS):
        assert json.dumps(task.request)[1:-1] in written
        assert json.dumps(task.secret.reference)[1:-1] not in written


def test_rollouts_of_one_task_are_its_attempts(runner: Runner) -> None:
    told = runner.run(agent("mini-oracle"), "attempts", select={"limit": 1}, num_rollouts=2)

    assert sorted(each.attempt for each in episodes_of(traces_of(told))) == [0, 1]


def test_an_agent_that_a_limit_stops_has_broken_off_and_is_scored(runner: Runner) -> None:
    limit = {"agent": {"max_turns": 1}}
    [trace] = traces_of(runner.run(lambda _: "What order?", "limit", env=limit, select={"limit": 1}))

    [episode] = episodes_of([trace])
    assert (episode.ending, len(episode.turns), trace.reward) == ("broke_off", 1, 0.0)


def test_an_output_that_was_cut_off_is_marked_as_unfinished(runner: Runner) -> None:
    answered = "I WANT TO ANSWER: def f("
    [trace] = traces_of(runner.run(lambda _: answered, "cut", finish="length", select={"limit": 1}))

    [episode] = episodes_of([trace])
    assert [turn.unfinished for turn in episode.turns] == [True]


def test_a_collaborator_that_is_down_is_an_error_of_the_episode_and_no_zero(runner: Runner) -> None:
    down = {"collaborator": "openai:nobody@http://127.0.0.1:9"}
    [episode] = runner.run(lambda _: "What order?", "down", taskset=down, select={"limit": 1})

    assert not episode.ok
    assert "127.0.0.1" in episode.last_error.message
    assert [trace.rewards for trace in episode.traces if trace.rewards] == []


@pytest.mark.skipif(shutil.which("uv") is None, reason="verifiers' `null` harness needs the program `uv`")
def test_the_harness_of_verifiers_that_only_talks_gets_the_same_dialogue(runner: Runner) -> None:
    null = {"agent": {"harness": {"id": "null"}}}
    [told] = traces_of(runner.run(agent("mini-oracle"), "null", env=null, select={"limit": 1}))

    [own] = sweetrl.rollout(sweetrl.load_tasks(TASKS)[:1], "mini-oracle", "colleague", seed=1, turn_limit=8)
    [episode] = episodes_of([told])
    assert told.reward == 1.0
    assert [turn.reply for turn in episode.turns] == [turn.reply for turn in own.turns]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package of somebody's, with a taskset."""

    class Others(vf.Taskset[vf.Task, vf.TasksetConfig]):
        def load(self) -> list[vf.Task]:
            return []

    module = ModuleType("somebodys")
    module.Taskset, module.__all__, module.__spec__ = Others, ["Taskset"], ModuleSpec("somebodys", None)
    monkeypatch.setitem(sys.modules, "somebodys", module)
    return module


def test_a_taskset_of_others_is_refused(package: ModuleType) -> None:
    with pytest.raises(UsageError, match="tasksets of sweetrl alone"):
        ColBenchEnv(ColBenchEnvConfig(taskset={"id": "somebodys"}))


def test_a_package_without_a_harness_does_not_fall_back_to_a_shell(package: ModuleType) -> None:
    package.Taskset = ColBenchTaskset
    with pytest.raises(UsageError, match="export `ChatHarness`"):
        ColBenchEnv(ColBenchEnvConfig(taskset={"id": "somebodys"}))


# ---------------------------------------------------------------- credit


def credits_of(trace: vf.Trace, *advantages: float | None, **more: Any) -> list[TurnCredit]:
    [episode] = episodes_of([trace])
    return [
        TurnCredit(
            episode_id=episode.id, task_id=episode.task_id, turn=turn, critic="c", advantage=each, **more
        )
        for turn, each in enumerate(advantages)
    ]


def sampled_nodes(trace: vf.Trace) -> list[vf.MessageNode]:
    return [node for node in trace.nodes if node.sampled]


def test_each_sampled_token_gets_the_advantage_of_its_turn(with_tokens: list[vf.Trace]) -> None:
    episodes = list(episodes_of(with_tokens))
    turn_credits = sweetrl.credit(TASKS, episodes, "scripted:mini-backend")
    for trace in with_tokens:
        write_credit(trace, turn_credits)

    for trace, episode in zip(with_tokens, episodes, strict=True):
        own = [each.advantage for each in turn_credits if each.episode_id == episode.id]
        assert len(set(own)) > 1
        for node, advantage in zip(sampled_nodes(trace), own, strict=True):
            assert len(node.advantages) == len(node.logprobs) == sum(node.mask) > 1
            assert set(node.advantages) == {advantage}


def test_what_the_trainer_reads_is_zero_on_the_collaborators_tokens(with_tokens: list[vf.Trace]) -> None:
    trace = with_tokens[0]
    write_credit(trace, credits_of(trace, *[2.0] * trace.num_turns))
    [branch] = trace.branches

    assert branch.advantages == [2.0 if sampled else 0.0 for sampled in branch.sampled_mask]
    assert {True, False} == set(branch.sampled_mask)


def test_advantages_survive_the_record(with_tokens: list[vf.Trace]) -> None:
    trace = with_tokens[0]
    write_credit(trace, credits_of(trace, *[0.25] * trace.num_turns))
    read = vf.WireTrace.model_validate(trace.to_record())

    assert [node.advantages for node in read.nodes] == [node.advantages for node in trace.nodes]


def test_credit_by_token_keeps_the_turns_advantage_as_its_mean(with_tokens: list[vf.Trace]) -> None:
    trace = with_tokens[0]
    first, *_ = nodes = sampled_nodes(trace)
    shares = tuple(TokenCredit("t", float(number)) for number in range(len(first.logprobs)))
    total = sum(each.advantage for each in shares)
    write_credit(trace, credits_of(trace, *[total] * len(nodes), tokens=shares), by_token=True)

    assert first.advantages == [each.advantage * len(shares) for each in shares]
    assert sum(first.advantages) / len(shares) == pytest.approx(total)
    other = next(node for node in nodes if len(node.logprobs) != len(shares))
    assert set(other.advantages) == {total}


def test_a_turn_on_which_the_critic_broke_down_has_no_advantages(with_tokens: list[vf.Trace]) -> None:
    trace = with_tokens[0]
    write_credit(trace, credits_of(trace, None, *[1.0] * (trace.num_turns - 1)))

    assert [node.advantages is None for node in sampled_nodes(trace)] == [True] + [False] * (
        trace.num_turns - 1
    )


def test_credit_that_is_not_complete_is_refused(with_tokens: list[vf.Trace]) -> None:
    with pytest.raises(UsageError, match="no credit for turn 1"):
        write_credit(with_tokens[0], credits_of(with_tokens[0], 1.0))


def test_a_trace_without_tokens_is_refused_with_what_to_do(runner: Runner) -> None:
    trace = traces_of(runner.scripted("mini-oracle"))[0]
    with pytest.raises(UsageError, match="client of type `train`"):
        write_credit(trace, credits_of(trace, *[1.0] * trace.num_turns))
