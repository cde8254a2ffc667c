from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from learning.stored_records import Records
from models.tiny_llama import tiny_tokenizer
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import DataError
from sweetrl.learning.datasets import (
    Encoding,
    dialogue_pairs,
    scored_dialogues,
    successful,
    successful_dialogues,
    turn_pairs,
)
from sweetrl.learning.tokens import DialogueEncoder, EncodedSequence
from sweetrl.types import Ending, EpisodePair, Task, turn_id

TOKENIZER = tiny_tokenizer()
ENCODING = Encoding(DialogueEncoder(TOKENIZER, max_tokens=512), system="Be kind.")
RECORDS = Records(3)


def learned(sequence: EncodedSequence) -> str:
    ids = [token for token, turn in zip(sequence.ids, sequence.turns, strict=True) if turn >= 0]
    return TOKENIZER.decode(ids)


def text(sequence: EncodedSequence) -> str:
    return TOKENIZER.decode(sequence.ids)


def reveal(task: Task) -> str:
    assert isinstance(task.secret, BackendSecret)
    return f"SECRET {task.secret.reference}"


def test_only_successes_are_imitated_each_token_counting_the_same() -> None:
    data = successful_dialogues(RECORDS.episodes, RECORDS.verdicts, ENCODING)
    assert [example.id for example in data.examples] == ["t0#0", "t1#0", "t2#0"]
    for example in data.examples:
        assert example.weight == sum(turn >= 0 for each in example.chosen for turn in each.turns)
        said = "".join(turn.output + "<|end|>" for turn in RECORDS.episodes[example.id].turns)
        assert "".join(map(learned, example.chosen)) == said
        assert all("Be kind." in text(each) for each in example.chosen)


def test_an_unscored_episode_is_no_success() -> None:
    unscored = [msgspec.structs.replace(each, reward=None) for each in RECORDS.verdicts]
    with pytest.raises(DataError, match="no dialogue succeeded"):
        successful_dialogues(RECORDS.episodes, unscored, ENCODING)


def test_every_scored_dialogue_teaches_a_value_function() -> None:
    [unscored, *verdicts] = RECORDS.verdicts
    unscored = msgspec.structs.replace(unscored, reward=None)
    encoding = replace(ENCODING, privileged=reveal)
    data = scored_dialogues(RECORDS.episodes, [unscored, *verdicts], encoding, RECORDS.tasks)
    assert {each.id: (bool(each.chosen), bool(each.rejected)) for each in data.examples} == {
        **{f"t{number}#0": (True, False) for number in (1, 2)},
        **{f"t{number}#1": (False, True) for number in range(3)},
    }
    assert data.success_rate == pytest.approx(2 / 5)
    assert all("SECRET def f" in text(each) for example in data.examples for each in example.sequences)
    for example in data.examples:
        said = "".join(turn.output + "<|end|>" for turn in RECORDS.episodes[example.id].turns)
        assert "".join(map(learned, example.sequences)) == said


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"reward": None}, "no dialogue was scored"),
        ({"success": True}, "all 6 dialogues succeeded: there is nothing to tell apart"),
        ({"success": False}, "all 6 dialogues failed"),
        ({"answer_digest": "0" * 16}, "the verdict on t0#0 judges another answer"),
    ],
)
def test_a_value_function_needs_both_outcomes(changes: dict[str, object], complaint: str) -> None:
    verdicts = [msgspec.structs.replace(each, **changes) for each in RECORDS.verdicts]
    with pytest.raises(DataError, match=complaint):
        scored_dialogues(RECORDS.episodes, verdicts, ENCODING, RECORDS.tasks)


def test_a_dialogue_on_a_task_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="t0#0: there is no task t0"):
        scored_dialogues(RECORDS.episodes, RECORDS.verdicts, ENCODING, {})


def test_a_verdict_on_another_answer_is_refused() -> None:
    stale = [msgspec.structs.replace(each, answer_digest="0" * 16) for each in RECORDS.verdicts]
    with pytest.raises(DataError, match="the verdict on t0#0 judges another answer"):
        successful_dialogues(RECORDS.episodes, stale, ENCODING)


