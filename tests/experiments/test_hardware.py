from pathlib import Path
from typing import Any

import msgspec
import pytest

from conftest import CHECKOUT
from sweetrl.errors import StageError
from sweetrl.experiments import hardware
from sweetrl.experiments.checks import check
from sweetrl.experiments.estimates import cost
from sweetrl.experiments.hardware import GIB, TrainingPlan, processes_of
from sweetrl.experiments.pipeline import stages
from sweetrl.settings import Recipe, load_experiment


def recipe(name: str = "backend_8b", *changes: str) -> Recipe:
    loaded = load_experiment(CHECKOUT / "recipes" / f"{name}.toml", list(changes), lambda _: None)
    assert isinstance(loaded, Recipe)
    return loaded


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would be simulated; every answer is 75 GiB."""
    asked: list[dict[str, Any]] = []

    def answer(step: bytes) -> int:
        asked.append(msgspec.json.decode(step))
        return 75 * GIB

    monkeypatch.setattr(hardware, "_simulated", answer)
    return asked


@pytest.mark.parametrize(
    ("launcher", "found"),
    [
        ((), (1, 1)),
        (("torchrun", "--nproc_per_node", "8"), (1, 8)),
        (("torchrun", "--nnodes=2", "--nproc-per-node=4"), (2, 4)),
        (("torchrun", "--nproc_per_node", "gpu"), (1, 1)),
    ],
)
def test_machines_and_processes_are_read_off_the_words_of_torchrun(
    launcher: tuple[str, ...], found: tuple[int, int]
) -> None:
    assert processes_of(launcher) == found


def test_what_is_simulated_is_what_the_recipe_trains(simulated: list[dict[str, Any]]) -> None:
    known = recipe()
    assert known.critic is not None
    assert TrainingPlan(known, known.critic, "critic").gpu_bytes() == 75 * GIB
    [step] = simulated
    assert (step["processes"], step["shard"], step["model"]["num_hidden_layers"]) == (8, True, 32)
    assert step["settings"]["method"] == "critic"
    assert step["settings"]["max_tokens"] == 16384
    assert step["settings"]["gradient_checkpointing"]


def test_no_context_is_longer_than_what_the_model_reads(simulated: list[dict[str, Any]]) -> None:
    known = recipe("backend_8b", "estimate.model.max_position_embeddings=2048")
    assert known.critic is not None
    TrainingPlan(known, known.critic, "critic").gpu_bytes()
    assert simulated[0]["settings"]["max_tokens"] == 2048


def test_a_step_that_does_not_fit_its_gpu_is_refused(simulated: list[dict[str, Any]]) -> None:
    def about_memory(known: Recipe) -> list[str]:
        problems = check(stages(known), [known], known.servers, endpoints=False)
        return [each.text for each in problems if "GiB on each GPU" in each.text and each.fatal]

    refused = about_memory(recipe())
    assert [text.partition(":")[0] for text in refused] == ["critic", "policy"]
    assert "takes 75 GiB on each GPU, but a h100-80gb has 72" in refused[0]
    assert about_memory(recipe("backend_8b", "estimate.gpu=h200-141gb")) == []
    assert simulated


def test_an_unknown_gpu_is_named_with_those_that_are_known() -> None:
    known = recipe("backend_8b", "estimate.gpu=h1000")
    problems = check(stages(known), [known], known.servers, endpoints=False)
    assert any("there is no 'h1000'; there are a100-40gb" in each.text for each in problems)


def test_the_dry_run_has_memory_and_disk_of_each_training(simulated: list[dict[str, Any]]) -> None:
    known = recipe("one_gpu")
    [train] = [stage for stage in stages(known) if stage.name == "train-critic"]
    numbers = cost(known, train).numbers
    assert numbers["gpu_gib"] is None  # adapters are not simulated
    # Three checkpoints of adapters, and the finished model in single precision.
    assert numbers["disk_gib"] == pytest.approx((3 * 12 * 0.02 + 4) * 1.54e9 / GIB)
    assert numbers["host_gib"] == pytest.approx(3 + 4 * 1.54e9 / GIB)
    assert simulated == []


def test_without_a_gpu_in_the_recipe_nothing_is_simulated(simulated: list[dict[str, Any]]) -> None:
    known = recipe("laptop")
    assert known.critic is not None
    assert TrainingPlan(known, known.critic, "critic").gpu_bytes() is None
    assert simulated == []


def test_sharding_over_more_machines_takes_no_more_memory_of_each(simulated: list[dict[str, Any]]) -> None:
    one = recipe("backend_8b")
    assert one.critic is not None
    launcher = ("torchrun", "--nnodes", "8", "--nproc_per_node", "8")
    many = msgspec.structs.replace(one.critic, launcher=launcher)
    demands = [TrainingPlan(one, section, "critic").demand() for section in (one.critic, many)]
    assert demands[0].host == demands[1].host
    assert [step["processes"] for step in simulated] == [8, 64]


def test_a_failed_simulation_is_one_line() -> None:
    with pytest.raises(StageError, match="could not be simulated") as caught:
        hardware._simulated(b"{}")
    assert "\n" not in str(caught.value)


def test_a_failed_simulation_is_a_warning_and_leaves_the_peak_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: bytes) -> int:
        raise StageError("could not be simulated")

    monkeypatch.setattr(hardware, "_simulated", fail)
    known = recipe()
    assert known.critic is not None
    assert TrainingPlan(known, known.critic, "critic").demand().gpu is None
    problems = check(stages(known), [known], known.servers, endpoints=False)
    assert [each.fatal for each in problems if "simulated" in each.text] == [False, False]


def test_configurations_are_read_from_the_folder_of_a_model(tmp_path: Path) -> None:
    from sweetrl.experiments.model_size import configuration_of

    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert configuration_of(str(tmp_path)) == {"model_type": "llama"}
    assert configuration_of(str(tmp_path / "none")) == {}
