"""Every loss from records to number, against a computation that shares no code with the package.

The other side renders each turn with the chat template, one at a time, runs the network on it alone, takes the
softmax in NumPy and does the sums of the paper's section 4. Nothing is shared, branched, packed or cached there.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from transformers import LlamaForCausalLM

from learning.chat_templates import END_OF_TURN, TEMPLATES, tokenizer_with
from learning.stored_records import Records
from models.tiny_llama import tiny_config
from sweetrl.learning.algorithms import algorithm_of, objective
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.datasets import (
    Dataset,
    Encoding,
    dialogue_pairs,
    scored_dialogues,
    successful_dialogues,
    turn_pairs,
)
from sweetrl.learning.heads import add_score_head
from sweetrl.learning.reference import reference_logprobs
from sweetrl.learning.settings import CriticKind, Normalisation, TrainingSettings
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.types import Episode, Message

RECORDS = Records(count=3)
SYSTEM = "Be kind."
TOLD = "The solution is {}."
PAIRS = {"beta": 0.3, "nll": 0.2}
three_templates = pytest.mark.parametrize("template", ["headers and trims", "keeps all", "thinks"])


def network(seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = tiny_config(vocab_size=410, max_position_embeddings=1024, initializer_range=0.1)
    return LlamaForCausalLM(config).eval()


POLICY, SEED_MODEL = network(1), network(0)


class ByHand:
    """Log-probabilities and head scores of single turns under one chat template."""

    def __init__(self, template: str) -> None:
        self.tokenizer = tokenizer_with(TEMPLATES[template])
        self.end = self.tokenizer.convert_tokens_to_ids(END_OF_TURN[template])

    def tokens(self, history: Sequence[Message], output: str, told: str | None) -> tuple[list[int], int]:
        """The tokens up to the end of a turn, and how many of them are the agent's."""
        chat = [{"role": str(each.role), "content": each.text} for each in history]
        if told is not None:
            chat[0]["content"] = f"{TOLD.format(told)}\n\n{chat[0]['content']}"
        chat = [{"role": "system", "content": SYSTEM}, *chat]
        prompt = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        before = self.tokenizer.encode(prompt, add_special_tokens=False)
        said = [*self.tokenizer.encode(output, add_special_tokens=False), self.end]
        return before + said, len(said)

    def logprobs(self, model, history, output, told=None) -> np.ndarray:
        ids, said = self.tokens(history, output, told)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double().numpy()[:-1]
        logits -= logits.max(axis=1, keepdims=True)
        log_softmax = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return log_softmax[np.arange(len(ids) - 1), ids[1:]][-said:]

    def turns(self, model, episode: Episode, told: str | None = None) -> list[np.ndarray]:
        return [
            self.logprobs(model, episode.history(at), turn.output, told)
            for at, turn in enumerate(episode.turns)
        ]

    def ratios(self, episode: Episode, told: str | None = None) -> list[np.ndarray]:
        both = (self.turns(model, episode, told) for model in (POLICY, SEED_MODEL))
        return [ours - theirs for ours, theirs in zip(*both, strict=True)]

    def head(self, model, kind: CriticKind, episode: Episode, told: str) -> list[float]:
        """The head's number for each turn: on the last token, or on the mean over all tokens up to it."""
        scores = []
        for at, turn in enumerate(episode.turns):
            ids, _ = self.tokens(episode.history(at), turn.output, told)
            with torch.no_grad():
                hidden = model.model(torch.tensor([ids])).last_hidden_state[0].double().numpy()
            state = hidden[-1] if kind is CriticKind.VALUE else hidden.mean(axis=0)
            weight, bias = (each.detach().double().numpy() for each in model.score_head.parameters())
            scores.append(float(state @ weight[0] + bias[0]))
        return scores


def soft(margin: float) -> float:
    """-log sigmoid."""
    return float(np.log1p(np.exp(-margin)))


def mean_nll(turns: Sequence[np.ndarray]) -> float:
    return float(-np.concatenate(turns).mean())


def encoding(by_hand: ByHand, *, told: bool = False) -> Encoding:
    return Encoding(
        DialogueEncoder(by_hand.tokenizer, max_tokens=1000),
        system=SYSTEM,
        privileged=(lambda task: TOLD.format(task.secret.reference)) if told else None,
        branch=True,
    )


def found(data: Dataset, model, **settings) -> dict[str, float]:
    """What the package minimises, all examples in one pass."""
    examples = data.examples
    options = TrainingSettings(**settings)
    if algorithm_of(options).compares(options):
        sums = reference_logprobs(SEED_MODEL, examples, tokens_per_pass=4096)
        examples = [
            Example(each.id, each.chosen, each.rejected, group=each.group, branch=each.branch, reference=own)
            for each, own in zip(examples, sums, strict=True)
        ]
    with torch.no_grad():
        losses = objective(options)(model, collate(examples, pad=0)).losses.tolist()
    return dict(zip((each.id for each in examples), losses, strict=True))


close = partial(pytest.approx, abs=1e-4, rel=1e-4)


