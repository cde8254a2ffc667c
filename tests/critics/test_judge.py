import asyncio
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidates.stored import SECRET, task
from sweetrl.critics.judge import JudgeCritic, meetings, parse_grade, parse_preference
from sweetrl.errors import ConfigError, ModelError
from sweetrl.models.scripted import ScriptedModel
from sweetrl.prompts import Prompt
from sweetrl.types import Message, Role

HISTORY = (Message(Role.USER, "Write t."), Message(Role.ASSISTANT, "Why?"), Message(Role.USER, "So."))


def messages_in(prompt: str) -> list[str]:
    return [text for _, text in re.findall(r"<message ?(\w*)>\n(.*?)\n</message", prompt, re.DOTALL)]


def longer(prompt: str) -> str:
    first, second = messages_in(prompt)
    if len(first) == len(second):
        return "BETTER: SAME"
    return "BETTER: FIRST" if len(first) > len(second) else "BETTER: SECOND"


def asked(answer: Callable[[str], str], outputs: Sequence[str], **options) -> tuple[list[float], list[str]]:
    prompts: list[str] = []

    def script(messages: Sequence[Message], seed: int) -> str:
        prompts.append(messages[-1].text)
        return answer(messages[-1].text)

    critic = JudgeCritic(ScriptedModel(script), **options)
    return asyncio.run(critic.advantages(task(), HISTORY, outputs)), prompts


# ---------------------------------------------------------------- comparing


def test_the_better_output_wins_every_comparison_and_the_worse_loses_them():
    assert asked(longer, ["a", "abc", "ab"])[0] == [-1.0, 1.0, 0.0]


def test_every_comparison_is_made_in_both_places():
    _, prompts = asked(longer, ["a", "b"])
    assert sorted(tuple(messages_in(prompt)) for prompt in prompts) == [("a", "b"), ("b", "a")]


def test_a_liking_for_the_first_place_cancels_out():
    assert asked(lambda _: "BETTER: FIRST", ["a", "b", "c"])[0] == [0.0, 0.0, 0.0]


def test_the_judge_sees_the_reference_and_the_dialogue():
    _, prompts = asked(longer, ["a", "b"])
    assert all(SECRET in prompt for prompt in prompts)
    assert all("Person: Write t.\n\nAgent: Why?\n\nPerson: So." in prompt for prompt in prompts)


def test_equal_outputs_are_not_compared_and_share_their_advantage():
    advantages, prompts = asked(longer, ["a", "abc", "a"])
    assert advantages == [-1.0, 1.0, -1.0]
    assert len(prompts) == 2
    assert asked(longer, ["a", "a"]) == ([0.0, 0.0], [])


def test_a_reply_that_cannot_be_read_is_no_tie():
    def half_mute(prompt: str) -> str:
        return "I cannot say." if messages_in(prompt)[0] == "a" else longer(prompt)

    assert asked(half_mute, ["a", "ab"])[0] == [-1.0, 1.0]


def test_a_judge_that_never_says_anything_is_a_failure():
    with pytest.raises(ModelError, match="none of its replies") as caught:
        asked(lambda _: "Hm.", ["a", "b"])
    assert caught.value.kind == "unreadable"


def test_a_failing_model_ends_the_whole_judgement():
    def broken(prompt: str) -> str:
        raise ModelError("gone", kind="timeout")

    with pytest.raises(ModelError, match="gone"):
        asked(broken, ["a", "b"])


def test_sixteen_candidates_take_sixty_four_requests():
    outputs = [f"output {number:02}" for number in range(16)]
    _, prompts = asked(longer, outputs)
    assert len(prompts) == 64
    assert len(asked(longer, outputs, rounds=8)[1]) == 16 * 15


@given(st.integers(2, 20), st.integers(1, 12))
def test_everyone_meets_others_equally_often_and_nobody_twice(count, rounds):
    pairs = meetings(count, rounds)
    assert len(set(pairs)) == len(pairs)
    assert all(one < other for one, other in pairs)
    met = {sum(one in pair for pair in pairs) for one in range(count)}
    assert met == {min(2 * rounds, count - 1)}


# ---------------------------------------------------------------- grading


