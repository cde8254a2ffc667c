import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.core import TyperGroup

from conftest import CHECKOUT, Finished
from sweetrl.cli.commands import app
from sweetrl.cli.estimates import costs
from sweetrl.cli.road import stage_names, stages
from sweetrl.errors import UsageError
from sweetrl.records import read_records
from sweetrl.settings import load_recipe
from sweetrl.types import BackendSecret, Episode, Kind, Task

Sweetrl = Callable[..., Finished]
RECIPES = sorted((CHECKOUT / "recipes").glob("*.toml"))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    tasks = [
        Task(
            id=f"t{n}",
            kind=Kind.BACKEND,
            request="Do.",
            secret=BackendSecret(f"def f(): return {n}", {"a": "f()"}),
        )
        for n in range(3)
    ]
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    path = tmp_path / "recipe.toml"
    path.write_text(f"""
output = "{tmp_path}/run"
algorithm = "sweet"
[tasks]
train = "{tmp_path}/tasks.jsonl"
test = "{tmp_path}/tasks.jsonl"
[agent]
model = "scripted:curious"
[collaborator]
model = "scripted:unsure"
[rollout]
attempts = 2
[candidates]
critic = "scripted:overlap"
[policy]
model = "some/model"
[estimate]
turns = 3
output_tokens = 100
reply_tokens = 50
prompt_tokens = 400
parameters = 1e9
gpu_tflops = 100
""")
    return path


# ---------------------------------------------------------------- the plan


def test_the_stages_of_the_paper_s_method_hang_together(recipe: Path) -> None:
    planned = stages(load_recipe(recipe, ["candidates={}", "critic.model=m"]))
    assert [stage.name for stage in planned] == [
        "rollout",
        "score",
        "pairs",
        "train-critic",
        "candidates",
        "rank",
        "turn-pairs",
        "train-policy",
        "evaluate",
    ]
    written = {str(stage.output) for stage in planned}
    tasks = str(recipe.parent / "tasks.jsonl")
    for number, stage in enumerate(planned):
        before = {str(each.output) for each in planned[:number]}
        assert set(stage.inputs) <= before | {tasks}, stage.name
    assert len(written) == len(planned)


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("dpo", ["rollout", "score", "pairs", "train-dpo"]),
        ("rft", ["rollout", "score", "train-rft"]),
        ("none", []),
    ],
)
def test_other_methods_need_fewer_stages(recipe: Path, method: str, wanted: list[str]) -> None:
    planned = [stage.name for stage in stages(load_recipe(recipe, [f"algorithm={method}"]))]
    assert planned == [*wanted, "evaluate"]
    assert set(planned) <= set(stage_names())


def test_an_algorithm_that_learns_from_turn_pairs_needs_the_stages_that_make_them(recipe: Path) -> None:
    kto, sweet = (
        {stage.name: stage for stage in stages(load_recipe(recipe, [f"algorithm={name}"]))}
        for name in ("kto", "sweet")
    )
    assert list(kto) == [name.replace("train-policy", "train-kto") for name in sweet]
    assert kto["train-kto"].inputs == sweet["train-policy"].inputs


