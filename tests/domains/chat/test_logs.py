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


# ---------------------------------------------------------------- what people have


def turns_of(folder: Path, *messages: Any, name: str = "messages") -> list[tuple[str, str | None]]:
    [episode] = read_episodes(log(folder, {name: list(messages)}))
    return [(turn.said, turn.reply and turn.reply.text) for turn in episode.turns]


def test_calls_of_tools_are_turns_and_their_results_replies(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"to": "Rome"}'}}
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "1", "content": "9:40"}
    assert turns_of(tmp_path, ASK, calls, result, DONE) == [
        ('[calls find({"to": "Rome"})]', "[result] 9:40"),
        ("Booked\nto Rome.", None),
    ]


def test_the_older_form_of_calls_is_read_too(tmp_path: Path) -> None:
    calls = {"role": "assistant", "content": "Looking.", "function_call": {"name": "find", "arguments": "{}"}}
    result = {"role": "function", "name": "find", "content": "9:40"}
    assert turns_of(tmp_path, ASK, calls, result, DONE)[0] == (
        "Looking.\n[calls find({})]",
        "[result of find] 9:40",
    )


def test_a_conversation_of_sharegpt_is_a_chat(tmp_path: Path) -> None:
    said = [{"from": "human", "value": "Book me a train."}, {"from": "gpt", "value": "Where to?"},
            {"from": "human", "value": "Rome."}, {"from": "gpt", "value": "Booked."}]  # fmt: skip
    assert turns_of(tmp_path, *said, name="conversations") == [("Where to?", "Rome."), ("Booked.", None)]


def test_an_assistant_may_speak_first(tmp_path: Path) -> None:
    path = log(tmp_path, {"messages": [WHERE, ROME, DONE]}, {"messages": [WHERE, ASK, DONE]})
    one, other = read_episodes(path)
    assert one.request == "(The assistant speaks first.)"
    assert [turn.said for turn in one.turns] == ["Where to?", "Booked\nto Rome."]
    assert one.task_id != other.task_id


@pytest.mark.parametrize("content", [None, "", []])
def test_messages_without_content_are_left_out_or_marked(tmp_path: Path, content: Any) -> None:
    silent = {"role": "assistant", "content": content}
    assert turns_of(tmp_path, ASK, silent, WHERE, {"role": "user", "content": content}, DONE) == [
        ("Where to?", "(nothing)"),
        ("Booked\nto Rome.", None),
    ]


def test_parts_that_are_no_text_are_named(tmp_path: Path) -> None:
    picture = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "this"}],
    }
    [episode] = read_episodes(log(tmp_path, {"messages": [picture, DONE]}))
    assert episode.request == "[image_url]\nthis"


@pytest.mark.parametrize(
    ("fields", "named", "outcome"),
    [
        ({"reward": 0.5}, None, 0.5),
        ({"success": True}, None, 1.0),
        ({"outcome": 0, "success": True}, None, 0.0),
        ({"outcome": None, "success": False}, None, 0.0),
        ({"csat": 4, "success": True}, "csat", 4.0),
        ({"metadata": {"rating": 2}}, "metadata.rating", 2.0),
        ({"metadata.rating": 3}, "metadata.rating", 3.0),
        ({"metadata": 7}, "metadata.rating", None),
    ],
)
def test_the_outcome_is_in_one_of_several_fields_or_in_the_one_that_is_named(
    tmp_path: Path, fields: Any, named: str | None, outcome: float | None
) -> None:
    [(_, episode)] = read_dialogues(log(tmp_path, {"messages": [ASK, DONE], **fields}), named)
    assert episode.extra["chat"].get("outcome") == outcome


