"""Chat logs of the user's own as records."""

import json
from pathlib import Path
from typing import Any

import pytest

from sweetrl.domains.dialogues import published_verdict, read_dialogues, read_episodes
from sweetrl.domains.registry import reference_text
from sweetrl.errors import DataError

ASK = {"role": "user", "content": "Book me a train."}
WHERE = {"role": "assistant", "content": "Where to?"}
ROME = {"role": "user", "content": "Rome."}
DONE = {
    "role": "assistant",
    "content": [{"type": "text", "text": "Booked"}, {"type": "text", "text": "to Rome."}],
}
SYSTEM = {"role": "system", "content": "Be brief."}


def log(folder: Path, *lines: Any) -> Path:
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_chat_becomes_a_task_and_an_episode(tmp_path: Path) -> None:
    [(task, episode)] = read_dialogues(
        log(
            tmp_path,
            {"messages": [SYSTEM, ASK, WHERE, ROME, DONE], "reference": "A ticket to Rome", "id": "c7"},
        )
    )
    assert (task.domain, task.request, reference_text(task)) == (
        "chat",
        "Book me a train.",
        "A ticket to Rome",
    )
    assert [(turn.said, turn.reply and turn.reply.text) for turn in episode.turns] == [
        ("Where to?", "Rome."),
        ("Booked\nto Rome.", None),
    ]
    assert episode.answer == "Booked\nto Rome."
    assert episode.extra == {"chat": {"id": "c7", "system": "Be brief."}}


def test_messages_of_one_side_in_a_row_are_one_turn(tmp_path: Path) -> None:
    [episode] = read_episodes(log(tmp_path, {"messages": [ASK, ROME, WHERE, DONE, ASK]}))
    assert episode.request == "Book me a train.\n\nRome."
    assert [turn.said for turn in episode.turns] == ["Where to?\n\nBooked\nto Rome."]


def test_chats_that_begin_alike_are_attempts_at_one_task(tmp_path: Path) -> None:
    again = {"messages": [ASK, DONE]}
    other = {"messages": [ASK, DONE], "reference": "A ticket"}
    episodes = list(read_episodes(log(tmp_path, {"messages": [ASK, WHERE, ROME, DONE]}, again, other)))
    assert [episode.attempt for episode in episodes] == [0, 1, 0]
    assert episodes[0].task_id == episodes[1].task_id != episodes[2].task_id


@pytest.mark.parametrize(
    ("outcome", "reward", "success"),
    [(True, 1.0, True), (False, 0.0, False), (0.5, 0.5, False), (1, 1.0, True)],
)
def test_an_outcome_becomes_a_verdict(tmp_path: Path, outcome: Any, reward: float, success: bool) -> None:
    [episode] = read_episodes(log(tmp_path, {"messages": [ASK, DONE], "outcome": outcome}))
    verdict = published_verdict(episode)
    assert verdict is not None
    assert (verdict.reward, verdict.success, verdict.scorer) == (reward, success, "chat-outcome")


def test_a_chat_without_an_outcome_has_no_verdict(tmp_path: Path) -> None:
    [episode] = read_episodes(log(tmp_path, {"messages": [ASK, DONE]}))
    assert published_verdict(episode) is None


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"messages": []}, "Expected `array` of length >= 2 - at `$.messages`"),
        ({"messages": [ASK, ASK]}, "not a chat: the assistant says nothing"),
        ({"messages": [WHERE, ROME]}, "not a chat: the first message must be the user's request"),
        (
            {"messages": [{"role": "user", "content": " "}, DONE]},
            "the first message must be the user's request",
        ),
        (
            {"messages": [ASK, {"role": "tool", "content": "x"}]},
            "Invalid enum value 'tool' - at `$.messages[1].role`",
        ),
        (
            {"messages": [ASK, {"role": "assistant", "content": None}]},
            "got `null` - at `$.messages[1].content`",
        ),
        ({"messages": [ASK, {"role": "assistant"}]}, "missing required field `content` - at `$.messages[1]`"),
        ({"messages": "hello"}, "Expected `array`, got `str` - at `$.messages`"),
        ({"messages": [ASK, DONE], "outcome": "good"}, "at `$.outcome`"),
        ({"messages": [ASK, DONE], "refrence": "x"}, "unknown field `refrence`"),
    ],
)
def test_a_bad_line_is_named_with_its_reason(tmp_path: Path, line: Any, complaint: str) -> None:
    path = log(tmp_path, {"messages": [ASK, DONE]}, line)
    with pytest.raises(DataError) as caught:
        list(read_episodes(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert complaint in str(caught.value)