@three_templates
def test_rejection_fine_tuning(template: str) -> None:
    by_hand = ByHand(template)
    data = successful_dialogues(RECORDS.episodes, RECORDS.verdicts, encoding(by_hand))
    expected = {
        each.id: mean_nll(by_hand.turns(POLICY, each))
        for each in RECORDS.episodes.values()
        if each.attempt == 0
    }
    assert found(data, POLICY, algorithm="rft") == close(expected)


@three_templates
def test_multi_turn_dpo(template: str) -> None:
    by_hand = ByHand(template)
    expected = {}
    for pair in RECORDS.pairs:
        chosen, rejected = (RECORDS.episodes[each] for each in (pair.chosen, pair.rejected))
        margin = sum(map(np.sum, by_hand.ratios(chosen))) - sum(map(np.sum, by_hand.ratios(rejected)))
        expected[pair.id] = soft(0.3 * margin) + 0.2 * mean_nll(by_hand.turns(POLICY, chosen))
    data = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, encoding(by_hand))
    assert found(data, POLICY, algorithm="dpo", **PAIRS) == close(expected)


def dialogue_advantage(turns: Sequence[np.ndarray], normalisation: Normalisation) -> float:
    match normalisation:
        case Normalisation.TURN_MEAN:
            return sum(float(turn.mean()) for turn in turns)
        case Normalisation.DIALOGUE_MEAN:
            return float(np.concatenate(turns).mean())
        case Normalisation.NONE:
            return float(np.concatenate(turns).sum())


@three_templates
@pytest.mark.parametrize("normalisation", list(Normalisation))
def test_the_critic_that_sees_the_reference(template: str, normalisation: Normalisation) -> None:
    by_hand = ByHand(template)
    expected = {}
    for pair in RECORDS.pairs:
        told = RECORDS.tasks[pair.task_id].secret.reference
        chosen, rejected = (RECORDS.episodes[each] for each in (pair.chosen, pair.rejected))
        better, worse = (
            dialogue_advantage(by_hand.ratios(each, told), normalisation) for each in (chosen, rejected)
        )
        nll = mean_nll(by_hand.turns(POLICY, chosen, told))
        expected[pair.id] = soft(0.3 * better - 0.3 * worse) + 0.2 * nll
    data = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, encoding(by_hand, told=True), RECORDS.tasks)
    losses = found(data, POLICY, algorithm="critic", normalisation=normalisation, **PAIRS)
    assert losses == close(expected)


@three_templates
def test_turn_wise_dpo_with_answers_to_imitate(template: str) -> None:
    by_hand = ByHand(template)
    expected = {}
    for pair in RECORDS.turn_pairs:
        better, worse = (
            by_hand.logprobs(POLICY, pair.history, output)
            - by_hand.logprobs(SEED_MODEL, pair.history, output)
            for output in (pair.chosen, pair.rejected)
        )
        nll = mean_nll([by_hand.logprobs(POLICY, pair.history, pair.chosen)])
        expected[pair.id] = soft(0.3 * better.sum() - 0.3 * worse.sum()) + 0.2 * nll
    successes = [each for each in RECORDS.episodes.values() if each.attempt == 0]
    for each in successes:
        expected[f"{each.id} answer"] = 0.7 * mean_nll(by_hand.turns(POLICY, each)[-1:])
    data = turn_pairs(RECORDS.turn_pairs, encoding(by_hand), successes)
    assert found(data, POLICY, algorithm="policy", imitation=0.7, **PAIRS) == close(expected)


def with_head() -> LlamaForCausalLM:
    model = network(2)
    add_score_head(model)
    torch.manual_seed(3)
    torch.nn.init.normal_(model.score_head.weight)
    return model


@three_templates
def test_the_regression_head(template: str) -> None:
    by_hand, model, expected = ByHand(template), with_head(), {}
    for pair in RECORDS.pairs:
        told = RECORDS.tasks[pair.task_id].secret.reference
        better, worse = (
            sum(by_hand.head(model, CriticKind.REGRESSION, RECORDS.episodes[each], told))
            for each in (pair.chosen, pair.rejected)
        )
        expected[pair.id] = soft(better - worse)
    data = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, encoding(by_hand, told=True), RECORDS.tasks)
    assert found(data, model, algorithm="critic", kind=CriticKind.REGRESSION) == close(expected)


@three_templates
def test_the_value_head(template: str) -> None:
    by_hand, model, expected = ByHand(template), with_head(), {}
    for episode in RECORDS.episodes.values():
        told = RECORDS.tasks[episode.task_id].secret.reference
        sign = 1.0 if episode.attempt == 0 else -1.0
        logits = by_hand.head(model, CriticKind.VALUE, episode, told)
        expected[episode.id] = float(np.mean([soft(sign * logit) for logit in logits]))
    data = scored_dialogues(RECORDS.episodes, RECORDS.verdicts, encoding(by_hand, told=True), RECORDS.tasks)
    assert found(data, model, algorithm="critic", kind=CriticKind.VALUE) == close(expected)


def test_the_computation_by_hand_would_notice_another_mask() -> None:
    by_hand = ByHand("keeps all")
    [episode] = [each for each in RECORDS.episodes.values() if each.id == "t1#1"]
    cut = replace(episode, turns=episode.turns[:1])
    assert mean_nll(by_hand.turns(POLICY, episode)) != close(mean_nll(by_hand.turns(POLICY, cut)))
