"""The network behind a local model: loaded for sampling, run on batches of texts of different lengths."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM, DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

from sweetrl.errors import UsageError
from sweetrl.models.kept import kept
from sweetrl.models.local.cache import RaggedCache
from sweetrl.models.local.prefixes import Prefix

GROUPED_ATTENTION = "sweetrl_grouped_sdpa"


def _grouped_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """Attention that does not copy keys and values for each query head that shares them.

    `transformers` copies them whenever there is a mask. On a CPU that takes several times as long as the
    attention itself, and the result is the same to the last bit.
    """
    if attention_mask is None or getattr(module, "num_key_value_groups", 1) == 1:
        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return attended
    output = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, scale=options.get("scaling"), enable_gqa=True
    )
    return output.transpose(1, 2).contiguous(), None


AttentionInterface.register(GROUPED_ATTENTION, _grouped_attention)
AttentionMaskInterface.register(GROUPED_ATTENTION, sdpa_mask)


class Network:
    """A causal language model in evaluation mode."""

    def __init__(self, path: str) -> None:
        self.device = _device()
        self._model = kept(("speaks", path), partial(_load, path, self.device))
        if self.device.type == "cpu" and self._model.config._attn_implementation == "sdpa":
            self._model.set_attn_implementation(GROUPED_ATTENTION)
        self._layers = _plain_layers(path, self._model.config)
        text_config = self._model.config.get_text_config(decoder=True)
        self.window: int | None = getattr(text_config, "max_position_embeddings", None)

    @property
    def weights(self) -> int:
        """Its number of weights."""
        return int(self._model.num_parameters())

    @property
    def end_tokens(self) -> set[int]:
        """Tokens that the checkpoint declares to end a text."""
        declared = self._model.generation_config.eos_token_id
        if declared is None:
            return set()
        return {declared} if isinstance(declared, int) else set(declared)

    def empty_cache(self, max_rows: int) -> RaggedCache:
        """A cache to which rows can be added."""
        return RaggedCache(self._layers, max_rows)

    def read(self, texts: Sequence[Sequence[int]], known: Sequence[Prefix]) -> tuple[Tensor, RaggedCache]:
        """Read texts of which `known` are beginnings: the logits after each, and a cache that holds them.

        The network reads a rectangle: the end of every text, as long as the longest unknown end. So a little
        of what is known is read again, which costs less than reading the texts one by one.
        """
        block = max(len(text) - prefix.length for text, prefix in zip(texts, known, strict=True))
        used = [_shortened(p, max(len(t) - block, 0)) for t, p in zip(texts, known, strict=True)]
        cache = RaggedCache.holding(used, layers=self._layers, room=block)
        ends = [list(text[prefix.length :]) for text, prefix in zip(texts, used, strict=True)]
        return self.extend(cache, ends), cache

    def extend(self, cache: RaggedCache, ends: Sequence[Sequence[int]]) -> Tensor:
        """Append tokens to each row of a cache; the logits (rows, vocabulary) after them."""
        new = [len(end) for end in ends]
        block = max(new)
        tokens = torch.tensor([[0] * (block - len(end)) + list(end) for end in ends], device=self.device)
        starts = torch.tensor(
            [length - (block - added) for length, added in zip(cache.lengths, new, strict=True)],
            device=self.device,
        )
        positions = (starts[:, None] + torch.arange(block, device=self.device)).clamp(min=0)
        output = self._model(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=cache.mask(new).to(self.device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache.advance(new)
        logits: Tensor = output.logits[:, -1]
        return logits


def _shortened(prefix: Prefix, length: int) -> Prefix:
    return Prefix(length, [(keys[:, :length], values[:, :length]) for keys, values in prefix.layers])


def _device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _load(path: str, device: torch.device) -> Any:
    # Half precision is two hundred times slower than single on a CPU without instructions for it.
    dtype = torch.float32 if device.type == "cpu" else "auto"
    with no_progress_bars():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            path, dtype=dtype, output_loading_info=True, trust_remote_code=False
        )
    model, report = loaded
    if report["missing_keys"]:
        # `transformers` would go on with random numbers in their place.
        some = ", ".join(sorted(report["missing_keys"])[:3])
        raise UsageError(f"hf:{path}: the checkpoint lacks weights of its network, such as {some}")
    return model.to(device).eval()


def _plain_layers(path: str, config: Any) -> int:
    """How many layers keep keys and values; refuses models with another kind of cache."""
    layers = DynamicCache(config=config).layers
    if not layers or not all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers):
        raise UsageError(
            f"hf:{path}: a {config.model_type} model keeps more than keys and values between tokens; "
            f"serve it behind an OpenAI-compatible endpoint and name it as openai:MODEL@URL"
        )
    return len(layers)


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Loading bars would be drawn into the progress display of a run."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()  # type: ignore[no-untyped-call]
