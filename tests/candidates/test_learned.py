"""Critics that are learned from the outcomes of the dialogues that they credit."""

import pytest

from conftest import CHECKOUT
from sweetrl.candidates.learned import learn_credit, model_states, word_features
from sweetrl.domains.logged import LoggedDialogue, read_logged
from sweetrl.errors import UsageError


@pytest.fixture(scope="module")
def chats() -> list[LoggedDialogue]:
    return read_logged(CHECKOUT / "examples/chats.jsonl").dialogues


def test_words_of_a_single_dialogue_or_of_all_are_no_features(chats: list[LoggedDialogue]) -> None:
    block = word_features(chats)
    assert len({features.shape[1] for features in block}) == 1
    for features, each in zip(block, chats, strict=True):
        assert len(features) == len(each.episode.turns)
    has = [features.any(0) for features in block]
    counts = sum(each.astype(int) for each in has)
    assert counts.min() > 1
    assert counts.max() < len(chats)


def test_credit_names_dialogues_and_turns_as_people_do(chats: list[LoggedDialogue]) -> None:
    learned = learn_credit(chats, "words")
    assert [(each.dialogue, each.number) for each in learned.credit] == [
        (each.label, turn + 1) for each in chats for turn in range(len(each.episode.turns))
    ]
    assert learned.reads == "the words (100% of the fits)"


def test_the_name_of_a_critic_changes_with_the_seed(chats: list[LoggedDialogue]) -> None:
    assert learn_credit(chats, "words").critic != learn_credit(chats, "words", seed=1).critic


def test_hidden_states_are_one_row_a_turn_however_long_it_is(chats: list[LoggedDialogue]) -> None:
    import msgspec

    first = chats[0]
    long = msgspec.structs.replace(
        first.episode,
        turns=tuple(msgspec.structs.replace(turn, said=turn.said * 200) for turn in first.episode.turns),
    )
    block, mark = model_states("mini", [first, LoggedDialogue(first.task, long, None, "long")])
    assert [states.shape for states in block] == [(len(first.episode.turns), 128)] * 2
    assert mark


def test_a_model_behind_an_endpoint_has_no_hidden_states(chats: list[LoggedDialogue]) -> None:
    with pytest.raises(UsageError, match="write hf:PATH_OR_ID, mini or words"):
        learn_credit(chats, "openai:gpt@http://localhost/v1")
