"""TRL: GRPO on whole dialogues with our collaborator and scorer, and our preferences as TRL's datasets.

    benchmark = Benchmark("mini-backend:train:100", "colleague")
    trainer = GRPOTrainer(
        model, train_dataset=prompts(benchmark), rollout_func=DialogueRollout(benchmark), reward_funcs=reward, args=args
    )

One completion is one dialogue: what the agent said, with the replies in between, which are masked out of the loss
(TRL's `env_mask`). A collaborator or scorer that breaks down stops the training: it is never a reward of zero.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sweetrl.dialogue.background import run_in_background
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.domains.registry import domain_of
from sweetrl.errors import UsageError, WordsError, needs_extra
from sweetrl.integrations.benchmark import Benchmark
from sweetrl.types import Episode, EpisodePair, Message, Role, TurnPair, Unfinished, Verdict

if TYPE_CHECKING:
    from datasets import Dataset  # type: ignore[import-untyped]

Row = dict[str, Any]
Chat = list[dict[str, str]]


# ---------------------------------------------------------------- GRPO


def prompts(benchmark: Benchmark) -> "Dataset":
    """A `train_dataset` for `GRPOTrainer`: the instructions and the request of each task.

    The request's message also carries the id of its task, by which `DialogueRollout` finds it. Templates ignore it.
    """
    return _dataset([{"prompt": _opening(benchmark, task.id)} for task in benchmark.tasks])


def reward(reward: Sequence[float], **_: Any) -> list[float]:
    """A `reward_funcs` for `GRPOTrainer`: what the scorer gave, which `DialogueRollout` passes on."""
    return list(reward)


class DialogueRollout:
    """A `rollout_func` for `GRPOTrainer`: a dialogue from each prompt, all of them a turn at a time."""

    def __init__(self, benchmark: Benchmark, *, seed: int = 0, max_tokens: int = 16_384) -> None:
        """`max_tokens` is the length of the longest dialogue; one that would grow longer ends there, and is scored."""
        self._benchmark = benchmark
        self._seed = seed
        self._max_tokens = max_tokens
        self._drawn: dict[str, int] = {}
        """How often each task was played: another attempt gets other replies."""

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """TRL's fields, one entry for each prompt, and `reward` and `task_id` for the reward functions."""
        from sweetrl.learning.tokens import DialogueEncoder

        encoder = DialogueEncoder(trainer.processing_class, max_tokens=self._max_tokens)
        played = [self._opened(prompt, encoder) for prompt in prompts]
        while going := [each for each in played if self._goes_on(each)]:
            _speak(going, trainer, encoder)
            run_in_background(_hear(going, encoder))
        scores = run_in_background(self._scores(played))
        return {
            "prompt_ids": [each.prompt for each in played],
            "completion_ids": [each.said for each in played],
            # Without them TRL assumes that the current policy was sampled from, which is true.
            "logprobs": [each.logprobs for each in played] if played[0].logprobs else None,
            "env_mask": [each.mask for each in played],
            "reward": [float(verdict.reward or 0.0) for verdict in scores],
            "task_id": [each.dialogue.task.id for each in played],
        }

    def _goes_on(self, played: "_Played") -> bool:
        if played.dialogue.conclusion is None and len(played.prompt) + len(played.said) >= self._max_tokens:
            played.dialogue.break_off(
                WordsError(f"the dialogue has {self._max_tokens} tokens", kind="context_length")
            )
        return played.dialogue.conclusion is None

    def _opened(self, prompt: Chat, encoder: Any) -> "_Played":
        task_id = next((message["task_id"] for message in prompt if message.get("task_id")), None)
        if task_id is None:
            raise UsageError(
                "a prompt names no task; make the dataset with `sweetrl.integrations.trl.prompts`"
            )
        attempt = self._drawn[task_id] = self._drawn.get(task_id, -1) + 1
        dialogue = self._benchmark.open(task_id, seed=self._seed, attempt=attempt)
        history, system = dialogue.history, self._benchmark.instructions
        return _Played(dialogue, encoder.candidates(history, [], system=system, name=task_id).prefix)

    async def _scores(self, played: Sequence["_Played"]) -> list[Verdict]:
        return await asyncio.gather(*(self._benchmark.score(each.dialogue.episode) for each in played))


@dataclass
class _Played:
    """A dialogue and its tokens."""

    dialogue: Dialogue
    prompt: list[int]
    said: list[int] = field(default_factory=list)
    """Everything after the prompt, replies included."""
    mask: list[int] = field(default_factory=list)
    """1 for what the agent said."""
    logprobs: list[float] = field(default_factory=list)
    output: str = ""
    """The last thing that the agent put out."""

    def add(self, ids: Sequence[int], *, agent: bool, logprobs: Sequence[float] | None = None) -> None:
        self.said += ids
        self.mask += [int(agent)] * len(ids)
        if logprobs is not None or self.logprobs:
            self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)


