import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sweetrl.dialogue import rules
from sweetrl.domains import colbench, dialogues
from sweetrl.domains.dialogues import (
    block_order,
    content_id,
    published_from_episode,
    published_line,
    published_verdict,
    read_dialogues,
    read_episodes,
)
from sweetrl.domains.sources import parse_task
from sweetrl.errors import DataError
from sweetrl.types import Ending, Episode, Reply, Task, Turn

TASK = {
    "problem_description": "Price a parcel. The signature is: def price(weight)",
    "ground_truth": "def price(weight):\n    return 5 if weight < 2 else 9",
    "test_cases": {"test1": "price(1)"},
}
HISTORY = [
    {"role": "user", "content": "Price a parcel."},
    {
        "role": "assistant",
        "content": "Is there a limit?",
        "input": "the prompt",
        "output": "Hm. OUTPUT: Is there",
    },
    {"role": "user", "content": "Two kilograms."},
    {
        "role": "assistant",
        "content": "I WANT TO ANSWER: ...",
        "input": "p",
        "output": "I WANT TO ANSWER: ...",
    },
]
LINE = {"task": TASK, "dialogue_history": HISTORY, "answer": "def price(w): ...", "reward": 0.3}


def write(path: Path, *lines: dict[str, Any], escaped: bool = True) -> Path:
    path.write_bytes(b"".join(json.dumps(line, ensure_ascii=escaped).encode() + b"\n" for line in lines))
    return path


def stored_and_read_again(task: Task, episode: Episode) -> tuple[Task, Episode]:
    return (
        parse_task(msgspec.json.decode(msgspec.json.encode(task))),
        msgspec.json.decode(msgspec.json.encode(episode), type=Episode),
    )


def round_trip(path: Path) -> bytes:
    return b"".join(
        published_line(*stored_and_read_again(task, episode)) for task, episode in read_dialogues(path)
    )


# ---------------------------------------------------------------- without loss

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
filled = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