def test_hyperparameters_of_one_algorithm_reach_its_command(recipe: Path) -> None:
    changes = ["algorithm=kto", "policy={model='m', sft_weight=1, options={desirable_weight=1.5}}"]
    words = stages(load_recipe(recipe, changes))[-2].arguments
    assert words[words.index("--desirable-weight") + 1] == "1.5"
    assert "--sft-weight" not in words


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["algorithm=swet"], "there is no algorithm 'swet'; did you mean 'sweet'?"),
        (["algorithm=critic"], "trains a critic; choose one that trains a policy"),
        (["algorithm=kto", "candidates={}", "critic="], "algorithm 'kto' needs a critic"),
        (["critic.model=m", "candidates.critic=zero:hf:m"], "algorithm 'sweet' needs a critic: either"),
    ],
)
def test_an_algorithm_that_cannot_be_planned_is_refused(recipe: Path, changes: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        stages(load_recipe(recipe, changes))


def test_a_value_function_is_trained_without_pairs(recipe: Path) -> None:
    planned = stages(load_recipe(recipe, ["candidates={}", "critic={model='m', kind='value'}"]))
    assert [stage.name for stage in planned[:3]] == ["rollout", "score", "train-critic"]
    assert str(recipe.parent / "run" / "verdicts.jsonl") in planned[2].inputs
    assert "--pairs" not in planned[2].arguments


def test_dialogues_that_were_held_already_are_not_held_again(recipe: Path) -> None:
    planned = stages(load_recipe(recipe, ["episodes=old.jsonl"]))
    assert planned[0].name == "score"
    assert "old.jsonl" in planned[0].inputs


def test_options_of_the_recipe_reach_the_commands(recipe: Path) -> None:
    changes = [
        "policy.learning_rate=2e-7",
        "policy.gradient_checkpointing=true",
        "agent.temperature=0.5",
        "seed=9",
    ]
    planned = {stage.name: stage.arguments for stage in stages(load_recipe(recipe, changes))}
    policy = planned["train-policy"]
    assert policy[policy.index("--learning-rate") + 1] == "2e-07"
    assert "--gradient-checkpointing" in policy
    assert "--epochs" not in policy
    candidates = planned["candidates"]
    assert candidates[candidates.index("--agent-temperature") + 1] == "0.5"
    assert candidates[candidates.index("--seed") + 1] == "9"
    evaluation = planned["evaluate"]
    assert evaluation[evaluation.index("--agent") + 1] == f"hf:{recipe.parent}/run/policy"


EVERYTHING = (
    "algorithm=sweet",
    "candidates={n=2, concurrency=3, rank_concurrency=1, judge_prompt='recipe.toml', judge_rounds=3}",
    "critic={model='m', kind='value', normalisation='none', no_reference=true, plain_reference=true, shard=true}",
    "policy={model='m', epochs=1, batch_size=2, learning_rate=1e-5, beta=1, nll_weight=0.1, warmup=0.1, "
    "min_lr_ratio=0.1, max_tokens=9, tokens_per_pass=9, max_steps=9, lora_rank=9, precision='float32', "
    "gradient_checkpointing=true, shard=true, save_every=9}",
    "rollout={attempts=2, concurrency=3, turn_limit=4, guard=true}",
    "agent.prompt=recipe.toml",
    "collaborator={model='scripted:unsure', temperature=0, max_tokens=3}",
    "pairs={rule='all', margin=0.5}",
    "scoring={turn_cost=0.05}",
)


@pytest.mark.parametrize("method", ["sweet", "kto", "dpo", "rft", "none"])
def test_every_command_of_a_plan_takes_the_options_that_it_is_given(
    recipe: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe.parent)
    commands: Any = typer.main.get_command(app)
    unknown = set()
    for stage in stages(load_recipe(recipe, [*EVERYTHING, f"algorithm={method}"])):
        command, words = commands, list(stage.arguments)
        while isinstance(command, TyperGroup) and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        if isinstance(command, TyperGroup):
            unknown.add(stage.arguments[0])
        else:
            command.make_context(stage.name, words)
    assert unknown <= {"score"}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_makes_a_plan(sweetrl: Sweetrl, path: Path) -> None:
    ended = sweetrl("run", path, "--dry-run", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["stages"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_says_how_it_is_launched(path: Path) -> None:
    assert f"sweetrl run recipes/{path.name}" in path.read_text().partition("\noutput")[0]


def test_the_plan_is_what_hand_arithmetic_says(recipe: Path) -> None:
    loaded = load_recipe(recipe)
    planned = stages(loaded)
    found = dict(zip([stage.name for stage in planned], costs(loaded, planned), strict=True))
    # 3 tasks x 2 attempts x 3 turns; a turn finds 400 + (3 - 1) / 2 * 150 = 550 tokens before it.
    assert found["rollout"].requests == 2 * 18
    assert found["rollout"].tokens == 18 * (2 * 550 + 150)
    assert found["candidates"].tokens == 18 * (550 + 16 * 100)
    assert found["train-policy"].tokens == 18 * 4 * 2 * 650
    hours = (6 + 2) * 18 * 4 * 2 * 650 * 1e9 / 100e12 / 3600
    assert found["train-policy"].gpu_hours == pytest.approx(hours)
    assert found["score"].tokens == 0


def test_what_cannot_be_told_is_not_guessed(recipe: Path) -> None:
    loaded = load_recipe(recipe, ["tasks.train=not-there.jsonl", "estimate={}"])
    found = costs(loaded, stages(loaded))
    assert found[0].tokens is None
    assert all(cost.gpu_hours is None for cost in found)


def test_a_dry_run_shows_the_commands_and_writes_nothing(sweetrl: Sweetrl, recipe: Path) -> None:
    ended = sweetrl("run", recipe, "--dry-run")
    assert ended.code == 0
    assert "sweetrl turn-pairs --ranked" in ended.out
    assert not (recipe.parent / "run").exists()


def test_faults_of_a_recipe_are_one_line(sweetrl: Sweetrl, recipe: Path) -> None:
    ended = sweetrl("run", recipe, "--set", "candidats.n=3", "--set", "seed=x")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "did you mean candidates?" in ended.err
    assert "seed: Expected" in ended.err
    server = '[[servers]]\ncommand="x"\nready="http://x"\nstages=["evaluat"]\n'
    recipe.write_text(recipe.read_text() + server)
    assert "did you mean 'evaluate'?" in sweetrl("run", recipe).err


# ---------------------------------------------------------------- running


@pytest.fixture
def short(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, tuple[str, ...]]:
    """A recipe whose stages all exist without a trainer: evaluate an agent, here cut to its first stage."""
    from sweetrl.cli import road

    whole = road.stages
    monkeypatch.setattr(road, "stages", lambda loaded: whole(loaded)[:1])
    return recipe, ("run", str(recipe), "--set", "algorithm=none")


def test_stages_run_and_are_not_run_again(sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]) -> None:
    recipe, command = short
    ended = sweetrl(*command, "--json")
    assert ended.code == 0, ended.err
    [entry] = json.loads(ended.out)["stages"]
    assert (entry["stage"], entry["code"]) == ("evaluate", 0)
    written = recipe.parent / "run" / "evaluation" / "episodes.jsonl"
    assert len(list(read_records(written, Episode))) == 3
    written.unlink()
    again = sweetrl(*command)
    assert "evaluate: done before" in again.err
    assert not written.exists()


def test_a_stage_that_was_done_with_its_defaults_spelled_out_is_done(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]
) -> None:
    recipe, command = short
    assert sweetrl(*command).code == 0
    journal = recipe.parent / "run" / "run.json"
    entries = json.loads(journal.read_text())
    entries[0]["arguments"][1:1] = ["--attempts", "1", "--seed", "0"]
    journal.write_text(json.dumps(entries))
    assert "evaluate: done before" in sweetrl(*command).err


def test_a_stage_that_was_done_otherwise_is_an_error(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]
) -> None:
    _, command = short
    assert sweetrl(*command).code == 0
    ended = sweetrl(*command, "--set", "rollout.turn_limit=2")
    assert ended.code == 2
    assert "was done with other settings (was without, now --turn-limit 2)" in ended.err