def _speak(going: Sequence[_Played], trainer: Any, encoder: Any) -> None:
    """The next output of each dialogue, drawn by the trainer's own generation: transformers or vLLM."""
    contexts = [each.prompt + each.said for each in going]
    drawn, logprobs = trainer._generate_single_turn(contexts, None, {}, num_generations=1)
    for at, each in enumerate(going):
        ids = list(drawn[at])
        each.add(ids, agent=True, logprobs=None if logprobs is None else logprobs[at])
        text = encoder.tokenizer.decode(ids, skip_special_tokens=True)
        each.output = text if encoder.ends_turn(ids) else Unfinished(text)


async def _hear(going: Sequence[_Played], encoder: Any) -> None:
    """The replies, all at once."""
    await asyncio.gather(*(_hear_one(each, encoder) for each in going))


async def _hear_one(played: _Played, encoder: Any) -> None:
    dialogue = played.dialogue
    await dialogue.say(played.output)
    if dialogue.conclusion is None:
        between = encoder.between_turns(
            dialogue.history[-1].text, finished=not isinstance(played.output, Unfinished)
        )
        played.add(between, agent=False)


def _opening(benchmark: Benchmark, task_id: str) -> list[dict[str, str | None]]:
    system, request = benchmark.chat(benchmark.open(task_id))
    return [{**system, "task_id": None}, {**request, "task_id": task_id}]


# ---------------------------------------------------------------- preferences as datasets


def turn_pairs(pairs: Iterable[TurnPair], *, system: str | None = None) -> "Dataset":
    """`{prompt, chosen, rejected}`, one row for each pair of turns: what `DPOTrainer` and its kin take."""
    return _dataset(
        [
            {
                "prompt": _chat(pair.history, system),
                "chosen": [_spoken(pair.chosen)],
                "rejected": [_spoken(pair.rejected)],
            }
            for pair in pairs
        ]
    )


def dialogue_pairs(
    pairs: Iterable[EpisodePair], episodes: Iterable[Episode], *, system: str | None = None
) -> "Dataset":
    """`{prompt, chosen, rejected}`, one row for each pair of dialogues.

    TRL learns everything after the prompt, the collaborator's replies too; `sweetrl train dpo` leaves them out.
    """
    known = {episode.id: episode for episode in episodes}
    return _dataset(
        [
            {
                "prompt": _chat([Message(Role.USER, known[pair.chosen].request)], system),
                "chosen": _after_request(known[pair.chosen]),
                "rejected": _after_request(known[pair.rejected]),
            }
            for pair in pairs
        ]
    )


def labelled_turns(pairs: Iterable[TurnPair], *, system: str | None = None) -> "Dataset":
    """`{prompt, completion, label}`, each turn on its own: the format of `KTOTrainer`."""
    return _dataset(list(_labelled(pairs, system)))


def privileged_prompts(benchmark: Benchmark) -> "Dataset":
    """`{prompt, privileged_context}`: each request, and what only a teacher or critic may read."""
    return _dataset(
        [
            {
                "prompt": benchmark.chat(benchmark.open(task.id)),
                "privileged_context": domain_of(task).reference(task.secret),
            }
            for task in benchmark.tasks
        ]
    )


def _dataset(rows: list[Any]) -> "Dataset":
    with needs_extra("the integration with TRL", "trl"):
        from datasets import Dataset
    return Dataset.from_list(rows)


def _labelled(pairs: Iterable[TurnPair], system: str | None) -> Iterator[Row]:
    seen = set()
    for pair in pairs:
        for output, label in ((pair.chosen, True), (pair.rejected, False)):
            key = (pair.episode_id, pair.turn, output, label)
            if key not in seen:
                seen.add(key)
                yield {
                    "prompt": _chat(pair.history, system),
                    "completion": [_spoken(output)],
                    "label": label,
                }


def _after_request(episode: Episode) -> Chat:
    chat = []
    for turn in episode.turns:
        chat.append(_spoken(turn.output))
        if turn.reply is not None:
            chat.append({"role": "user", "content": turn.reply.text})
    return chat


def _chat(history: Iterable[Message], system: str | None) -> Chat:
    opening = [] if system is None else [{"role": "system", "content": system}]
    return [*opening, *({"role": str(message.role), "content": message.text} for message in history)]


def _spoken(output: str) -> dict[str, str]:
    return {"role": "assistant", "content": output}
