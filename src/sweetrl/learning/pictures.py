"""Pictures as vision-language models read them: tokens in the prompt, and tensors beside it.

Only the processor of an architecture is used: it gives the number of tokens of a picture, their marks, and the inputs
of the vision tower. So any image-text-to-text model of transformers will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoProcessor

from sweetrl.errors import DataError, UsageError, needs_extra, one_line

REMEMBERED_PICTURES = 1024
"""Pictures whose tokens are cached."""
_TEXT = ("input_ids", "attention_mask")
_MARKS = "token_type_ids"
"""Ending of the names of inputs that mark which tokens belong to pictures."""


@dataclass(frozen=True)
class PictureTokens:
    """The tokens of a picture in a prompt."""

    ids: tuple[int, ...]
    marks: dict[str, dict[int, int]]
    """Inputs with one entry per token, besides the tokens themselves: the entries that are not zero, by token."""


class PictureReader:
    """The processor of a vision-language model."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor
        self.tokenizer = processor.tokenizer
        if self.tokenizer.chat_template is None:
            self.tokenizer.chat_template = processor.chat_template
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self._token: str = processor.image_token
        self._placeholder = self._single_token()
        self.tokens = lru_cache(REMEMBERED_PICTURES)(self._tokens)

    @property
    def pad(self) -> int:
        """The token that rows are filled up with."""
        return int(self.tokenizer.pad_token_id or 0)

    def harmless(self, text: str) -> str:
        """A text without anything that could be taken for a picture."""
        return text.replace(self._token, f"{self._token[0]} {self._token[1:]}")

    def expand(self, prompt: Sequence[int], picture: Path) -> list[int]:
        """A prompt with the tokens of the picture in place of the one that its template left for it."""
        if prompt.count(self._placeholder) != 1:
            raise UsageError(
                f"{self.tokenizer.name_or_path}: the chat template has no place for a picture in the user's "
                f"message; use an instruction-tuned vision-language model"
            )
        at = prompt.index(self._placeholder)
        return [*prompt[:at], *self.tokens(picture).ids, *prompt[at + 1 :]]

    def inputs(self, pictures: Sequence[Path], ids: Tensor) -> dict[str, Tensor]:
        """The model's inputs beside the rows of tokens `ids`, each of which shows one of the pictures."""
        read = self._read(pictures)
        beside = {
            name: value for name, value in read.items() if name not in _TEXT and not name.endswith(_MARKS)
        }
        marks = self.tokens(pictures[0]).marks
        return beside | {name: _marked(ids, marks[name]) for name in marks}

    def _single_token(self) -> int:
        found = self.tokenizer.encode(self._token, add_special_tokens=False)
        if len(found) != 1:
            raise UsageError(
                f"{self.tokenizer.name_or_path}: the tokenizer does not know {self._token}; use another model"
            )
        return int(found[0])

    def _tokens(self, picture: Path) -> PictureTokens:
        read = self._read([picture])
        whole = read["input_ids"][0].tolist()
        marks = {
            name: {token: mark for token, mark in zip(whole, value[0].tolist(), strict=True) if mark}
            for name, value in read.items()
            if name.endswith(_MARKS)
        }
        return PictureTokens(tuple(whole), marks)

    def _read(self, pictures: Sequence[Path]) -> dict[str, Tensor]:
        """The processor's output for pictures, each with a text that consists of nothing else."""
        opened = [[_open(path)] for path in pictures]
        read = self.processor(
            text=[self._token] * len(opened),
            images=opened,
            add_special_tokens=False,
            padding=True,
            return_tensors="pt",
        )
        return dict(read)


def load_pictures(path: str) -> PictureReader:
    """The processor of a folder or hub model."""
    try:
        # Pillow is there wherever screenshots are; other backends resample to other pixels.
        processor = AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            path, backend="pil", trust_remote_code=False
        )
    except (OSError, ValueError, ImportError, TypeError) as error:
        reason = one_line(error)[:200]
        raise UsageError(f"{path}: cannot load a processor of pictures from there: {reason}") from error
    if getattr(processor, "image_token", None) is None:
        raise UsageError(f"{path}: has no processor of pictures and text; use a vision-language model")
    return PictureReader(processor)


def _open(path: Path) -> Any:
    with needs_extra("looking at pictures", "browser"):
        from PIL import Image
    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except OSError as error:
        raise DataError(f"cannot read the picture: {error}", path=path) from error


def _marked(ids: Tensor, marks: dict[int, int]) -> Tensor:
    marked = torch.zeros_like(ids)
    for token, mark in marks.items():
        marked[ids == token] = mark
    return marked
