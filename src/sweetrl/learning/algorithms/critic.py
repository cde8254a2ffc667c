"""The first stage of SWEET-RL: a critic that learns which turns earn the reward, with the reference in sight.

advantage    the model's own log-ratios, by the Bradley-Terry loss on pairs of dialogues (the paper's)
regression   a head that scores turns, by the same loss
value        a head that predicts success after each turn, from the outcome of each dialogue
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl.errors import UsageError
from sweetrl.learning.algorithm import Algorithm, Input, Records
from sweetrl.learning.settings import CriticKind

if TYPE_CHECKING:
    from torch import Tensor

    from sweetrl.learning.batches import TokenBatch
    from sweetrl.learning.checkpoints import TrainingCard
    from sweetrl.learning.datasets import Dataset, Encoding
    from sweetrl.learning.objectives import Objective, Outcome
    from sweetrl.learning.settings import TrainingSettings


def examples(records: Records, encoding: "Encoding") -> "Dataset":
    """Pairs of dialogues or, if verdicts are given, the dialogues that were scored."""
    from sweetrl.learning.datasets import dialogue_pairs, scored_dialogues

    if records.verdicts is None:
        return dialogue_pairs(records.pairs, records.episodes, encoding, records.tasks)
    return scored_dialogues(records.episodes, records.verdicts, encoding, records.tasks or {})


def objective(settings: "TrainingSettings") -> "Objective":
    """The loss of a critic of the configured kind."""
    from sweetrl.learning.objectives import Preference

    if settings.kind is CriticKind.ADVANTAGE:
        return Preference(settings, settings.normalisation)
    return value if settings.kind is CriticKind.VALUE else regression


def regression(model: Any, batch: "TokenBatch") -> "Outcome":
    """The Bradley-Terry loss of each pair, on the summed scores of the turns."""
    from sweetrl.learning import losses
    from sweetrl.learning.heads import turn_scores
    from sweetrl.learning.objectives import Outcome, detached, dialogues_of, pair_metrics

    found = turn_scores(model, batch, CriticKind.REGRESSION)
    scores = losses.sum_by(dialogues_of(batch), found, 2 * len(batch.weights))
    chosen, rejected = scores.view(-1, 2).unbind(1)
    preference = losses.bradley_terry(chosen, rejected, beta=1.0)
    return Outcome(preference, detached(pair_metrics(chosen, rejected)))


def value(model: Any, batch: "TokenBatch") -> "Outcome":
    """The loss of each example: the mean over its dialogues, one or two, and over the turns of each."""
    from sweetrl.learning import losses
    from sweetrl.learning.batches import CHOSEN
    from sweetrl.learning.heads import turn_scores
    from sweetrl.learning.objectives import Outcome, detached, dialogues_of

    found = turn_scores(model, batch, CriticKind.VALUE)
    success = batch.sides == CHOSEN
    number, dialogues = 2 * len(batch.weights), dialogues_of(batch)
    turns = losses.sum_by(dialogues, found.new_ones(len(found)), number)

    def mean(of_turns: "Tensor") -> "Tensor":
        of_dialogues = losses.sum_by(dialogues, of_turns, number) / turns.clamp(min=1)
        there = (turns > 0).view(-1, 2).sum(1)
        return of_dialogues.view(-1, 2).sum(1) / there

    right = ((found > 0) == success).to(found.dtype)
    return Outcome(mean(losses.value_bce(found, success)), detached({"accuracy": mean(right)}))


def has_head(settings: "TrainingSettings") -> bool:
    """Whether a score head is trained."""
    return settings.kind is not CriticKind.ADVANTAGE


def check(settings: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Value functions learn from verdicts or pairs, the others from pairs; only regression critics see pages."""
    kind, pairs, verdicts = settings["kind"] or CriticKind.ADVANTAGE, "pairs" in given, "verdicts" in given
    if kind != CriticKind.VALUE and (verdicts or not pairs):
        raise UsageError(f"a critic of kind {kind} learns from pairs of dialogues; give --pairs alone")
    if pairs == verdicts:
        raise UsageError("a value function learns from the outcome of each dialogue; give --verdicts")
    if settings["vision"] and kind != CriticKind.REGRESSION:
        raise UsageError("--vision is for critics with a head on all tokens; give --kind regression too")
    if settings["vision"] and settings["no_reference"]:
        raise UsageError("a critic that sees is shown the reference; leave out --vision or --no-reference")


def finish(folder: Path, card: "TrainingCard") -> None:
    """Make the folder one that `--critic` takes."""
    from sweetrl.learning.critic_cards import EVEN_CHANCE, CriticCard, write_critic_card

    settings = card.settings
    write_critic_card(
        folder,
        CriticCard(
            kind=settings.kind,
            normalisation=settings.normalisation,
            beta=settings.beta,
            reference=None if has_head(settings) else card.model,
            plain_reference=settings.plain_reference,
            privileged=card.privileged_prompt,
            system=card.system,
            max_tokens=settings.max_tokens,
            start=EVEN_CHANCE if card.success_rate is None else card.success_rate,
            vision=settings.vision,
        ),
    )


ALGORITHM = Algorithm(
    name="critic",
    help="Learn which turns earn the reward, with the reference in sight.",
    label="Turn-wise critic ({kind})",
    reads={
        "pairs": Input("Pairs of dialogues, from `sweetrl pairs`.", required=False),
        "verdicts": Input("Verdicts on the dialogues, for --kind value, in place of pairs.", required=False),
        "episodes": Input("The dialogues."),
        "tasks": Input("The tasks, with their references."),
    },
    examples=examples,
    objective=objective,
    takes=("kind", "normalisation", "vision", "no_reference", "plain_reference", "beta", "nll_weight"),
    compares=lambda settings: not has_head(settings),
    has_head=has_head,
    privileged=True,
    check=check,
    finish=finish,
)
