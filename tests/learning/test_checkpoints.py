import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch
from safetensors.torch import save_file

from sweetrl.errors import ConfigError, DataError, UsageError
from sweetrl.learning.algorithms import default_settings
from sweetrl.learning.checkpoints import (
    CARD,
    STAGING,
    RunFolder,
    TrainingCard,
    check_architecture,
    diverged,
    model_card,
    read_training_card,
    readable_save_errors,
    write_training_card,
)


def card(**changes: object) -> TrainingCard:
    settings = default_settings("dpo", **changes)
    return TrainingCard(model="seed", settings=settings, data={"pairs": "abc"}, examples=3, started="now")


def claim(path: Path, wanted: TrainingCard) -> TrainingCard:
    with RunFolder(path) as folder:
        return folder.claim(wanted)


def test_a_new_folder_is_claimed_with_its_card(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new" / "run")
    folder.claim(card())
    assert read_training_card(folder.path) == card()
    assert folder.last_checkpoint() is None


def test_the_same_run_goes_on_with_the_card_that_is_there(tmp_path: Path) -> None:
    claim(tmp_path, card())
    again = msgspec.structs.replace(card(), started="later", versions={"torch": "9"})
    assert claim(tmp_path, again).started == "now"


@pytest.mark.parametrize("harmless", [{"tokens_per_pass": 99}, {"gradient_checkpointing": True}])
def test_memory_may_change_between_runs(tmp_path: Path, harmless: dict[str, object]) -> None:
    claim(tmp_path, card())
    assert claim(tmp_path, card(**harmless)).started == "now"


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (card(beta=0.5), "beta"),
        (msgspec.structs.replace(card(), data={"pairs": "xyz"}), "data pairs"),
        (msgspec.structs.replace(card(), model="other"), "model"),
        (msgspec.structs.replace(card(), system="Hi"), "system prompt"),
    ],
)
def test_another_run_is_refused_by_what_differs(tmp_path: Path, other: TrainingCard, named: str) -> None:
    claim(tmp_path, card())
    with pytest.raises(ConfigError, match=rf"other settings \({named}\)"):
        claim(tmp_path, other)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match="is not empty"):
        claim(tmp_path, card())
    assert not (tmp_path / CARD).exists()


def test_two_runs_do_not_write_one_folder(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as first:
        first.claim(card())
        with pytest.raises(UsageError, match="another process is training"):
            claim(tmp_path, card())
    claim(tmp_path, card())


def test_another_process_of_a_run_learns_only_that_it_is_finished(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).join(card()) == card()
    done = msgspec.structs.replace(card(), started="before", finished="2026")
    write_training_card(tmp_path, msgspec.structs.replace(done, finished=None))
    assert RunFolder(tmp_path).join(card()).started == "now"
    write_training_card(tmp_path, done)
    assert RunFolder(tmp_path).join(card()) == done


def test_the_last_checkpoint_is_that_of_the_most_steps(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for name in ("checkpoint-9", "checkpoint-10", "checkpoint-11.tmp", "other"):
        (folder.checkpoints / name).mkdir(parents=True)
    last = folder.last_checkpoint()
    assert last is not None
    assert last.name == "checkpoint-10"
    folder.prune(1)
    assert sorted(path.name for path in folder.checkpoints.iterdir()) == [
        "checkpoint-10",
        "checkpoint-11.tmp",
        "other",
    ]


@pytest.mark.parametrize(("free", "kept"), [(100, ["1", "2"]), (60, ["2"])])
def test_old_checkpoints_make_room_for_a_new_one_if_the_disk_is_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, kept: list[str]
) -> None:
    folder = RunFolder(tmp_path)
    for step in (1, 2):
        (folder.checkpoints / f"checkpoint-{step}").mkdir(parents=True)

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free + 20 * (2 - len(list(folder.checkpoints.iterdir()))))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    folder.make_room(80)
    assert sorted(path.name for path in folder.checkpoints.iterdir()) == [
        f"checkpoint-{step}" for step in kept
    ]


def test_a_disk_without_room_for_a_checkpoint_is_one_line_and_the_last_one_stays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    (folder.checkpoints / "checkpoint-1").mkdir(parents=True)
    with pytest.raises(UsageError, match="no space left"):
        folder.make_room(1 << 60)
    assert folder.last_checkpoint() is not None


def test_what_an_interrupted_save_left_is_removed(tmp_path: Path) -> None:
    claim(tmp_path, card())
    (tmp_path / STAGING / "checkpoint-3").mkdir(parents=True)
    claim(tmp_path, card())
    assert not (tmp_path / STAGING).exists()


def test_a_model_becomes_loadable_with_its_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    folder.claim(card())
    made = tmp_path / "made"
    made.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (made / name).write_text(name)
    moved = []
    replace = Path.replace

    def record(self: Path, target: Path) -> Path:
        moved.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", record)
    folder.publish(made, card())
    assert set(moved[:2]) == {"model.safetensors", "tokenizer.json"}
    assert moved[2:] == ["config.json", "README.md", CARD]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        RuntimeError("[enforce fail at inline_container.cc:672] . PytorchStreamWriter failed writing file"),
    ],
)
def test_a_full_disk_is_one_line(tmp_path: Path, error: Exception) -> None:
    with (
        pytest.raises(UsageError, match="no space left; free some") as caught,
        readable_save_errors(tmp_path),
    ):
        raise error
    assert "\n" not in str(caught.value)


def test_any_other_error_of_the_libraries_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"), readable_save_errors(tmp_path):
        raise RuntimeError("a bug")


def test_weights_of_another_architecture_are_refused_by_name(tmp_path: Path) -> None:
    save_file({"layer": torch.zeros(2, 3)}, tmp_path / "model.safetensors")
    check_architecture(tmp_path, {"layer": (2, 3), "tied": (1,)})
    with pytest.raises(DataError, match="another architecture: layer is 2x3 there and 2x4 in the model"):
        check_architecture(tmp_path, {"layer": (2, 4)})
    with pytest.raises(DataError, match="layer is 2x3 there and missing in the model"):
        check_architecture(tmp_path, {"head": (2, 3)})


def test_a_run_that_diverged_names_the_last_good_checkpoint(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert "no checkpoint was written yet" in str(diverged(folder, 3, "the loss"))
    (folder.checkpoints / "checkpoint-2").mkdir(parents=True)
    message = str(diverged(folder, 3, "the loss"))
    assert message.startswith("the loss is not a number in step 3; the last good checkpoint is ")
    assert "checkpoint-2" in message


def test_the_model_card_tells_recipe_data_and_metrics() -> None:
    done = msgspec.structs.replace(card(beta=0.25), finished="2026-01-01", metrics={"loss": 0.5})
    text = model_card(done)
    assert text.startswith("---\nbase_model: seed\n")
    for line in ("# Policy by multi-turn DPO", "| beta | 0.25 |", "| pairs | abc |", "| loss | 0.5 |"):
        assert line in text
    assert "Finished 2026-01-01" in text
    assert "Not finished" in model_card(card())


def test_a_folder_without_a_card_is_no_trained_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a model that sweetrl trained"):
        read_training_card(tmp_path)
    write_training_card(tmp_path, card())
    (tmp_path / CARD).write_text("{}")
    with pytest.raises(DataError, match="not a training card"):
        read_training_card(tmp_path)
