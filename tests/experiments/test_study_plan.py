"""The plans of studies: what is done once, what for each seed and method, and that every command exists."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from conftest import CHECKOUT
from sweetrl.cli.commands import app
from sweetrl.errors import ConfigError
from sweetrl.experiments.study_plan import PARTS, Plan, plan
from sweetrl.settings import load_study

STUDY = """
output = "{output}"
seeds = 2
[tasks]
train = "mini-backend:train:8:{{seed}}"
validation = "mini-backend:validation:4:{{seed}}"
test = "mini-backend:test:4:{{seed}}"
[agent]
model = "mini"
max_tokens = 64
[collaborator]
model = "colleague"
[rollout]
attempts = 3
turn_limit = 8
[critic]
prompt = "privileged-mini"
[candidates]
n = 4
[critics.sweet]
[critics.value]
kind = "value"
[critics.zero]
use = "zero:mini"
[critics.oracle]
replays = 2
turns = 5
[methods.base]
algorithm = "none"
[methods.rft]
algorithm = "rft"
[methods.dpo]
algorithm = "dpo"
[methods.sweet]
algorithm = "sweet"
critic = "sweet"
[methods.again]
algorithm = "sweet"
critic = "sweet"
policy = {{ beta = 3.0 }}
[methods.value]
algorithm = "sweet"
critic = "value"
[methods.zero]
algorithm = "sweet"
critic = "zero"
[methods.oracle]
algorithm = "sweet"
critic = "oracle"
table = "ablations"
[methods.alone]
algorithm = "none"
single_turn = true
table = "ablations"
[best_of]
n = [1, 4]
critics = ["sweet", "zero"]
[sizes]
tasks = ["mini-backend:train:4:{{seed}}"]
methods = ["dpo", "sweet"]
[off_policy]
model = "mini-large"
methods = ["base", "dpo", "sweet"]
[credit]
tasks = "mini-backend:validation:4:{{seed}}"
turns = 3
replays = 2
critics = ["sweet", "zero"]
"""


@pytest.fixture
def planned(tmp_path: Path) -> Plan:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(output=tmp_path / "run"))
    return plan(load_study(path))


def words(planned: Plan, name: str) -> tuple[str, ...]:
    [stage] = [stage for stage in planned.stages if stage.name == name]
    return stage.arguments


def option(planned: Plan, name: str, option: str) -> str:
    arguments = words(planned, name)
    return arguments[arguments.index(option) + 1]


def test_methods_that_cannot_be_planned_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(output=tmp_path / "run"))
    wrong = ["methods.base.critic=sweet", "methods.sweet.critic=", "methods.rft.learner=rtf"]
    with pytest.raises(ConfigError) as caught:
        plan(load_study(path, wrong))
    assert str(caught.value).split("; methods") == [
        "methods.base: the algorithm 'none' has no use for a critic",
        ".rft.algorithm: there is no algorithm 'rtf'; did you mean 'rft'?",
        ".sweet: the algorithm 'sweet' needs a critic",
    ]


def test_what_methods_share_is_done_once_for_each_seed(planned: Plan) -> None:
    commands = Counter(
        stage.arguments[0]
        for stage in planned.stages
        if stage.name.startswith("seed-1/") and "/" not in stage.name[7:]
    )
    assert commands == {"rollout": 1, "score": 1, "pairs": 1, "candidates": 1}
    names = [stage.name for stage in planned.stages]
    assert len(set(names)) == len(names)
    assert names.count("seed-0/critics/sweet") == 1
    assert names.count("seed-0/ranked/sweet") == 1


def test_every_stage_reads_what_a_stage_before_it_wrote(planned: Plan) -> None:
    written: set[str] = set()
    for stage in planned.stages:
        files = [each for each in stage.inputs if "/" in each]
        if stage.arguments[0] == "select":
            written.update(str(stage.output.parent / Path(each).name) for each in files)
        # A rollout or evaluation is named by its folder.
        known = {each for each in files if each in written or str(Path(each).parent) in written}
        assert set(files) == known, stage.name
        written.add(str(stage.output))


def test_stages_declare_all_that_they_read_of_others(planned: Plan) -> None:
    outputs = [str(path) for stage in planned.stages for path in stage.writes]
    for stage in planned.stages:
        own = set(map(str, stage.writes))
        words = [word.partition(":")[2] or word for word in stage.arguments]
        read = {path for word in words for path in outputs if word == path and path not in own}
        assert read <= set(stage.inputs), stage.name


def test_the_main_table_of_all_seeds_comes_before_anything_else(planned: Plan) -> None:
    names = [stage.name for stage in planned.stages]

    def places(*ends: str) -> list[int]:
        return [names.index(f"seed-{seed}/{end}") for seed in (0, 1) for end in ends]

    order = [
        places("evaluations/base", "evaluations/zero"),
        places("evaluations/oracle"),
        places("credit/sweet", "credit/zero"),
        places("best_of/sweet-4", "best_of/zero-4"),
        places("sizes/1/evaluations/dpo", "sizes/1/evaluations/sweet"),
        places("off_policy/evaluations/base", "off_policy/evaluations/sweet"),
    ]
    for earlier, later in pairwise(order):
        assert max(earlier) < min(later)


def test_a_part_comes_with_all_that_it_needs_and_nothing_else(planned: Plan) -> None:
    names = {stage.name for stage in planned.of(["best_of"]).stages}
    assert {
        "seed-0/best_of/sweet-4",
        "seed-1/critics/sweet",
        "seed-1/pairs",
        "seed-0/evaluations/base",
    } < names
    assert not {name for name in names if "polic" in name or "candidates" in name}
    assert [stage.name for stage in planned.of(PARTS).stages] == [stage.name for stage in planned.stages]
    whole = {stage.name: stage for stage in planned.stages}
    sizes = planned.of(["sizes"])
    assert all(stage == whole[stage.name] for stage in sizes.stages)
    assert "seed-0/candidates" in {stage.name for stage in sizes.stages}


def test_what_is_finished_is_told_by_its_stages(planned: Plan) -> None:
    done = {"seed-0/evaluations/base", "credit/values", "seed-1/credit/zero"}
    finished = planned.finished(lambda stage: stage.name in done)
    assert {(run.part, run.name, run.seed) for run in finished.evaluated} == {
        *(("methods", "base", 0), ("best_of", "sweet", 0), ("best_of", "zero", 0))
    }
    assert [(each.critic, each.seed) for each in finished.ranked] == [("zero", 1)]


def test_each_seed_has_its_own_training_tasks_and_all_share_those_of_the_test(planned: Plan) -> None:
    assert option(planned, "seed-1/episodes", "--tasks") == "mini-backend:train:8:1"
    assert option(planned, "seed-1/evaluations/dpo", "--tasks") == "mini-backend:test:4:0"
    assert option(planned, "seed-1/evaluations/dpo", "--seed") == "1"


def test_methods_with_one_critic_differ_in_what_is_their_own(planned: Plan) -> None:
    assert option(planned, "seed-0/policies/again", "--beta") == "3.0"
    assert "--beta" not in words(planned, "seed-0/policies/sweet")
    ranked = {option(planned, f"seed-0/turn_pairs/{name}", "--ranked") for name in ("sweet", "again")}
    assert len(ranked) == 1


def test_critics_without_training_are_told_of_the_reference_as_others_are(planned: Plan) -> None:
    names = [stage.name for stage in planned.stages]
    assert "seed-0/critics/zero" not in names
    assert option(planned, "seed-0/ranked/zero", "--critic") == "zero:mini"
    assert option(planned, "seed-0/ranked/zero", "--critic-prompt") == "privileged-mini"
    assert option(planned, "seed-0/critics/sweet", "--critic-prompt") == "privileged-mini"
    assert "--critic-prompt" not in words(planned, "seed-0/ranked/sweet")


def test_a_single_turn_has_nobody_to_talk_to(planned: Plan) -> None:
    arguments = words(planned, "seed-0/evaluations/alone")
    assert "--single-turn" in arguments
    assert not [word for word in arguments if word.startswith("--collaborator")]


def test_a_single_turn_has_no_collaborator_to_guard(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(output=tmp_path / "run"))
    planned = plan(load_study(path, ["rollout.guard=true"]))
    assert "--guard" in words(planned, "seed-0/evaluations/base")
    assert "--guard" not in words(planned, "seed-0/evaluations/alone")


def test_the_price_of_turns_holds_for_what_is_learned_from_and_for_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(output=tmp_path / "run"))
    planned = plan(load_study(path, ["scoring.turn_cost=0.05"]))
    for name in ("seed-0/verdicts", "seed-0/evaluations/base", "seed-0/evaluations/dpo"):
        assert option(planned, name, "--turn-cost") == "0.05"


def test_an_oracle_ranks_by_values(planned: Plan) -> None:
    names = [stage.name for stage in planned.stages]
    assert names.index("seed-0/values/oracle") < names.index("seed-0/ranked/oracle")
    assert option(planned, "seed-0/values/oracle", "--turns") == "5"
    assert option(planned, "seed-0/ranked/oracle", "--critic").endswith("seed-0/values/oracle.jsonl")


def test_one_draft_is_the_untrained_agent_that_was_evaluated_anyway(planned: Plan) -> None:
    best = {(run.name, run.drafts): run.folder.name for run in planned.evaluated if run.part == "best_of"}
    assert best == {("sweet", 1): "base", ("zero", 1): "base", ("sweet", 4): "sweet-4", ("zero", 4): "zero-4"}
    assert option(planned, "seed-0/best_of/sweet-4", "--best-of") == "4"


def test_a_smaller_study_learns_from_a_part_of_the_same_dialogues(planned: Plan) -> None:
    names = [stage.name for stage in planned.stages if stage.name.startswith("seed-0/sizes/1/")]
    assert "seed-0/sizes/1/candidates" not in names  # they are selected
    assert option(planned, "seed-0/sizes/1/policies/dpo", "--episodes").endswith("sizes/1/episodes.jsonl")
    assert len([run for run in planned.evaluated if run.part == "sizes" and run.seed == 0]) == 4


def test_a_part_may_have_the_first_seeds_alone(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(output=tmp_path / "run").replace("[sizes]", "[sizes]\nseeds = 1"))
    runs = plan(load_study(path)).evaluated
    assert {run.seed for run in runs if run.part == "sizes"} == {0}
    assert {run.seed for run in runs if run.part == "best_of"} == {0, 1}


def test_a_method_that_starts_from_another_waits_for_its_policy_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    text = STUDY.format(output=tmp_path / "run")
    path.write_text(text.replace('algorithm = "dpo"', 'algorithm = "dpo"\ninit_from = "rft"'))
    planned = plan(load_study(path))
    written: set[Path] = set()
    for stage in planned.stages:
        if stage.name.endswith("policies/dpo"):
            start = stage.output.with_name("rft")
            assert option(planned, stage.name, "--model") == str(start)
            assert start in written
            assert str(start) in stage.inputs
        written.update(stage.writes)
    # A part that is not about the first method trains it, and does not evaluate it.
    names = {stage.name for stage in planned.stages}
    assert {"seed-0/sizes/1/policies/rft", "seed-1/off_policy/policies/rft"} < names
    assert "seed-0/sizes/1/evaluations/rft" not in names


def test_another_model_learns_from_the_agent_s_dialogues_with_its_own_critic_and_candidates(
    planned: Plan,
) -> None:
    name = "seed-0/off_policy"
    assert option(planned, f"{name}/policies/dpo", "--model") == "mini-large"
    assert option(planned, f"{name}/policies/dpo", "--episodes").endswith("seed-0/episodes.jsonl")
    assert option(planned, f"{name}/candidates", "--agent") == "mini-large"
    assert option(planned, f"{name}/critics/sweet", "--model") == "mini-large"
    assert option(planned, f"{name}/critics/sweet", "--pairs").endswith("seed-0/pairs.jsonl")
    assert option(planned, f"{name}/ranked/sweet", "--critic").endswith("off_policy/critics/sweet")
    assert option(planned, f"{name}/evaluations/base", "--agent") == "mini-large"


def test_values_are_found_once_and_every_critic_of_every_seed_is_held_against_them(planned: Plan) -> None:
    names = [stage.name for stage in planned.stages]
    assert [name for name in names if name.startswith("credit/")] == [
        "credit/episodes",
        "credit/candidates",
        "credit/values",
    ]
    assert len(planned.ranked) == 4
    assert option(planned, "seed-1/credit/sweet", "--critic").endswith("seed-1/critics/sweet")


def test_every_command_of_a_study_takes_the_options_that_it_is_given(planned: Plan) -> None:
    commands: Any = typer.main.get_command(app)
    for stage in planned.stages:
        command, arguments = commands, list(stage.arguments)
        while isinstance(command, TyperGroup):
            command = command.commands[arguments.pop(0)]
        assert command.make_context(stage.name, arguments).params


@pytest.mark.parametrize("name", ["quickstart", "quickstart_fast", "mini_paper"])
def test_the_studies_that_ship_can_be_planned_with_any_seed(name: str) -> None:
    study = load_study(CHECKOUT / "recipes" / f"{name}.toml", ["seed=1234"])
    first = plan(study).stages[0]
    assert first.name.startswith("seed-1234/")
    assert any(word.endswith(":1234") for word in first.arguments)