@pytest.mark.parametrize(("options", "code"), [((), 1), (("--allow-failures",), 0)])
def test_a_stage_with_failures_stops_the_run_unless_they_are_allowed(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]], options: tuple[str, ...], code: int
) -> None:
    ended = sweetrl(*short[1], "--set", "collaborator.model=replay:" + _replies(short[0]), *options)
    assert ended.code == code, ended.err
    assert "failed" in ended.err


def _replies(recipe: Path) -> str:
    """Dialogues of one turn, which have no reply to repeat at the second."""
    folder = recipe.parent / "old"
    command = [
        "rollout",
        "--tasks",
        f"{recipe.parent}/tasks.jsonl",
        "--agent",
        "scripted:babble",
        "--single-turn",
    ]
    subprocess.run([sys.executable, "-m", "sweetrl", *command, "-o", folder, "-q"], check=True)
    return str(folder / "episodes.jsonl")


def test_a_stage_that_cannot_run_stops_the_run(sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]) -> None:
    ended = sweetrl(*short[1], "--set", "agent.model=scripted:nobody")
    assert ended.code == 2
    assert "the stage evaluate ended with code 2" in ended.err
    assert not (short[0].parent / "run" / "run.json").exists()


# ---------------------------------------------------------------- servers


def with_server(recipe: Path, command: str, port: int, **settings: Any) -> None:
    lines = [
        f"command = {json.dumps(command)}",
        f'ready = "http://127.0.0.1:{port}/"',
        'stages = ["evaluate"]',
    ]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    recipe.write_text(recipe.read_text() + "[[servers]]\n" + "\n".join(lines) + "\n")