def test_a_solution_is_a_reference_and_other_fields_are_ignored(tmp_path: Path) -> None:
    line = {"messages": [ASK, DONE], "solution": "Rome", "model": "m", "tools": []}
    [(task, _)] = read_dialogues(log(tmp_path, line))
    assert reference_text(task) == "Rome"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"messages": []}, "messages must be a list of messages, found an empty list"),
        ({"messages": [ASK, ASK]}, "messages: the assistant says nothing"),
        ({"messages": [SYSTEM]}, "messages: the assistant says nothing"),
        ({"messages": [ASK, {"role": "assistant", "content": None}]}, "the assistant says nothing"),
        (
            {"messages": [ASK, {"role": "narrator", "content": "x"}]},
            "messages[1].role must be user, assistant, system or tool, found the text 'narrator'",
        ),
        ({"messages": [ASK, {"content": "x"}]}, "messages[1].role must be user, assistant, system or tool, found no"),
        ({"messages": [ASK, {"role": "assistant"}]}, "messages[1] has no content; its fields are role"),
        ({"messages": [ASK, {"role": "assistant", "content": 7}]}, "messages[1].content must be text or a list of"),
        ({"messages": [ASK, "Where to?"]}, "messages[1] must be an object with role and content, found the text"),
        ({"messages": "hello"}, "messages must be a list of messages, found the text 'hello'"),
        ({"conversations": {"from": "human"}}, "conversations must be a list of messages, found an object"),
        (
            {"messages": [ASK, {"role": "assistant", "content": None, "tool_calls": "x"}]},
            "messages[1].tool_calls must be a list",
        ),
        ({"messages": [ASK, DONE], "outcome": "good"}, "outcome must be true, false or a number, found the text"),
        ({"messages": [ASK, DONE], "reward": [1]}, "reward must be true, false or a number, found a list"),
        ({"messages": [ASK, DONE], "reference": 7}, "reference must be text, found the number 7"),
        ({"prompt": "x", "completion": "y"}, "found an object with the fields prompt, completion"),
        ({}, "found an empty object"),
        ("hello", "found the text 'hello'"),
        (7, "found the number 7"),
        ([1, 2], "found a list"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_with_its_reason_and_the_shape_that_is_expected(
    tmp_path: Path, line: Any, complaint: str
) -> None:
    path = log(tmp_path, {"messages": [ASK, DONE]}, line)
    with pytest.raises(DataError) as caught:
        list(read_episodes(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert complaint in str(caught.value)
    assert '{"messages": [{"role": "user", "content": "..."}' in str(caught.value)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- files


CHAT = {"messages": [ASK, DONE]}


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (json.dumps([CHAT, CHAT]), 2),
        (json.dumps([CHAT, CHAT], indent=2), 2),
        (json.dumps(CHAT, indent=2), 1),
        (json.dumps([ASK, DONE]), 1),
        (json.dumps([ASK, DONE], indent=2), 1),
        (json.dumps([ASK, DONE]) + "\n" + json.dumps([ASK, WHERE]) + "\n", 2),
        ("\ufeff" + json.dumps(CHAT) + "\n\n" + json.dumps({"conversations": [ASK, WHERE]}), 2),
    ],
)
def test_dialogues_are_lines_or_items_or_one_value(tmp_path: Path, content: str, count: int) -> None:
    (tmp_path / "chats.json").write_text(content, encoding="utf-8")
    episodes = list(read_episodes(tmp_path / "chats.json"))
    assert len(episodes) == count
    assert episodes[0].turns[0].said == "Booked\nto Rome."


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "has no records; expected lines such as {"),
        ("[]", "is an empty list; expected dialogues such as {"),
        (json.dumps([CHAT, {"messages": []}], indent=2), "item 2: messages must be a list of messages"),
        (json.dumps([CHAT, 7]), "item 2: expected a dialogue such as {"),
        ("id,text\n1,hello\n", "1: not a file of JSON; expected lines such as {"),
        ('{"messages": [', "not valid JSON"),
    ],
)
def test_a_file_that_is_something_else_is_one_line(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "chats.json").write_text(content)
    with pytest.raises(DataError, match=r"chats\.json") as caught:
        list(read_episodes(tmp_path / "chats.json"))
    assert complaint in str(caught.value)


def test_ids_that_are_numbers_are_kept_as_text(tmp_path: Path) -> None:
    [episode] = read_episodes(log(tmp_path, {**CHAT, "id": 7}))
    assert episode.extra["chat"]["id"] == "7"
