"""Requests to chat models and their replies."""

from typing import Literal

from msgspec import Struct


class Sampling(Struct, frozen=True, kw_only=True):
    """How a chat model draws its reply."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    """Upper bound of new tokens (paper, section 5)."""
    stop: tuple[str, ...] = ()


class Usage(Struct, frozen=True):
    """Tokens that a request took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(Struct, frozen=True, kw_only=True):
    """One sampled reply of a chat model."""

    text: str
    finish: Literal["stop", "length"]
    usage: Usage = Usage()
    """For a request with several samples, the prompt is counted on the first one only."""
    logprobs: tuple[float, ...] | None = None
    """Log-probability of each generated token, where the model offers it."""