def test_a_single_output_is_graded():
    advantages, [prompt] = asked(lambda _: "It settles the unit.\nGRADE: +2", ["Which unit?"])
    assert advantages == [1.0]
    assert messages_in(prompt) == ["Which unit?"]
    assert SECRET in prompt


def test_a_grade_that_cannot_be_read_is_a_failure():
    with pytest.raises(ModelError, match="could not be read"):
        asked(lambda _: "Very good!", ["x"])


def test_judges_that_may_disagree_have_different_names():
    model = ScriptedModel([], name="m")
    assert JudgeCritic(model).name == "judge:m"
    assert JudgeCritic(model, rounds=5).name != JudgeCritic(model).name


# ---------------------------------------------------------------- reading replies


@pytest.mark.parametrize(
    ("reply", "preference"),
    [
        ("BETTER: FIRST", 1.0),
        ("better: second.", -1.0),
        ("Both are fine.\n\n**BETTER: SAME**", 0.0),
        ("BETTER: **SECOND**", -1.0),
        ("BETTER: the FIRST", 1.0),
        ("BETTER: message SECOND", -1.0),
        ("Better = tie", 0.0),
        ("BETTER: FIRST. No, wait.\nBETTER: SECOND", -1.0),
        ("The unit is open.\nFIRST", 1.0),
        ("`second`", -1.0),
        ("It is better to ask first.", None),
        ("FIRST asks well, but so does SECOND", None),
        ("BETTER: FIRSTLY", None),
        ("", None),
    ],
)
def test_a_preference_is_read_however_it_is_written(reply, preference):
    assert parse_preference(reply) == preference


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("GRADE: +2", 1.0),
        ("grade: -1.", -0.5),
        ("**GRADE:** 0", 0.0),
        ("GRADE: **\u22122**", -1.0),
        ("GRADE: 1\nGRADE: 2", 1.0),
        ("Useful.\n+1", 0.5),
        ("GRADE: 7", None),
        ("GRADE: 1.5", None),
        ("2 good questions", None),
        ("", None),
    ],
)
def test_a_grade_is_read_however_it_is_written(reply, grade):
    assert parse_grade(reply) == grade


@given(st.text())
def test_no_reply_is_too_odd_to_be_read(reply):
    assert parse_preference(reply) in (None, -1.0, 0.0, 1.0)
    assert parse_grade(reply) in (None, -1.0, -0.5, 0.0, 0.5, 1.0)


# ---------------------------------------------------------------- prompts of one's own


def own(text: str) -> Prompt:
    return Prompt(text, source="mine.txt")


def test_a_prompt_of_ones_own_asks_for_comparisons():
    prompt = own("{problem_description} <message>\n{first}\n</message> <message>\n{second}\n</message>")
    found, prompts = asked(longer, ["a", "abc"], comparing=prompt)
    assert found == [-1.0, 1.0]
    assert prompts[0].startswith("Write t. <message>")
    assert not any(SECRET in prompt for prompt in prompts)


def test_a_prompt_of_ones_own_asks_for_grades():
    found, prompts = asked(lambda _: "GRADE: 2", ["a"], grading=own("Grade {output}"))
    assert (found, prompts) == ([1.0], ["Grade a"])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"comparing": own("Which? {first}")}, r"mine.txt: the prompt has no field \{second\}"),
        ({"comparing": own("{first} {second} {output}")}, r"nothing fills the field \{output\}"),
        ({"grading": own("{first} {second}")}, r"nothing fills the field \{first\}"),
    ],
)
def test_a_prompt_that_shows_something_else_is_refused(options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        JudgeCritic(ScriptedModel([]), **options)


def test_judges_that_are_asked_otherwise_have_other_names():
    prompts = [own("{first} {second}"), own("{first} or {second}")]
    critics = [
        JudgeCritic(ScriptedModel([])),
        JudgeCritic(ScriptedModel([]), rounds=5),
        *(JudgeCritic(ScriptedModel([]), comparing=prompt) for prompt in prompts),
    ]
    names = [critic.name for critic in critics]
    assert names[:2] == ["judge:scripted", "judge:scripted in 5 rounds"]
    assert all(name.startswith("judge:scripted by mine.txt ") for name in names[2:])
    assert len(set(names)) == 4