def objects(
    known: dict[str, Any], optional: dict[str, Any] | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the known keys and some unknown ones, in any order."""
    taken = {*known, *(optional or {}), "id", "test_cases", "output", "reward"}
    return st.tuples(
        st.fixed_dictionaries(known, optional=optional or {}),
        st.dictionaries(texts.filter(lambda key: key not in taken), values, max_size=2),
    ).flatmap(lambda parts: st.permutations(list({**parts[1], **parts[0]}.items())).map(dict))


def tasks_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    known = {"problem_description": filled, "ground_truth": filled}
    if kind == "backend":
        known["test_cases"] = st.dictionaries(texts, filled, min_size=1, max_size=3)
    return objects(known, {"id": filled, "hidden_information": texts})


said = objects({"role": st.just("assistant"), "content": texts}, {"input": texts, "output": texts})
replied = objects({"role": st.just("user"), "content": texts}, {"output": texts})
histories = st.tuples(
    replied, st.lists(st.tuples(said, replied), max_size=3), st.lists(said, min_size=1, max_size=2)
).map(lambda parts: [parts[0], *(message for pair in parts[1] for message in pair), *parts[2]])
lines = st.sampled_from(["backend", "frontend"]).flatmap(
    lambda kind: objects(
        {"task": tasks_of(kind), "dialogue_history": histories, "answer": texts | st.none()},
        {"reward": st.floats(allow_nan=False, allow_infinity=False) | st.none()},
    )
)


@given(st.lists(lines, min_size=1, max_size=3), st.booleans())
@example([{**LINE, "answer": "\x7f"}], False)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_published_lines_come_back_byte_for_byte(
    tmp_path: Path, dialogues: list[dict[str, Any]], escaped: bool
) -> None:
    path = write(tmp_path / "dialogues.jsonl", *dialogues, escaped=escaped)
    assert round_trip(path) == path.read_bytes()


def test_no_secret_of_the_task_enters_the_episode(tmp_path: Path) -> None:
    line = {**LINE, "task": {**TASK, "hidden_information": "the secret"}}
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", line))
    stored = msgspec.json.encode(episode)
    assert b"weight < 2" not in stored
    assert b"the secret" not in stored
    assert b"price(1)" not in stored


# ---------------------------------------------------------------- what a line means


def test_output_is_what_is_trained_on_and_content_what_was_shown(tmp_path: Path) -> None:
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", LINE))
    first, last = episode.turns
    assert first == Turn("Hm. OUTPUT: Is there", "Is there a limit?", Reply("Two kilograms."))
    assert last.reply is None
    assert episode.request == "Price a parcel."
    assert episode.answer == "def price(w): ..."
    assert episode.ending is Ending.ANSWERED


def test_a_dialogue_without_the_answer_marker_ended_at_the_turn_limit(tmp_path: Path) -> None:
    line = {**LINE, "dialogue_history": HISTORY[:2]}
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", line))
    assert episode.ending is Ending.TURN_LIMIT


def test_a_turn_without_output_said_what_it_shows(tmp_path: Path) -> None:
    line = {**LINE, "dialogue_history": [HISTORY[0], {"role": "assistant", "content": "Hello"}]}
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", line))
    assert episode.turns == (Turn("Hello", "Hello"),)


def test_the_answer_of_a_design_is_its_last_page_and_not_the_path_of_its_picture(tmp_path: Path) -> None:
    pages = ["<html><p>1</p></html>", "I WANT TO ANSWER: <HTML>2</HTML> done"]
    history = [{"role": "user", "content": "A page"}]
    history += [{"role": "assistant", "content": "shown", "output": page} for page in pages]
    line = {
        "task": {"problem_description": "A page", "ground_truth": "<html></html>"},
        "dialogue_history": history,
        "answer": "images/7.png",
    }
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", line))
    assert episode.answer == "<HTML>2</HTML>"


@pytest.mark.parametrize(
    "said",
    [
        "Here: <html><p>1</p></html> as you like.",
        "<!DOCTYPE html>\n<html>1</html>",
        "I WANT TO ANSWER: <HTML lang='en'>\n1\n</HTML >",
        "It breaks off: <html><body>1",
        "No page.",
    ],
)
def test_the_page_of_a_message_is_the_one_that_the_rules_find(tmp_path: Path, said: str) -> None:
    line = {
        "task": {"problem_description": "A page", "ground_truth": "<html></html>"},
        "dialogue_history": [{"role": "user", "content": "A page"}, {"role": "assistant", "content": said}],
        "answer": None,
    }
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", line))
    assert episode.answer == rules.last_page([said])


def test_the_answer_marker_is_that_of_the_rules() -> None:
    assert dialogues.ANSWER_MARKER == rules.ANSWER_MARKER


@pytest.mark.parametrize(
    ("reward", "expected"),
    [(1.0, (1.0, True)), (1, (1.0, True)), (0.25, (0.25, False)), (None, None), (True, None), ("1", None)],
)
def test_a_reward_in_the_line_is_a_verdict(tmp_path: Path, reward: object, expected: object) -> None:
    ((_, episode),) = read_dialogues(write(tmp_path / "d.jsonl", {**LINE, "reward": reward}))
    verdict = published_verdict(episode)
    assert (verdict and (verdict.reward, verdict.success)) == expected
    assert verdict is None or verdict.episode_id == episode.id


def test_an_episode_of_ours_has_no_published_verdict() -> None:
    assert published_verdict(ours()) is None


def test_dialogues_on_one_task_are_numbered_in_the_order_of_the_file(tmp_path: Path) -> None:
    other = {**LINE, "task": {**TASK, "ground_truth": "def price(w): return 1"}}
    path = write(tmp_path / "d.jsonl", LINE, other, LINE, other)
    episodes = list(read_episodes(path))
    assert [episode.attempt for episode in episodes] == [0, 0, 1, 1]
    assert episodes[0].task_id == episodes[2].task_id != episodes[1].task_id == episodes[3].task_id


# ---------------------------------------------------------------- which task


def named(name: str, **changes: str) -> Task:
    return colbench.parse_task({**TASK, **changes}, position_id=name, split="", ascii_only=True)


def test_a_dialogue_is_matched_to_its_task_by_content(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", LINE)
    tasks = [named("other", ground_truth="def price(w): return 1"), named("mine")]
    assert [episode.task_id for episode in read_episodes(path, tasks)] == ["mine"]


def test_an_id_in_the_carried_task_goes_before_its_content(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", {**LINE, "task": {**TASK, "id": "second"}})
    assert [episode.task_id for episode in read_episodes(path, [named("first"), named("second")])] == [
        "second"
    ]


def test_without_tasks_a_dialogue_is_named_after_the_content_of_its_task(tmp_path: Path) -> None:
    (episode,) = read_episodes(write(tmp_path / "d.jsonl", LINE))
    assert episode.task_id == content_id(named("any name"))


@pytest.mark.parametrize(
    ("tasks", "complaint"),
    [
        ([named("other", problem_description="Else")], "is not among the tasks"),
        ([named("one"), named("two")], "is there as one and as two"),
    ],
)
def test_an_unknown_or_ambiguous_task_is_an_error_at_its_line(
    tmp_path: Path, tasks: list[Task], complaint: str
) -> None:
    ours = Episode(
        task_id=tasks[0].id, attempt=0, seed=1, agent="a", collaborator="c", request="r", turns=(),
        ending=Ending.TURN_LIMIT, answer=None,
    )  # fmt: skip
    path = tmp_path / "d.jsonl"
    path.write_bytes(msgspec.json.encode(ours) + b"\n" + json.dumps(LINE).encode() + b"\n")
    with pytest.raises(DataError, match=r"d\.jsonl:2: .*" + complaint):
        list(read_episodes(path, tasks))


# ---------------------------------------------------------------- files


def ours(task_id: str = "t", attempt: int = 0) -> Episode:
    return Episode(
        task_id=task_id,
        attempt=attempt,
        seed=3,
        agent="scripted:x",
        collaborator="scripted:y",
        request="Price a parcel.",
        turns=(Turn("Why? OUTPUT: What?", "What?", Reply("This.")), Turn("I WANT TO ANSWER: f", "f")),
        ending=Ending.ANSWERED,
        answer="f",
    )


def test_both_formats_may_stand_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(msgspec.json.encode(ours()) + b"\n" + json.dumps(LINE).encode() + b"\n")
    first, second = read_episodes(path)
    assert first == ours()
    assert second.agent == "published"


def test_an_episode_on_a_task_that_is_not_given_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(msgspec.json.encode(ours("elsewhere")) + b"\n")
    with pytest.raises(DataError, match=r"e\.jsonl:1: the task elsewhere is not among the tasks"):
        list(read_episodes(path, [named("here")]))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"task": None}, "the dialogue has no task"),
        ({"task": {"ground_truth": "x"}}, "task: .*problem_description"),
        ({"task": {**TASK, "test_cases": {"a": 1}}}, r"task: .*\$\.test_cases"),
        ({"dialogue_history": "hello"}, r"\$\.dialogue_history"),
        ({"dialogue_history": HISTORY[:1]}, r"length >= 2.*\$\.dialogue_history"),
        ({"dialogue_history": HISTORY[1:]}, r"dialogue_history\[0\] is not the user's request"),
        (
            {"dialogue_history": [HISTORY[0], HISTORY[0]]},
            r"dialogue_history\[1\] is a second message of the user",
        ),
        (
            {"dialogue_history": [HISTORY[0], {"role": "tool", "content": ""}]},
            r"\$\.dialogue_history\[1\]\.role",
        ),
        ({"dialogue_history": [HISTORY[0], {"role": "assistant"}]}, "content.*dialogue_history.1"),
        ({"answer": 3}, r"\$\.answer"),
    ],
)
def test_a_malformed_dialogue_is_one_line_that_names_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    path = write(tmp_path / "d.jsonl", LINE, {**LINE, **change})
    with pytest.raises(DataError, match=r"^[^\n]*d\.jsonl:2: .*" + complaint) as caught:
        list(read_episodes(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", ["", "[1]\n", '{"dialogue_history": \n', "\x00\x01\n", '{"a": "\\ud800"}\n']
)
def test_junk_is_a_data_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "junk.jsonl"
    path.write_text(content)
    with pytest.raises(DataError):
        list(read_episodes(path))


def test_our_own_episode_is_not_a_published_dialogue(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(msgspec.json.encode(ours()) + b"\n")
    with pytest.raises(DataError, match=r"e\.jsonl:1: neither a dialogue as ColBench publishes them"):
        list(read_dialogues(path))


# ---------------------------------------------------------------- our episodes in the published format


OUR_TASK = msgspec.structs.replace(named("t"), extra={})


def test_an_episode_of_ours_is_written_with_input_and_output_on_each_assistant_turn() -> None:
    line = published_from_episode(OUR_TASK, ours(), reward=1.0)
    assert list(line) == ["task", "dialogue_history", "answer", "reward"]
    assert line["task"] == {"id": "t", **TASK}
    assert line["dialogue_history"] == [
        {"role": "user", "content": "Price a parcel."},
        {
            "role": "assistant",
            "content": "What?",
            "input": "user: Price a parcel.",
            "output": "Why? OUTPUT: What?",
        },
        {"role": "user", "content": "This."},
        {
            "role": "assistant",
            "content": "f",
            "input": "user: Price a parcel.\nassistant: What?\nuser: This.",
            "output": "I WANT TO ANSWER: f",
        },
    ]


def test_an_episode_of_ours_survives_the_way_out_and_back(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", published_from_episode(OUR_TASK, ours()))
    ((task, episode),) = read_dialogues(path)
    assert (task.id, task.request, task.secret) == ("t", OUR_TASK.request, OUR_TASK.secret)
    assert (episode.request, episode.turns, episode.ending, episode.answer) == (
        ours().request,
        ours().turns,
        ours().ending,
        ours().answer,
    )


def test_a_new_reward_replaces_an_imported_one(tmp_path: Path) -> None:
    ((task, episode),) = read_dialogues(write(tmp_path / "d.jsonl", LINE))
    assert published_from_episode(task, episode, reward=0.9) == {**LINE, "reward": 0.9}


def test_an_imported_episode_with_other_turns_is_refused(tmp_path: Path) -> None:
    ((task, episode),) = read_dialogues(write(tmp_path / "d.jsonl", LINE))
    shorter = msgspec.structs.replace(episode, turns=episode.turns[:1])
    with pytest.raises(DataError, match="its turns are not those"):
        published_from_episode(task, shorter)


# ---------------------------------------------------------------- layout


def test_blocks_hold_every_task_once_in_the_order_of_first_appearance() -> None:
    finished = [("b", 1), ("a", 0), ("b", 0), ("c", 0), ("a", 1), ("c", 1)]
    ordered = [finished[position] for position in block_order(finished)]
    assert ordered == [("b", 0), ("a", 0), ("c", 0), ("b", 1), ("a", 1), ("c", 1)]


@given(
    st.lists(st.text(min_size=1, max_size=3), unique=True, min_size=1, max_size=6),
    st.integers(1, 4),
    st.randoms(),
)
def test_line_i_and_line_i_plus_the_number_of_tasks_are_the_same_task(tasks, k, random) -> None:
    finished = [(task, attempt) for task in tasks for attempt in range(k)]
    random.shuffle(finished)
    ordered = [finished[position] for position in block_order(finished)]
    n = len(tasks)
    assert sorted(ordered) == sorted(finished)
    assert all(ordered[i][0] == ordered[i + n][0] for i in range(n * (k - 1)))


def test_a_file_in_blocks_keeps_its_order() -> None:
    blocks = [(task, attempt) for attempt in range(3) for task in "xyz"]
    assert block_order(blocks) == list(range(9))


def test_uneven_attempts_are_refused_with_the_name_of_the_task_that_lacks_some() -> None:
    with pytest.raises(DataError, match=r"b has 1 of 2 dialogues.*--as-is"):
        block_order([("a", 0), ("b", 0), ("a", 1)])
