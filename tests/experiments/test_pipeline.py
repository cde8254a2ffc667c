"""The stages of a recipe: which there are, what they read and write, and that every command exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from recipe_files import write_recipe
from sweetrl.cli.commands import app
from sweetrl.errors import UsageError
from sweetrl.experiments.pipeline import servers_of, stage_names, stages
from sweetrl.settings import load_recipe


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


def test_the_stages_of_the_paper_s_method_hang_together(recipe: Path) -> None:
    planned = stages(load_recipe(recipe, ["candidates={}", "critic.model=m"]))
    assert [stage.name for stage in planned] == [
        "rollout",
        "score",
        "pairs",
        "evaluate-untrained",
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
        ("dpo", ["rollout", "score", "pairs", "evaluate-untrained", "train-dpo"]),
        ("rft", ["rollout", "score", "evaluate-untrained", "train-rft"]),
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


def test_the_precision_of_a_critic_reaches_its_command(recipe: Path) -> None:
    changes = ["candidates={precision='bfloat16'}", "critic.model=m"]
    words = next(each for each in stages(load_recipe(recipe, changes)) if each.name == "rank").arguments
    assert words[words.index("--precision") + 1] == "bfloat16"


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
    changes = ["candidates={}", "critic={model='m', kind='value'}", "evaluation.untrained=false"]
    planned = stages(load_recipe(recipe, changes))
    assert [stage.name for stage in planned[:3]] == ["rollout", "score", "train-critic"]
    assert str(recipe.parent / "run" / "verdicts.jsonl") in planned[2].inputs
    assert "--pairs" not in planned[2].arguments


def test_the_untrained_agent_is_evaluated_as_the_trained_one_is(recipe: Path) -> None:
    planned = {stage.name: stage.arguments for stage in stages(load_recipe(recipe))}
    base, trained = list(planned["evaluate-untrained"]), list(planned["evaluate"])
    folder = recipe.parent / "run"
    assert trained[trained.index("--agent") + 1] == f"hf:{folder}/policy"
    assert base[-1] == f"{folder}/untrained"
    trained[trained.index("--agent") + 1], trained[-1] = "scripted:curious", base[-1]
    assert base == trained


def test_servers_of_agent_and_collaborator_serve_the_untrained_agent_too(recipe: Path) -> None:
    served = [
        "agent.model=openai:a@http://127.0.0.1:8000/v1",
        "collaborator.model=openai:b@http://127.0.0.1:8001/v1",
        "servers="
        + "["
        + ",".join(
            f"{{command='x', ready='http://127.0.0.1:{port}/v1/models', stages=['evaluate']}}"
            for port in (8000, 8001, 8002)
        )
        + "]",
    ]
    stages_of = [server.stages for server in servers_of(load_recipe(recipe, served))]
    assert stages_of == [("evaluate", "evaluate-untrained")] * 2 + [("evaluate",)]


SERVED = [
    "candidates={critic_at='openai:critic@http://h:1/v1', reference_at='openai:base@http://h:2/v1'}",
    "critic.model=m",
]


def test_a_trained_critic_may_rank_through_servers(recipe: Path) -> None:
    [rank] = [each for each in stages(load_recipe(recipe, SERVED)) if each.name == "rank"]
    folder = recipe.parent / "run" / "critic"
    spec = rank.arguments[rank.arguments.index("--critic") + 1]
    assert spec == f"served:{folder},openai:critic@http://h:1/v1,openai:base@http://h:2/v1"
    assert str(folder) in rank.inputs


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("critic.kind=value", "needs a section .critic. with kind"),
        ("candidates.reference_at=", "needs both critic_at and reference_at"),
        ("candidates.critic=length", "leave out critic"),
    ],
)
def test_servers_cannot_rank_everything(recipe: Path, change: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        stages(load_recipe(recipe, [*SERVED, change]))


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
