"""The tiny models: a tokenizer and a Llama, made from scratch from a seed on the dialogues of `mini_corpora`."""

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch.optim import AdamW, Optimizer
from transformers import LlamaConfig, LlamaForCausalLM

from sweetrl.learning.mini_corpora import ABLE_PROGRAMMING, PAGES, PROGRAMMING, VARIED_PROGRAMMING, Corpus
from sweetrl.learning.mini_tokenizers import AGENT, END, USER
from sweetrl.learning.muon import Muon
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Role, Task

CORPUS_SEED = 1000003
"""Keeps the tasks of the corpus apart from those that users draw with small seeds."""
SHARE_KNOWING = 50
"""Per cent of the dialogues after their reference in which the agent has read it."""
_IGNORED = -100
SORTED_BATCHES = 25
"""Batches whose dialogues are sorted by length together, so that little is padded."""
STRATA = 4
"""Parts of a batch, from short dialogues to long ones: a batch of one length would teach when to stop wrongly."""


@dataclass(frozen=True)
class Size:
    """The shape of a model and how long it learns."""

    width: int
    layers: int
    inner: int
    heads: int
    steps: int
    tasks: int = 24_000
    """Different tasks in its corpus; each pass over them holds new dialogues."""
    batch: int = 48
    matrix_rate: float = 0.014
    """Learning rate of Muon, for the matrices."""
    other_rate: float = 4e-3
    """Learning rate of AdamW, for the embeddings and norms."""
    context: int = 1024
    with_reference: int = 40
    """Percentage of the dialogues that follow their reference."""
    corpus: Corpus = PROGRAMMING
    """The dialogues that it learns from."""


SIZES = {
    "mini": Size(width=128, layers=3, inner=256, heads=4, steps=1400),
    "mini-large": Size(width=192, layers=3, inner=384, heads=6, steps=1400, corpus=ABLE_PROGRAMMING),
    "mini-long": Size(
        width=192,
        layers=4,
        inner=576,
        heads=6,
        steps=2800,
        batch=16,
        corpus=VARIED_PROGRAMMING,
    ),
    "mini-page": Size(width=128, layers=3, inner=256, heads=4, steps=1400, corpus=PAGES),
}


@dataclass(frozen=True)
class Progress:
    """After a step."""

    step: int
    steps: int
    loss: float


def build(
    size: Size,
    folder: Path,
    *,
    name: str,
    seed: int = 0,
    observe: Callable[[Progress], None] = lambda _: None,
    stop_after: int | None = None,
) -> None:
    """Make a model from nothing and write it as a Hugging Face folder.

    On one machine with one number of threads, the same seed gives the same weights. `stop_after` ends the run
    early, on its unchanged schedule.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    tokenizer = size.corpus.tokenizer()
    model = LlamaForCausalLM(_config(size, tokenizer))  # type: ignore[no-untyped-call]
    batches = _batches(tokenizer, size, seed)
    optimisers = _optimisers(model, size)
    with ThreadPoolExecutor(STRATA) as pool:
        steps = stop_after or size.steps
        for step in range(steps):
            loss = _learn(model, next(batches), pool)
            _take_step(model, optimisers, share=_schedule(step, size.steps))
            observe(Progress(step + 1, steps, loss))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    weights = sum(weight.numel() for weight in model.parameters())
    made = _made_by(name, size, seed, stop_after)
    (folder / "README.md").write_text(_card(name, size, weights, made), encoding="utf-8")


def _made_by(name: str, size: Size, seed: int, stop_after: int | None) -> str:
    command = f"sweetrl make-model {name} --seed {seed}"
    if name in SIZES and size.with_reference != SIZES[name].with_reference:
        command += f" --with-reference {size.with_reference}"
    if stop_after is None:
        return f"`{command}`: {size.steps:,} steps of {size.batch} dialogues."
    done = f"{stop_after:,} steps of {size.batch} dialogues, of {size.steps:,} planned"
    return f"`{command} --steps {stop_after}`: {done}."


def _card(name: str, size: Size, weights: int, made: str) -> str:
    about = size.corpus.about.format(told=size.with_reference, knowing=SHARE_KNOWING)
    return f"""---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# {name}

A Llama of {weights:,} weights ({size.layers} layers of width {size.width}) and {size.corpus.tokenizer_name}, \
trained from scratch on scripted dialogues about `{size.corpus.benchmark}` tasks. It exists to make experiments with
multi-turn agents possible on a laptop, and knows nothing else.