def test_a_pair_of_dialogues_has_both_sides_without_the_secret() -> None:
    [first, *_] = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, ENCODING).examples
    assert first.id == "t0#0>t0#1"
    assert "".join(map(learned, first.chosen)).startswith("Question 0 of 0?<|end|>")
    assert "Hm. OUTPUT: Question 0" in "".join(map(learned, first.rejected))
    assert not any("return 0\n" in text(each) or "SECRET" in text(each) for each in first.sequences)


def test_a_critic_reads_the_secret_but_does_not_learn_to_say_it() -> None:
    knowing = replace(ENCODING, privileged=reveal)
    data = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, knowing, RECORDS.tasks)
    for example in data.examples:
        for sequence in example.sequences:
            assert "SECRET def f():\n    return" in text(sequence)
            assert "SECRET" not in learned(sequence)
    blind = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, ENCODING, RECORDS.tasks)
    assert not any("SECRET" in text(each) for example in blind.examples for each in example.sequences)


def test_a_turn_pair_differs_in_the_last_turn_only() -> None:
    for example, pair in zip(
        turn_pairs(RECORDS.turn_pairs, ENCODING).examples, RECORDS.turn_pairs, strict=True
    ):
        assert example.id == pair.id
        assert [learned(each) for each in example.sequences] == [
            f"{pair.chosen}<|end|>",
            f"{pair.rejected}<|end|>",
        ]


def test_answers_that_succeeded_stand_beside_the_turn_pairs() -> None:
    succeeded = list(successful(RECORDS.episodes, RECORDS.verdicts))
    data = turn_pairs(RECORDS.turn_pairs, ENCODING, succeeded)
    answers = [example for example in data.examples if not example.rejected]
    assert len(data.examples) - len(answers) == len(RECORDS.turn_pairs)
    assert [example.id for example in answers] == ["t0#0 answer", "t1#0 answer", "t2#0 answer"]
    for example, episode in zip(answers, succeeded, strict=True):
        assert [learned(each) for each in example.chosen] == [f"{episode.turns[-1].output}<|end|>"]


def test_what_has_a_history_in_common_is_one_group() -> None:
    succeeded = list(successful(RECORDS.episodes, RECORDS.verdicts))
    data = turn_pairs(RECORDS.turn_pairs, ENCODING, succeeded)
    members = Counter(example.group for example in data.examples)
    turns = {each.id: len(each.turns) - 1 for each in succeeded}
    assert members == Counter(
        [turn_id(each.episode_id, each.turn) for each in RECORDS.turn_pairs]
        + [turn_id(id_, last) for id_, last in turns.items()]
    )
    pairs = dialogue_pairs(RECORDS.pairs, RECORDS.episodes, ENCODING).examples
    assert [example.group for example in pairs] == ["t0", "t1", "t2"]


MISSING = EpisodePair(task_id="t0", chosen="t0#0", rejected="t0#7", margin=1.0)
ELSEWHERE = EpisodePair(task_id="t9", chosen="t0#0", rejected="t0#1", margin=1.0)


def test_a_pair_whose_episode_is_missing_is_named() -> None:
    with pytest.raises(DataError, match=r"pair t0#0>t0#7: there is no episode t0#7; give the episodes"):
        dialogue_pairs([MISSING], RECORDS.episodes, ENCODING)


def test_a_pair_whose_task_is_missing_is_named() -> None:
    with pytest.raises(DataError, match=r"pair t0#0>t0#1: there is no task t9; give the tasks"):
        dialogue_pairs([ELSEWHERE], RECORDS.episodes, ENCODING, RECORDS.tasks)


def test_a_failed_episode_is_not_learned_from() -> None:
    failed = msgspec.structs.replace(RECORDS.episodes["t0#1"], ending=Ending.FAILED)
    with pytest.raises(DataError, match="episode t0#1 failed"):
        dialogue_pairs(RECORDS.pairs, RECORDS.episodes | {"t0#1": failed}, ENCODING)


def test_what_does_not_fit_is_counted() -> None:
    short = Encoding(DialogueEncoder(TOKENIZER, max_tokens=100))
    assert dialogue_pairs(RECORDS.pairs, RECORDS.episodes, ENCODING).cut == 0
    assert dialogue_pairs(RECORDS.pairs, RECORDS.episodes, short).cut > 0


def test_no_pairs_are_no_data() -> None:
    with pytest.raises(DataError, match="no pairs"):
        dialogue_pairs([], RECORDS.episodes, ENCODING)
