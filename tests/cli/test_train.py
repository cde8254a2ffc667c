import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from learning.stored_records import Files, Records

pytest.importorskip("torch")

QUICK = ["--learning-rate", "1e-3", "--batch-size", "4", "--epochs", "2"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Records(6).write(tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def seed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from models.tiny_llama import save_tiny_llama

    return save_tiny_llama(tmp_path_factory.mktemp("seed"))


@pytest.mark.parametrize("method", ["rft", "dpo", "critic", "policy", "kto"])
def test_every_method_leaves_a_finished_model(sweetrl, files: Files, seed_model, tmp_path, method) -> None:
    output = tmp_path / "trained"
    options = ["--model", seed_model, *files.options(method), *QUICK, "-o", output]
    finished = sweetrl("train", method, *options, "--json")
    assert finished.code == 0
    told = json.loads(finished.out)
    assert told["output"] == str(output)
    assert told["metrics"]["loss"] > 0
    card = json.loads((output / "sweetrl.json").read_text())
    assert card["settings"]["method"] == method
    assert card["model"] == str(seed_model)
    assert card["system"] == "Be kind."
    assert (card["privileged_prompt"] is not None) == (method == "critic")
    assert (output / "critic.json").exists() == (method == "critic")
    again = sweetrl("train", method, *options)
    assert again.code == 0
    assert "was finished" in again.err


@pytest.mark.parametrize("method", ["policy", "dpo"])
def test_answers_that_succeeded_can_be_imitated_beside_pairs(
    method, sweetrl, files: Files, seed_model, tmp_path
) -> None:
    options = ["--model", seed_model, *files.options(method), *QUICK]
    outcomes = ["--verdicts", files.verdicts]
    if method == "policy":
        outcomes += ["--episodes", files.episodes]
    imitated, plain = tmp_path / "imitated", tmp_path / "plain"
    assert sweetrl("train", method, *options, "--sft-weight", "1", *outcomes, "-o", imitated).code == 0
    assert sweetrl("train", method, *options, "-o", plain).code == 0
    with_answers, without = (json.loads((each / "sweetrl.json").read_text()) for each in (imitated, plain))
    assert with_answers["examples"] == without["examples"] + 6
    assert sorted(with_answers["data"]) == sorted({*without["data"], "episodes", "verdicts"})
    for wrong in (["--sft-weight", "1"], outcomes):
        finished = sweetrl("train", method, *options, *wrong, "-o", tmp_path / "wrong")
        assert (finished.code, finished.err.count("\n")) == (2, 1)
        assert "--sft-weight" in finished.err


def test_a_blind_critic_is_told_nothing(sweetrl, files: Files, seed_model, tmp_path) -> None:
    options = ["--model", seed_model, *files.options("critic"), *QUICK, "-o", tmp_path / "critic"]
    assert sweetrl("train", "critic", *options, "--blind", "--kind", "value").code == 0
    card = json.loads((tmp_path / "critic" / "critic.json").read_text())
    assert (card["kind"], card["privileged"]) == ("value", None)


def test_a_value_function_learns_from_verdicts_and_starts_from_their_mean(
    sweetrl, files: Files, seed_model, tmp_path
) -> None:
    verdicts = files.verdicts.read_text().splitlines(keepends=True)
    (tmp_path / "some.jsonl").write_text("".join(verdicts[1:]))
    given = ["--episodes", files.episodes, "--tasks", files.tasks, "--agent-prompt", files.prompt]
    options = ["--model", seed_model, *given, *QUICK, "--kind", "value", "-o", tmp_path / "critic"]
    finished = sweetrl("train", "critic", *options, "--verdicts", tmp_path / "some.jsonl")
    assert finished.code == 0, finished.err
    card = json.loads((tmp_path / "critic" / "critic.json").read_text())
    assert (card["kind"], card["start"]) == ("value", pytest.approx(5 / 11))
    trained = json.loads((tmp_path / "critic" / "sweetrl.json").read_text())
    assert sorted(trained["data"]) == ["episodes", "tasks", "verdicts"]


@pytest.mark.parametrize(
    ("kind", "names", "said"),
    [
        ("value", [], "give --verdicts"),
        ("value", ["pairs", "verdicts"], "give --verdicts"),
        ("advantage", ["verdicts"], "a critic of kind advantage learns from pairs of dialogues"),
        ("regression", ["pairs", "verdicts"], "give --pairs alone"),
    ],
)
def test_a_critic_is_given_what_its_kind_learns_from(
    sweetrl, files: Files, seed_model, tmp_path, kind: str, names: list[str], said: str
) -> None:
    given = [word for name in names for word in (f"--{name}", getattr(files, name))]
    options = ["--model", seed_model, "--episodes", files.episodes, "--tasks", files.tasks, *given]
    finished = sweetrl("train", "critic", *options, "--kind", kind, "-o", tmp_path / "critic")
    assert (finished.code, finished.err.count("\n")) == (2, 1)
    assert said in finished.err


def test_another_setting_in_the_same_folder_is_refused(sweetrl, files: Files, seed_model, tmp_path) -> None:
    options = ["--model", seed_model, *files.options("rft"), *QUICK, "-o", tmp_path / "policy"]
    assert sweetrl("train", "rft", *options).code == 0
    finished = sweetrl("train", "rft", *options, "--seed", "1")
    assert finished.code == 2
    assert "was trained with other settings (seed)" in finished.err


def bad(files: Files, tmp_path: Path, case: str, seed_model: Path) -> tuple[list[object], str]:
    """Options of a run that cannot be, and what is said about it."""
    model: object = seed_model
    data = files.options("dpo")
    said = ""
    if case == "pair":
        lines = files.pairs.read_text().replace("t0#1", "t0#9")
        (tmp_path / "pairs.jsonl").write_text(lines)
        data = [*data, "--pairs", tmp_path / "pairs.jsonl"]
        said = "pair t0#0>t0#9: there is no episode t0#9"
    elif case == "model":
        model = tmp_path / "nowhere"
        said = "nowhere: no such folder; give the folder of a model"
    elif case == "template":
        model = shutil.copytree(seed_model, tmp_path / "plain")
        (tmp_path / "plain" / "chat_template.jinja").unlink()
        said = "has no chat template"
    elif case == "architecture":
        model = shutil.copytree(seed_model, tmp_path / "bert")
        config = json.loads((tmp_path / "bert" / "config.json").read_text())
        (tmp_path / "bert" / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
        said = "cannot load a causal language model from there: the architecture t5 is none"
    elif case == "context":
        data = [*data, "--max-tokens", "50"]
        said = "tokens with the request, the context only 50"
    elif case == "folder":
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.tex").write_text("precious")
        said = "is not empty and no training run"
    return ["--model", model, *data], said


@pytest.mark.parametrize("case", ["pair", "model", "template", "architecture", "context", "folder"])
def test_bad_input_is_one_clear_line(sweetrl, files: Files, seed_model, tmp_path, case) -> None:
    options, said = bad(files, tmp_path, case, seed_model)
    finished = sweetrl("train", "dpo", *options, "-o", tmp_path / "out")
    assert finished.code == 2
    assert said in finished.err
    assert finished.err.count("\n") == 1
    assert not (tmp_path / "out" / "sweetrl.json").exists()


def command(files: Files, seed_model: Path, output: Path, *more: object) -> list[str]:
    options = ["--model", seed_model, *files.options("dpo"), *QUICK, "--epochs", "20", "--save-every", "3"]
    return [str(each) for each in ("-m", "sweetrl", "train", "dpo", *options, "-o", output, *more)]


def weights(folder: Path) -> dict[str, object]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors" if folder.is_dir() else folder)


def largest_difference(one: Path, other: Path) -> float:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours)  # type: ignore[operator]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def python(*arguments: str, code: int = 0) -> str:
    ran = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert ran.returncode == code, ran.stderr
    return ran.stderr


def wait_for(path: Path, process: "subprocess.Popen[bytes]") -> None:
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.01)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_weights(files: Files, seed_model, tmp_path) -> None:
    python(*command(files, seed_model, tmp_path / "whole"))
    for checkpoint in ("checkpoint-3", "checkpoint-12"):
        killed = subprocess.Popen(
            [sys.executable, *command(files, seed_model, tmp_path / "parts")],
            env=ENVIRONMENT,
            stderr=subprocess.DEVNULL,
        )
        wait_for(tmp_path / "parts" / "checkpoints" / checkpoint, killed)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        assert not (tmp_path / "parts" / "config.json").exists()
    said = python(*command(files, seed_model, tmp_path / "parts"))
    assert "resuming from checkpoint-" in said
    assert largest_difference(tmp_path / "whole", tmp_path / "parts") == 0.0


def torchrun(*arguments: str) -> None:
    python("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments)


@pytest.fixture(scope="module")
def alone(files: Files, seed_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("alone") / "policy"
    python(*command(files, seed_model, output, "--epochs", "4"))
    return output


@pytest.mark.slow
@pytest.mark.parametrize("shard", [[], ["--shard"]])
def test_two_processes_learn_what_one_does(files: Files, seed_model, tmp_path, alone: Path, shard) -> None:
    together = tmp_path / "together"
    torchrun(*command(files, seed_model, together, "--epochs", "4", *shard))
    assert largest_difference(alone, together) < 1e-5
    ours, theirs = (json.loads((at / "sweetrl.json").read_text())["metrics"] for at in (alone, together))
    assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    assert ours["accuracy"] == theirs["accuracy"]
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(together)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"),
    [("dpo", ["--lora-rank", "4"]), ("critic", ["--kind", "value"])],
    ids=["adapters", "a head"],
)
def test_adapters_and_heads_learn_the_same_on_a_split_model(
    files: Files, seed_model: Path, tmp_path: Path, method: str, options: list[str]
) -> None:
    given = ["--model", seed_model, *files.options(method), *QUICK, *options]
    words = [str(each) for each in ("-m", "sweetrl", "train", method, *given, "-o")]
    python(*words, str(tmp_path / "alone"))
    torchrun(*words, str(tmp_path / "split"), "--shard")
    assert largest_difference(tmp_path / "alone", tmp_path / "split") < 1e-5
    assert largest_difference(seed_model, tmp_path / "split") > 1e-4
    if method == "critic":
        heads = [(tmp_path / name / "score_head.safetensors") for name in ("alone", "split")]
        assert largest_difference(*heads) < 1e-5


FULL_DISK = """
import resource, sys
from sweetrl.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_leaves_no_half_checkpoint(files: Files, seed_model, tmp_path) -> None:
    arguments = command(files, seed_model, tmp_path / "out")[2:]
    said = python("-c", FULL_DISK, *arguments, code=2)
    assert said.splitlines()[-1].startswith(f"error: {tmp_path / 'out'}: no space left; free some")
    assert not list((tmp_path / "out").rglob("*.safetensors"))
    assert not list((tmp_path / "out").glob("checkpoints/*"))
    python(*command(files, seed_model, tmp_path / "out"))


@pytest.mark.slow
def test_an_interrupt_says_how_to_go_on(files: Files, seed_model, tmp_path) -> None:
    process = subprocess.Popen(
        [sys.executable, *command(files, seed_model, tmp_path / "out")],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(tmp_path / "out" / "checkpoints" / "checkpoint-3", process)  # type: ignore[arg-type]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.endswith(" is kept; rerun the same command to resume\n")