def free_port() -> int:
    """A port that nobody listens on, below those that the system gives away by itself."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def test_a_server_runs_during_its_stages_and_ends_with_them(
    sweetrl: Sweetrl, short: tuple[Path, tuple[str, ...]]
) -> None:
    recipe, command = short
    port = free_port()
    pid = recipe.parent / "pid"
    with_server(
        recipe, f"echo $$ > {pid}; exec {sys.executable} -m http.server {port} --bind 127.0.0.1", port
    )
    ended = sweetrl(*command)
    assert ended.code == 0, ended.err
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert "GET / " in (recipe.parent / "run" / "server-0.log").read_text()


@pytest.mark.parametrize(
    ("command", "settings", "complaint"),
    [("exit 3", {}, "ended with code 3"), ("sleep 60", {"timeout": 1}, "did not answer within 1 s")],
)
def test_a_server_that_does_not_come_up_is_one_line(
    sweetrl: Sweetrl,
    short: tuple[Path, tuple[str, ...]],
    command: str,
    settings: dict[str, int],
    complaint: str,
) -> None:
    with_server(short[0], command, free_port(), **settings)
    ended = sweetrl(*short[1])
    assert ended.code == 2
    assert complaint in ended.err
    assert "Traceback" not in ended.err


# ---------------------------------------------------------------- ends that nobody planned


@pytest.fixture
def endless(recipe: Path) -> Iterator["subprocess.Popen[str]"]:
    """A run in the middle of a stage that would take very long, in a session of its own."""
    changes = ("--set", "algorithm=none", "--set", "evaluation.attempts=9000")
    words = [sys.executable, "-m", "sweetrl", "run", str(recipe), *changes]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        written = recipe.parent / "run" / "evaluation" / "episodes.jsonl"
        while not (written.exists() and written.stat().st_size):
            assert process.poll() is None
            time.sleep(0.05)
        yield process
        process.kill()


@pytest.fixture
def served(recipe: Path) -> Path:
    """Adds a server to the recipe, of two processes; the file that it writes the second one's id to."""
    port, pid = free_port(), recipe.parent / "pid"
    server = f"{sys.executable} -m http.server {port} --bind 127.0.0.1 & echo $! > {pid}; wait"
    with_server(recipe, server, port)
    return pid


def children_of(process: int) -> set[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {int(each) for each in listed}.union(*(children_of(int(each)) for each in listed))


def await_end_of(processes: set[int]) -> None:
    while any(Path(f"/proc/{each}").exists() for each in processes):
        time.sleep(0.05)


def test_a_request_to_end_leaves_neither_stage_nor_server(
    served: Path, endless: "subprocess.Popen[str]"
) -> None:
    started = children_of(endless.pid)
    assert int(served.read_text()) in started
    endless.terminate()
    _, said = endless.communicate(timeout=120)
    assert endless.returncode == 130, said
    assert said.splitlines()[-1] == "interrupted: in the stage evaluate; rerun the same command to resume"
    await_end_of(started)


def test_a_killed_run_takes_stage_and_server_with_it(served: Path, endless: "subprocess.Popen[str]") -> None:
    started = children_of(endless.pid)
    assert int(served.read_text()) in started
    endless.kill()
    await_end_of(started)


def test_an_interrupt_reaches_the_stage_and_the_same_command_goes_on(
    recipe: Path, endless: "subprocess.Popen[str]"
) -> None:
    written = recipe.parent / "run" / "evaluation" / "episodes.jsonl"
    os.killpg(endless.pid, signal.SIGINT)
    _, said = endless.communicate(timeout=120)
    assert endless.returncode == 130, said
    assert said.endswith("rerun the same command to resume\n")
    held = len(list(read_records(written, Episode)))
    assert 0 < held < 27000
