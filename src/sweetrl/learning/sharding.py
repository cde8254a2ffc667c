"""Models that are split over the processes of a run (FSDP2).

A checkpoint is written and read in shards, by any number of processes. A finished model is written as a plain
folder, one file at a time.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from transformers.core_model_loading import revert_weight_conversion

from sweetrl.errors import DataError, first_line
from sweetrl.learning.settings import MODEL_FILE_BYTES

SHARDS = "shards"


def is_split(model: Any) -> bool:
    """Whether each process has only a part of the model."""
    return any(isinstance(weight, DTensor) for weight in model.parameters())


def local_part(weight: Tensor) -> Tensor:
    """The part of a weight that this process has."""
    return weight.to_local() if isinstance(weight, DTensor) else weight


def free_gathered_weights(model: Any) -> None:
    """Drop the whole weights that layers keep after a forward pass without a backward pass."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()


def _options(optimiser: Any) -> StateDictOptions:
    """Trained weights only. Flat states fit any number of processes, but not groups without weights, as of adapters."""
    flat = all(group["params"] for group in optimiser.param_groups)
    return StateDictOptions(flatten_optimizer_state_dict=flat, ignore_frozen_params=True, strict=False)


def save_progress(model: Any, optimiser: Any, folder: Path) -> None:
    """Write the trained weights and the optimiser's state, each process its part. All processes call this."""
    weights, state = get_state_dict(model, optimiser, options=_options(optimiser))
    save({"model": weights, "optimizer": state}, checkpoint_id=folder / SHARDS)


def load_progress(model: Any, optimiser: Any, folder: Path) -> None:
    """Read what `save_progress` wrote; each process reads its part, even if the number of processes has changed."""
    options = _options(optimiser)
    weights, state = get_state_dict(model, optimiser, options=options)
    try:
        load({"model": weights, "optimizer": state}, checkpoint_id=folder / SHARDS)
    except (CheckpointException, OSError, RuntimeError) as error:
        raise DataError(
            f"no checkpoint of this model in shards: {_reason(error)}; remove it", path=folder
        ) from None
    set_state_dict(model, optimiser, model_state_dict=weights, optim_state_dict=state, options=options)


def _reason(error: BaseException) -> str:
    """The first line of what went wrong first."""
    failures = [each[0] for each in getattr(error, "failures", {}).values()]
    return first_line((failures or [error])[0])


def save_whole(model: Any, folder: Path, *, without: str, main: bool) -> None:
    """Write a plain folder that any library loads; weights whose name begins with `without` are left out.

    All processes call this, because gathering a weight takes all of them; the `main` one writes.
    """
    left_out = (*(model.all_tied_weights_keys or ()), *(model._keys_to_ignore_on_save or ()))
    found = {
        name: weight
        for name, weight in model.state_dict().items()
        if name not in left_out and not name.startswith(without)
    }
    weights = revert_weight_conversion(model, found)
    files = list(_files(weights))
    names = [f"model-{number:05}-of-{len(files):05}.safetensors" for number in range(1, len(files) + 1)]
    if len(files) == 1:
        names = ["model.safetensors"]
    for name, held in zip(names, files, strict=True):
        whole = {each: _whole(weights[each], keep=main) for each in held}
        if main:
            save_file(whole, folder / name, metadata={"format": "pt"})
    if main:
        _write_configuration(model, folder)
        if len(files) > 1:
            _write_index(folder, weights, dict(zip(names, files, strict=True)))


def _files(weights: dict[str, Tensor]) -> Iterator[list[str]]:
    """The names of the weights of each file."""
    held: list[str] = []
    size = 0
    for name, weight in weights.items():
        if held and size + weight.nbytes > MODEL_FILE_BYTES:
            yield held
            held, size = [], 0
        held.append(name)
        size += weight.nbytes
    yield held


def _whole(weight: Tensor, *, keep: bool) -> Tensor:
    """The whole weight, on the CPU; of a process that does not keep it, its own part."""
    gathered = weight.full_tensor() if isinstance(weight, DTensor) else weight
    return gathered.detach().cpu().contiguous() if keep else local_part(weight)


def _write_configuration(model: Any, folder: Path) -> None:
    model.config.architectures = [type(model).__name__.removeprefix("FSDP")]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    model.config.save_pretrained(folder)
    if model.can_generate():
        model.generation_config.save_pretrained(folder)


def _write_index(folder: Path, weights: dict[str, Tensor], files: dict[str, list[str]]) -> None:
    index = {
        "metadata": {"total_size": sum(weight.nbytes for weight in weights.values())},
        "weight_map": {name: file for file, names in files.items() for name in names},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
