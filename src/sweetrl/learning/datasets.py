"""Records as examples to learn from: which dialogues and turns, encoded how.

The methods differ in this and in their loss only. Whatever an example is made of, it keeps the id of its record.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from sweetrl.errors import DataError
from sweetrl.learning.batches import Example
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.types import Ending, Episode, EpisodePair, Task, TurnPair, Verdict, digest, turn_id


@dataclass(frozen=True)
class Dataset:
    """The examples of a run."""

    examples: list[Example]
    cut: int = field(default=0, kw_only=True)
    """Old turns that were left out of histories too long for the context."""
    success_rate: float | None = field(default=None, kw_only=True)
    """Share of the dialogues that succeeded, where that is what is learned."""


@dataclass(frozen=True)
class Encoding:
    """How records become tokens: the same for all examples of a run."""

    encoder: DialogueEncoder
    system: str | None = None
    """The agent's prompt, as when it was sampled from."""
    privileged: Callable[[Task], str] | None = None
    """The text about a task's secret that a critic reads; None if it sees no secret."""
    branch: bool = False
    """Whether sequences may share rows (see `rows.can_branch`)."""

    def dialogue(self, episode: Episode, task: Task | None = None) -> tuple[EncodedSequence, ...]:
        """All turns of an episode."""
        return tuple(
            self.encoder.dialogue(
                episode.request,
                episode.turns,
                system=self.system,
                privileged=self._secret(task),
                name=episode.id,
            ).sequences
        )

    def turns(self, pair: TurnPair) -> tuple[EncodedSequence, EncodedSequence]:
        """The chosen and the rejected output of a pair."""
        chosen, rejected = (
            self.encoder.turn(pair.history, output, system=self.system, name=pair.id) for output in pair.given
        )
        return chosen, rejected

    def answer(self, episode: Episode) -> EncodedSequence:
        """The last turn of an episode."""
        last = len(episode.turns) - 1
        given = episode.turns[last].given
        return self.encoder.turn(episode.history(last), given, system=self.system, name=episode.id)

    def _secret(self, task: Task | None) -> str | None:
        return None if task is None or self.privileged is None else self.privileged(task)


def successful_dialogues(
    episodes: Mapping[str, Episode], verdicts: Iterable[Verdict], encoding: Encoding
) -> Dataset:
    """For rejection fine-tuning: the dialogues that succeeded, each token of the agent counting the same."""
    examples = []
    for episode in successful(episodes, verdicts):
        sequences = encoding.dialogue(episode)
        learned = sum(turn >= 0 for sequence in sequences for turn in sequence.turns)
        examples.append(
            Example(
                episode.id, sequences, weight=float(learned), task=episode.task_id, branch=encoding.branch
            )
        )
    return dataset(
        examples, "no dialogue succeeded: there is nothing to imitate; roll out more, or use a better agent"
    )


def scored_dialogues(
    episodes: Mapping[str, Episode],
    verdicts: Iterable[Verdict],
    encoding: Encoding,
    tasks: Mapping[str, Task],
) -> Dataset:
    """For a value function: all dialogues that were scored, those that failed on the side of the rejected."""
    examples, successes = [], 0
    for episode, success in _judged(episodes, verdicts):
        sequences = encoding.dialogue(episode, _known_task(tasks, episode.task_id, episode.id))
        chosen, rejected = (sequences, ()) if success else ((), sequences)
        examples.append(Example(episode.id, chosen, rejected, task=episode.task_id, branch=encoding.branch))
        successes += success
    data = dataset(
        examples, "no dialogue was scored: there is nothing to learn from; run `sweetrl score` first"
    )
    if successes in (0, len(examples)):
        ended = "succeeded" if successes else "failed"
        raise DataError(
            f"all {len(examples)} dialogues {ended}: there is nothing to tell apart; roll out more of them"
        )
    return replace(data, success_rate=successes / len(examples))


