"""Networks that critics read with: loaded, and named by all that could change an advantage."""

from typing import Any

import msgspec
import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

from sweetrl.errors import UsageError, unloadable
from sweetrl.learning.critic_cards import CriticCard
from sweetrl.learning.loading import load_tokenizer
from sweetrl.learning.reference import model_digest
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.models.kept import kept
from sweetrl.models.local.network import GROUPED_ATTENTION, no_progress_bars
from sweetrl.models.shipped import located
from sweetrl.types import digest


def load_network(path: str, *, vision: bool = False, dtype: torch.dtype | None = None) -> Any:
    """A language model for reading, on the GPU if there is one; refuses one with missing weights.

    Two models whose log-probabilities are compared must have one `dtype`; without it, a GPU keeps that of the files.
    """
    return kept(("reads", path, vision, dtype), lambda: _load(path, vision=vision, dtype=dtype))


def _load(path: str, *, vision: bool, dtype: torch.dtype | None) -> Any:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = dtype or (torch.float32 if device.type == "cpu" else "auto")
    kind: Any = AutoModelForImageTextToText if vision else AutoModelForCausalLM
    try:
        with no_progress_bars():
            model, found = kind.from_pretrained(
                located(path), dtype=chosen, output_loading_info=True, trust_remote_code=False
            )
    except (OSError, ValueError, RuntimeError) as error:
        raise unloadable(path, "a language model", error) from error
    if found["missing_keys"]:
        raise UsageError(
            f"{path}: the weights are of another architecture than the {model.config.model_type} that config.json "
            f"names: {sorted(found['missing_keys'])[0]} is missing; give the folder that they were saved to"
        )
    if device.type == "cpu" and not vision and model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(GROUPED_ATTENTION)
    return model.to(device).eval()


def load_encoder(path: str, max_tokens: int) -> DialogueEncoder:
    """The tokenizer of a model, for dialogues of at most `max_tokens`."""
    return DialogueEncoder(load_tokenizer(path), max_tokens=max_tokens)


def context_of(model: Any, unbounded: int) -> int:
    """The model's context length in tokens; `unbounded` if it has no limit."""
    window = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return int(window or unbounded)


def critic_name(label: str, told: CriticCard | str, *models: Any) -> str:
    """A label with a mark that changes whenever an advantage could."""
    parts = [msgspec.json.encode(told).decode(), *map(_digest, models)]
    return f"{label}@{digest(' '.join(parts))[:8]}"


def _digest(model: Any) -> str:
    """The hash of the weights of a model that is only read, computed once: it takes a second per gigabyte."""
    return kept(("mark", id(model)), lambda: model_digest(model))