- Made by {made}
- Data: {about} Do not use it for anything real.
"""


# ---------------------------------------------------------------- corpus


@dataclass(frozen=True)
class _Document:
    ids: list[int]
    targets: list[int]
    """The tokens to predict: `_IGNORED` in place of every token that cannot be predicted."""


Batch = list[list[_Document]]
"""Parts, each of dialogues of about the same length."""


def _batches(tokenizer: Any, size: Size, seed: int) -> Iterator[Batch]:
    tasks = list(size.corpus.make_tasks("train", size.tasks, CORPUS_SEED))
    encode = _encoder(tokenizer, size)
    passes = 0
    while True:
        order = list(range(len(tasks)))
        rng = random.Random(derive_seed("corpus order", seed, passes))  # noqa: S311  not a secret
        rng.shuffle(order)
        for start in range(0, len(order), size.batch * SORTED_BATCHES):
            chosen = order[start : start + size.batch * SORTED_BATCHES]
            yield from _stratified([encode(tasks[at], passes) for at in chosen], size.batch // STRATA, rng)
        passes += 1


def _stratified(documents: list[_Document], part: int, rng: random.Random) -> Iterator[Batch]:
    ordered = sorted(documents, key=lambda document: len(document.ids))
    parts = [ordered[at : at + part] for at in range(0, len(ordered), part)]
    share = -(-len(parts) // STRATA)
    strata = [parts[at : at + share] for at in range(0, len(parts), share)]
    for stratum in strata:
        rng.shuffle(stratum)
    yield from (list(batch) for batch in zip(*strata, strict=False))


def _encoder(tokenizer: Any, size: Size) -> Callable[[Task, int], _Document]:
    known: dict[str, list[int]] = {}
    end = tokenizer.convert_tokens_to_ids(END)
    openings = {
        Role.USER: tokenizer.convert_tokens_to_ids(USER),
        Role.ASSISTANT: tokenizer.convert_tokens_to_ids(AGENT),
    }

    def message_ids(message: Message) -> list[int]:
        ids = known.get(message.text)
        if ids is None:
            ids = known[message.text] = tokenizer(message.text, add_special_tokens=False)["input_ids"]
        return [openings[message.role], *ids, end]

    def encode(task: Task, number: int) -> _Document:
        told = derive_seed("told", task.id, number) % 100 < size.with_reference
        knows = told and derive_seed("knows", task.id, number) % 100 < SHARE_KNOWING
        _, *rest = size.corpus.dialogue(task, number, knows=knows)
        ids = message_ids(Message(Role.USER, size.corpus.told(task) if told else task.request))
        targets = [_IGNORED] * len(ids)
        for message in rest:
            opening, *said = message_ids(message)
            # Without the reference nobody can know what the collaborator will say.
            foretold = told or message.role is Role.ASSISTANT
            ids += [opening, *said]
            targets += [_IGNORED, *(said if foretold else [_IGNORED] * len(said))]
        return _Document(ids, targets)

    return encode


# ---------------------------------------------------------------- learning


def _config(size: Size, tokenizer: Any) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        intermediate_size=size.inner,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=size.context,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )


def _optimisers(model: Any, size: Size) -> list[Optimizer]:
    named = list(model.named_parameters())
    matrices = [weight for name, weight in named if weight.ndim == 2 and "embed" not in name]
    others = [weight for name, weight in named if weight.ndim != 2 or "embed" in name]
    return [
        AdamW(others, lr=size.other_rate, betas=(0.9, 0.95), weight_decay=0.01),
        Muon(matrices, lr=size.matrix_rate),
    ]


def _schedule(step: int, steps: int) -> float:
    """A short warm-up, a plateau, and a straight way down over the last three fifths."""
    return min(1.0, (step + 1) / 100) * max(0.02, min(1.0, (steps - step) / (steps * 0.6)))


def _learn(model: Any, batch: Batch, pool: ThreadPoolExecutor) -> float:
    """Set the gradients of a batch; the mean surprise at every token that is learned."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    learned = sum(target != _IGNORED for part in batch for document in part for target in document.targets)

    def gradients(part: list[_Document]) -> tuple[float, tuple[Tensor, ...]]:
        loss = _surprise(model, part) / learned
        return float(loss.detach()), torch.autograd.grad(loss, weights)

    # The parts are added up in their order, so that the number of threads changes nothing.
    losses, found = zip(*pool.map(gradients, batch), strict=True)
    for weight, *parts in zip(weights, *found, strict=True):
        weight.grad = torch.stack(parts).sum(0)
    return float(sum(losses))


def _surprise(model: Any, documents: Sequence[_Document]) -> Tensor:
    length = max(len(document.ids) for document in documents)
    ids = torch.zeros(len(documents), length, dtype=torch.long)
    targets = torch.full((len(documents), length), _IGNORED)
    for row, document in enumerate(documents):
        ids[row, : len(document.ids)] = torch.tensor(document.ids)
        targets[row, : len(document.ids)] = torch.tensor(document.targets)
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    learned = targets[:, 1:] != _IGNORED
    logits = linear(hidden[learned], model.lm_head.weight)
    return cross_entropy(logits, targets[:, 1:][learned], reduction="sum")


def _take_step(model: Any, optimisers: Sequence[Optimizer], *, share: float) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("peak", group["lr"])
            group["lr"] = group["peak"] * share
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
