"""How the records of a run become tokens: the tokenizer or processor of a model, and the encoding made with it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sweetrl.learning.critic_cards import tell_secret
from sweetrl.learning.datasets import Encoding
from sweetrl.learning.loading import load_config, load_tokenizer
from sweetrl.learning.pictures import load_pictures
from sweetrl.learning.rows import can_branch
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.learning.vision import VisionEncoder, VisionEncoding
from sweetrl.prompts import Prompt
from sweetrl.types import Task

Picture = Callable[[Task], Path]
"""The path of the picture of a task's reference."""


def open_encoding(
    model: str, max_tokens: int, system: str, prompt: Prompt | None, picture: Picture | None
) -> tuple[Any, Encoding]:
    """The tokenizer, or the processor of a model that sees, and how records are encoded with it.

    `prompt` is the text around the hidden information; None hides it.
    """
    if picture is not None and prompt is not None:
        pictures = load_pictures(model)
        encoder = VisionEncoder(pictures, max_tokens=max_tokens)
        text = prompt.render()
        return pictures.processor, VisionEncoding(encoder, system, lambda _: text, picture=picture)
    tokenizer = load_tokenizer(model)
    return tokenizer, Encoding(
        DialogueEncoder(tokenizer, max_tokens=max_tokens),
        system=system,
        privileged=None if prompt is None else partial(tell_secret, prompt),
        branch=can_branch(load_config(model)),
    )
