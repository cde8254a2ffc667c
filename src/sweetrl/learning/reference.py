"""Log-probabilities under the frozen seed model: computed once, and cached on disk by a hash of their inputs.

A file belongs to one model, named by its weights and by the precision that it computes in; a line is one sequence,
named by its tokens and turns. Lines are written whole, after each pass over the model, so that an interrupted run
loses little and a changed dialogue, template or model is never given the numbers of another. The processes of a run
share the work, and each writes a file of its own: not every file system lets several append to one.
"""

import contextlib
import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import torch
from accelerate import PartialState  # type: ignore[import-untyped]
from accelerate.utils import broadcast_object_list, gather_object  # type: ignore[import-untyped]
from msgspec import Struct

from sweetrl.learning.batches import BatchSampler, Example, collate
from sweetrl.learning.logprobs import turn_logprobs
from sweetrl.learning.settings import Precision, TrainingSettings
from sweetrl.learning.sharding import free_gathered_weights, is_split, local_part
from sweetrl.learning.tokens import EncodedSequence
from sweetrl.records import record_lines, unreadable, unwritable

Sums = tuple[float, ...]
"""Summed log-probabilities of the turns of one sequence, in the order of their numbers, or of one example."""


class _Line(Struct, frozen=True):
    key: str
    sums: Sums


def reference_logprobs(
    model: Any,
    examples: Sequence[Example],
    *,
    tokens_per_pass: int,
    folder: Path | None = None,
    precision: Precision = Precision.FLOAT32,
) -> list[Sums]:
    """The log-probabilities of the `spans` of each example under `model`; cached in `folder`, if given.

    All processes of a run call this, and each computes its share.
    """
    run = PartialState()
    keys = [[sequence_key(sequence) for sequence in example.sequences] for example in examples]
    stem = "" if folder is None else f"{model_digest(model)}-{precision}"
    # What the main process finds: all must agree on what is missing.
    [known] = broadcast_object_list([{} if folder is None else _read(folder, stem)])
    missing = {
        key: Example(key, (sequence,), group=example.group or example.id, branch=example.branch)
        for example, names in zip(examples, keys, strict=True)
        for key, sequence in zip(names, example.sequences, strict=True)
        if key not in known
    }
    own: dict[str, Sums] = {}
    for some in _passes(list(missing.values()), tokens_per_pass, run):
        found = _compute(model, some, precision)
        own |= found
        if folder is not None:
            _append(
                folder / (f"{stem}.jsonl" if run.is_main_process else f"{stem}.{run.process_index}.jsonl"),
                found,
            )
    for computed in gather_object([own]):
        known |= computed
    return [tuple(chain.from_iterable(known[key] for key in names)) for names in keys]


def with_reference(
    examples: Sequence[Example], model: Any, settings: TrainingSettings, folder: Path, device: torch.device
) -> list[Example]:
    """The examples with what the untrained model gives to each of their turns, from the folder or computed."""
    sums = reference_logprobs(
        model.to(device),
        examples,
        tokens_per_pass=settings.tokens_per_pass,
        folder=folder,
        precision=settings.precision,
    )
    free_gathered_weights(model)
    return [replace(example, reference=each) for example, each in zip(examples, sums, strict=True)]


def sequence_key(sequence: EncodedSequence) -> str:
    """A name for the content of a sequence."""
    content = hashlib.blake2b(array("q", sequence.ids).tobytes(), digest_size=16)
    content.update(array("q", sequence.turns).tobytes())
    return content.hexdigest()


def model_digest(model: Any) -> str:
    """A hash of the weights of a model and of their precision.

    If the model is split over processes, each hashes its own part, so the hash depends on their number too.
    """
    content = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(model.state_dict().items()):
        content.update(f"{name} {weight.dtype} {tuple(weight.shape)}\n".encode())
        held: Any = local_part(weight).detach().cpu().contiguous()
        content.update(held.flatten().view(torch.uint8).numpy())
    if not is_split(model):
        return content.hexdigest()
    return hashlib.blake2b(b"".join(gather_object([content.digest()])), digest_size=16).hexdigest()


def _passes(examples: list[Example], tokens_per_pass: int, run: Any) -> Iterator[list[Example]]:
    """As many examples as fit into a pass, those of a group together; equally many passes for each process."""
    sampler = BatchSampler(
        examples, batch_size=max(1, len(examples)), budget=tokens_per_pass, processes=run.num_processes
    )
    for step in sampler.epoch(0):
        for each in step[run.process_index]:
            yield [examples[index] for index in each.indices]


@torch.no_grad()
def _compute(model: Any, examples: list[Example], precision: Precision) -> dict[str, Sums]:
    """The sums of each, by its id."""
    batch = collate(examples, pad=0).to(model.device)
    half = precision is Precision.BFLOAT16
    with torch.autocast(model.device.type, torch.bfloat16, enabled=half):
        sums = iter(turn_logprobs(model, batch).sums.tolist())
    return {example.id: tuple(next(sums) for _ in example.spans) for example in examples}


def _read(folder: Path, stem: str) -> dict[str, Sums]:
    """The lines of the files of all processes; one that an interruption broke off is computed again."""
    decoder = msgspec.json.Decoder(_Line)
    known = {}
    for path in (folder / f"{stem}.jsonl", *sorted(folder.glob(f"{stem}.*.jsonl"))):
        try:
            lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise unreadable(path, error) from error
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):
                entry = decoder.decode(line)
                known[entry.key] = entry.sums
    return known


def _append(path: Path, found: dict[str, Sums]) -> None:
    lines = b"".join(record_lines(_Line(key, sums) for key, sums in found.items()))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # The first line break ends what an interruption may have left.
            file.write(b"\n" + lines)
    except OSError as error:
        raise unwritable(path, error) from error
