"""Models to train: loaded, given adapters or a head, and turned into plain folders at the end."""

from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    PreTrainedModel,
    set_seed,
)
from transformers.distributed.configuration_utils import DistributedConfig

from sweetrl.errors import UsageError, unloadable
from sweetrl.learning.algorithms import algorithm_of
from sweetrl.learning.heads import SCORE_HEAD, add_score_head, save_score_head
from sweetrl.learning.settings import LoraSettings, Precision, TrainingSettings
from sweetrl.models.shipped import located


def load_tokenizer(path: str) -> Any:
    """The tokenizer of a folder or hub model."""
    try:
        return AutoTokenizer.from_pretrained(located(path), trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise unloadable(path, "a tokenizer", error) from error


def load_config(path: str, *, vision: bool = False) -> Any:
    """The configuration of a folder or hub model, with the attention that training uses."""
    known: Any = MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING if vision else MODEL_FOR_CAUSAL_LM_MAPPING
    try:
        config = AutoConfig.from_pretrained(located(path), trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise _unloadable(path, error) from error
    if type(config) not in known:
        raise _unloadable(path, ValueError(f"the architecture {config.model_type} is none"), vision=vision)
    config._attn_implementation = _attention(known[type(config)])
    return config


def _attention(known: Any) -> str:
    """PyTorch's, unless the architecture computes what that does not (Gemma 2 caps the logits of attention)."""
    classes = known if isinstance(known, tuple) else (known,)
    return "sdpa" if all(each._supports_sdpa for each in classes) else "eager"


def longest_context(path: str, wanted: int | None, *, vision: bool = False) -> int:
    """Tokens in the longest sequence: the given number, or the paper's, up to the model's limit."""
    window = getattr(
        load_config(path, vision=vision).get_text_config(decoder=True), "max_position_embeddings", None
    )
    asked = wanted or TrainingSettings(algorithm="").max_tokens
    return asked if window is None else min(asked, window)


def default_precision() -> Precision:
    """The precision for this machine: half precision is hopelessly slow on most CPUs."""
    return Precision.BFLOAT16 if torch.cuda.is_available() else Precision.FLOAT32


def load_model(path: str, settings: TrainingSettings, *, shard: int = 1) -> Any:
    """The model to train, on the CPU; split over `shard` processes by FSDP2 if that is more than one.

    Adapters and heads start at random from the seed of the run.
    """
    set_seed(settings.seed)
    options = {"distributed_config": sharding(shard, settings)} if shard > 1 else {}
    attention = load_config(path, vision=settings.vision)._attn_implementation
    kind: Any = AutoModelForImageTextToText if settings.vision else AutoModelForCausalLM
    try:
        model = kind.from_pretrained(
            located(path),
            dtype=weight_type(settings),
            attn_implementation=attention,
            trust_remote_code=False,
            **options,
        )
    except (OSError, ValueError) as error:
        raise _unloadable(path, error) from error
    return prepared(model, settings)


def prepared(model: Any, settings: TrainingSettings) -> Any:
    """A language model with what the settings train it with: adapters, a head, no dropout."""
    algorithm = algorithm_of(settings)
    has_head = algorithm.has_head(settings)
    if algorithm.compares(settings):
        switch_dropout_off(model)
    if has_head:
        add_score_head(model)
    if settings.lora is not None:
        model = _with_adapters(model, settings.lora, has_head=has_head)
    return model


def switch_dropout_off(model: Any) -> None:
    """Compute without dropout even while training: the log-probabilities of the reference model have none either.

    The configuration keeps its numbers, so that the trained model is saved with them.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name, value in vars(module).items():
            # Attention that PyTorch computes takes the probability from an attribute of its layer.
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)


def sharding(processes: int, settings: TrainingSettings) -> DistributedConfig:
    """How a model is split over processes."""
    return DistributedConfig(
        fsdp_size=processes, fsdp_mixed_precision=settings.precision is Precision.BFLOAT16
    )


def weight_type(settings: TrainingSettings) -> torch.dtype:
    """The data type of the weights."""
    # Frozen weights lose nothing in half precision; trained ones would lose their small updates.
    half = settings.precision is Precision.BFLOAT16 and settings.lora is not None
    return torch.bfloat16 if half else torch.float32


def _with_adapters(model: PreTrainedModel, lora: LoraSettings, *, has_head: bool) -> Any:
    from peft import LoraConfig, TaskType, get_peft_model

    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        target_modules="all-linear",
        exclude_modules=[SCORE_HEAD] if has_head else None,
        modules_to_save=[SCORE_HEAD] if has_head else None,
        task_type=TaskType.CAUSAL_LM,
    )
    return get_peft_model(model, config)


def merge_adapter(path: str, adapter: Path, settings: TrainingSettings, into: Path) -> None:
    """Write the seed model with an adapter worked into its weights as a plain folder."""
    from peft import PeftModel

    bare = load_model(path, replace(settings, lora=None, precision=Precision.FLOAT32))
    merged = PeftModel.from_pretrained(bare, str(adapter)).merge_and_unload()
    save_plain(merged, into)


def save_plain(model: Any, folder: Path, weights: dict[str, Tensor] | None = None) -> None:
    """Write a folder that any library loads; a score head gets a file of its own."""
    weights = model.state_dict() if weights is None else weights
    model.save_pretrained(
        folder, state_dict={name: value for name, value in weights.items() if not name.startswith(SCORE_HEAD)}
    )
    if hasattr(model, SCORE_HEAD):
        save_score_head(model, folder)


def read_weights(folder: Path, *, vision: bool = False) -> dict[str, Tensor]:
    """All weights of a folder by the names of the layers, however many files they are in."""
    weights: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        weights |= load_file(file)
    if vision:
        # Some architectures name layers differently in files and in the model: only the model knows both names.
        model = AutoModelForImageTextToText.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=False
        )
        head = {name: value for name, value in weights.items() if name.startswith(SCORE_HEAD)}
        return {**model.state_dict(), **head}
    return weights


def _unloadable(path: str, error: Exception, *, vision: bool = False) -> UsageError:
    kind = "vision-language" if vision else "causal language"
    return unloadable(path, f"a {kind} model", error)