def _judged(episodes: Mapping[str, Episode], verdicts: Iterable[Verdict]) -> Iterator[tuple[Episode, bool]]:
    """The dialogues that have a reward, and whether they succeeded."""
    for verdict in verdicts:
        if verdict.reward is None:
            continue
        episode = _known(episodes, verdict.episode_id, "the verdicts")
        if verdict.answer_digest != digest(episode.answer):
            raise DataError(f"the verdict on {episode.id} judges another answer than its own; score it anew")
        yield episode, verdict.success


def dialogue_pairs(
    pairs: Iterable[EpisodePair],
    episodes: Mapping[str, Episode],
    encoding: Encoding,
    tasks: Mapping[str, Task] | None = None,
    successes: Iterable[Episode] = (),
) -> Dataset:
    """For multi-turn DPO, with answers to imitate; and with the `tasks` for a critic: pairs of whole dialogues."""

    @cache  # one dialogue is in many pairs
    def encoded(episode_id: str, task_id: str) -> tuple[EncodedSequence, ...]:
        return encoding.dialogue(episodes[episode_id], None if tasks is None else tasks[task_id])

    examples = []
    for pair in pairs:
        if tasks is not None:
            _known_task(tasks, pair.task_id, f"pair {pair.id}")
        chosen, rejected = (
            encoded(_known(episodes, id_, f"pair {pair.id}").id, pair.task_id)
            for id_ in (pair.chosen, pair.rejected)
        )
        examples.append(
            Example(pair.id, chosen, rejected, group=pair.task_id, task=pair.task_id, branch=encoding.branch)
        )
    examples += _answers(successes, encoding)
    return dataset(examples, "there are no pairs to learn from")


def turn_pairs(pairs: Iterable[TurnPair], encoding: Encoding, successes: Iterable[Episode] = ()) -> Dataset:
    """For the policy: pairs of single turns, and the answers of dialogues that succeeded, to imitate."""
    examples = []
    for pair in pairs:
        chosen, rejected = encoding.turns(pair)
        turn = turn_id(pair.episode_id, pair.turn)
        examples.append(
            Example(pair.id, (chosen,), (rejected,), group=turn, task=pair.task_id, branch=encoding.branch)
        )
    examples += _answers(successes, encoding)
    return dataset(examples, "there are no turn pairs to learn from")


def _answers(successes: Iterable[Episode], encoding: Encoding) -> list[Example]:
    """The answers of dialogues that succeeded, to imitate beside pairs.

    Rejected answers are long and wrong in what they leave out; without right ones to imitate, a policy that learns to
    avoid them may forget how to write.
    """
    return [
        Example(
            f"{each.id} answer",
            (encoding.answer(each),),
            group=turn_id(each.id, len(each.turns) - 1),
            task=each.task_id,
            branch=encoding.branch,
        )
        for each in successes
    ]


def successful(episodes: Mapping[str, Episode], verdicts: Iterable[Verdict]) -> Iterator[Episode]:
    """The dialogues that succeeded."""
    return (episode for episode, success in _judged(episodes, verdicts) if success)


def dataset(examples: list[Example], emptiness: str) -> Dataset:
    """The examples in the order of their ids; with none, `emptiness` says what is wrong."""
    if not examples:
        raise DataError(emptiness)
    # The order of records depends on timing, and training must not.
    examples = sorted(examples, key=lambda example: example.id)
    return Dataset(examples, cut=sum(each.cut for example in examples for each in example.sequences))


def _known(episodes: Mapping[str, Episode], id_: str, source: str) -> Episode:
    episode = episodes.get(id_)
    if episode is None:
        raise DataError(f"{source}: there is no episode {id_}; give the episodes that it was made from")
    if episode.ending is Ending.FAILED or not episode.turns:
        raise DataError(f"{source}: episode {id_} failed and cannot be learned from; make the file anew")
    return episode


def _known_task(tasks: Mapping[str, Task], id_: str, source: str) -> Task:
    task = tasks.get(id_)
    if task is None:
        raise DataError(f"{source}: there is no task {id_}; give the tasks that it was made from")
    return task
