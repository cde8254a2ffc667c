"""Credit learned from the outcomes of the dialogues that it is for; none is valued by a fit that saw its outcome.

Turns are read in two ways: by their words, and by the hidden states of a language model. Which of them is used is
decided by what predicts outcomes best (see `learning/value_probe.py`). The advantage of a turn is by how much it
changes the predicted chance of success.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sweetrl.domains.logged import LoggedDialogue
from sweetrl.errors import UsageError, needs_extra
from sweetrl.evaluation.intervals import area_under_curve
from sweetrl.learning.value_probe import FOLDS, Block, CrossFitted, cross_fit
from sweetrl.types import Message, Metric, TurnCredit, digest

if TYPE_CHECKING:
    from sweetrl.learning.tokens import DialogueEncoder, EncodedCandidates

WORDS = "words"
"""In place of a model: the words of the turns alone, without PyTorch."""
VOCABULARY = 4000
SHORTER = (None, 2000, 1000, 500, 250, 100, 40)
"""To how many characters messages are cut until a turn fits into the model's context."""
LONGEST_CONTEXT = 4096
"""Tokens of a dialogue that are read; more would take long and tell little."""
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class LearnedCredit:
    """Advantages, and how far they can be trusted."""

    credit: tuple[TurnCredit, ...]
    auc: Metric
    """How often a held-out success is ranked above a held-out failure; 0.5 is chance."""
    critic: str
    reads: str
    """Which features the critic used."""


def learn_credit(dialogues: Sequence[LoggedDialogue], model: str = "mini", *, seed: int = 0) -> LearnedCredit:
    """An advantage for each turn, by value functions fitted to the outcomes of other dialogues."""
    states, mark = ([], "") if model == WORDS else model_states(model, dialogues)
    blocks = [word_features(dialogues), *([states] if states else [])]
    success = [each.success for each in dialogues]
    found = cross_fit(blocks, success, _groups(dialogues), seed=seed)
    known = [at for at, each in enumerate(success) if each is not None]
    auc = area_under_curve(found.scores[known], [bool(success[at]) for at in known])
    outcomes = " ".join(f"{each.episode.id} {each.success}" for each in dialogues)
    name = f"learned:{model}@{digest(f'{mark} {outcomes} {seed}')[:8]}"
    return LearnedCredit(tuple(_credit(dialogues, found, name)), auc, name, _reads(found, model))


def _credit(dialogues: Sequence[LoggedDialogue], found: CrossFitted, name: str) -> list[TurnCredit]:
    return [
        TurnCredit(
            episode_id=each.episode.id,
            task_id=each.episode.task_id,
            turn=turn,
            critic=name,
            advantage=advantage,
            dialogue=each.label,
            number=turn + 1,
        )
        for at, each in enumerate(dialogues)
        for turn, advantage in enumerate(found.advantages(at))
    ]


def _groups(dialogues: Sequence[LoggedDialogue]) -> list[str]:
    """What is held out together: dialogues on one task or, where there are few tasks, single dialogues."""
    tasks = {each.task.id for each in dialogues if each.success is not None}
    return [each.task.id if len(tasks) >= 2 * FOLDS else each.episode.id for each in dialogues]


def _reads(found: CrossFitted, model: str) -> str:
    names = ("the words", f"the hidden states of {model}")
    used = [
        f"{name} ({share:.0%} of the fits)" for name, share in zip(names, found.used, strict=False) if share
    ]
    return " and ".join(used) + ("; some read both" if sum(found.used) > 1 else "")


# ---------------------------------------------------------------- words


def word_features(dialogues: Sequence[LoggedDialogue]) -> Block:
    """Which words each turn has, of those that occur in several dialogues but not in all."""
    spoken = [[set(_WORD.findall(turn.said.lower())) for turn in each.episode.turns] for each in dialogues]
    counts = Counter(word for turns in spoken for word in set().union(*turns))
    common = [word for word, count in counts.most_common() if 1 < count < len(dialogues)][:VOCABULARY]
    place = {word: at for at, word in enumerate(sorted(common))}
    block = []
    for turns in spoken:
        features = np.zeros((len(turns), len(place)))
        for row, words in enumerate(turns):
            features[row, [place[word] for word in words if word in place]] = 1.0
        block.append(features)
    return block


# ---------------------------------------------------------------- hidden states


def model_states(model: str, dialogues: Sequence[LoggedDialogue]) -> tuple[Block, str]:
    """The mean hidden state over the tokens of each turn, in its context; and a mark of the model."""
    with needs_extra(f"reading dialogues with {model} (--model {WORDS} needs nothing)", "train"):
        from sweetrl.learning.candidates import candidate_states
        from sweetrl.learning.networks import context_of, load_encoder, load_network
        from sweetrl.learning.reference import model_digest
    path = _path_of(model)
    network = load_network(path)
    encoder = load_encoder(path, min(context_of(network, LONGEST_CONTEXT), LONGEST_CONTEXT))
    block = []
    for each in dialogues:
        turns = [_encoded(encoder, each, turn) for turn in range(len(each.episode.turns))]
        means = [states.continuations[0].mean(0) for states in candidate_states(network, turns)]
        block.append(np.stack([mean.float().cpu().numpy() for mean in means]).astype(np.float64))
    return block, model_digest(network)


def _path_of(model: str) -> str:
    kind, colon, rest = model.partition(":")
    if colon and kind != "hf":
        raise UsageError(
            f"--model {model}: hidden states need the model itself; write hf:PATH_OR_ID, mini or {WORDS}"
        )
    return rest or model


def _encoded(encoder: "DialogueEncoder", each: LoggedDialogue, turn: int) -> "EncodedCandidates":
    """A turn and what came before it, with long messages cut until all of it fits."""
    from sweetrl.learning.tokens import TooLongError

    trouble: Any = None
    for limit in SHORTER:
        history = [Message(message.role, message.text[:limit]) for message in each.episode.history(turn)]
        try:
            return encoder.candidates(history, [each.episode.turns[turn].said[:limit]], name=each.label)
        except TooLongError as error:
            trouble = error
    raise trouble
