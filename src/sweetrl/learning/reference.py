"""Log-probabilities under the frozen seed model: computed once, kept on disk by what they were computed of.

A file belongs to one model, named by its weights; a line is one sequence, named by its tokens and turns. Lines
are written whole, after each pass over the model, so that an interrupted run loses little and a changed
dialogue, template or model is never given the numbers of another.
"""

import contextlib
import hashlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct

from sweetrl.learning.batches import Example, collate
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.tokens import EncodedSequence
from sweetrl.records import unreadable, unwritable

Sums = tuple[float, ...]
"""Summed log-probabilities of the turns of one sequence, in the order of their numbers."""


class _Line(Struct, frozen=True):
    key: str
    sums: Sums


def reference_logprobs(
    model: Any, sequences: Sequence[EncodedSequence], *, tokens_per_pass: int, folder: Path | None = None
) -> list[Sums]:
    """What `model` gives to each turn of each sequence; with a `folder`, only what is not there is computed."""
    keys = [sequence_key(sequence) for sequence in sequences]
    path = None if folder is None else folder / f"{model_digest(model)}.jsonl"
    known = {} if path is None else _read(path)
    missing = {key: each for key, each in zip(keys, sequences, strict=True) if key not in known}
    for some in _passes(missing, tokens_per_pass):
        found = dict(zip(some, _compute(model, [missing[key] for key in some]), strict=True))
        known |= found
        if path is not None:
            _append(path, found)
    return [known[key] for key in keys]


def sequence_key(sequence: EncodedSequence) -> str:
    """A name for the content of a sequence."""
    content = hashlib.blake2b(array("q", sequence.ids).tobytes(), digest_size=16)
    content.update(array("q", sequence.turns).tobytes())
    return content.hexdigest()


def model_digest(model: Any) -> str:
    """A name for the weights of a model and the numbers they are held in."""
    content = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(model.state_dict().items()):
        content.update(f"{name} {weight.dtype} {tuple(weight.shape)}\n".encode())
        content.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return content.hexdigest()


def _passes(missing: dict[str, EncodedSequence], tokens_per_pass: int) -> Iterator[list[str]]:
    """Keys of sequences of similar length, as many as fit into a pass."""
    some: list[str] = []
    for key in sorted(missing, key=lambda key: -len(missing[key].ids)):
        if some and (len(some) + 1) * len(missing[some[0]].ids) > tokens_per_pass:
            yield some
            some = []
        some.append(key)
    if some:
        yield some


@torch.no_grad()
def _compute(model: Any, sequences: list[EncodedSequence]) -> list[Sums]:
    examples = [Example(str(index), (sequence,)) for index, sequence in enumerate(sequences)]
    batch = collate(examples, pad=0).to(model.device)
    sums = turn_logprobs(model, batch).sums.tolist()
    numbers = iter(sums)
    return [tuple(next(numbers) for _ in example.spans) for example in examples]


def _read(path: Path) -> dict[str, Sums]:
    """The lines of a file; one that an interruption broke off is computed again."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unreadable(path, error) from error
    decoder = msgspec.json.Decoder(_Line)
    known = {}
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError):
            entry = decoder.decode(line)
            known[entry.key] = entry.sums
    return known


def _append(path: Path, found: dict[str, Sums]) -> None:
    lines = b"".join(msgspec.json.encode(_Line(key, sums)) + b"\n" for key, sums in found.items())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # The first line break ends what an interruption may have left.
            file.write(b"\n" + lines)
    except OSError as error:
        raise unwritable(path, error) from error
