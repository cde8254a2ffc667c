"""The built-in programming tasks: what makes them tasks, and what is said about them."""

import random
import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains.backend.mini_backend import (
    asked_fact,
    hidden_facts,
    make_tasks,
    question_about,
    reply_to,
    turn_worth,
)
from sweetrl.domains.backend.mini_backend.corpus import (
    ABLE,
    ANSWER,
    HABITS,
    OPENERS,
    TURN_LIMIT,
    VARIED,
    Habits,
    cued_facts,
    hold_dialogue,
)
from sweetrl.domains.backend.mini_backend.facts import FAMILIES, IRRELEVANT
from sweetrl.domains.backend.mini_backend.making import SPLIT_SHARES, function_source, read_choice, split_of
from sweetrl.domains.backend.mini_backend.speech import IGNORANCE, _evidence, understand, written_from
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import UsageError
from sweetrl.types import Message, Role, Task

TASKS = list(make_tasks("train", 200, seed=5))
ALL_FACTS = [fact for family in FAMILIES for fact in family.facts]


def reference(task: Task) -> str:
    assert isinstance(task.secret, BackendSecret)
    return task.secret.reference


def run(source: str, call: str) -> object:
    scope: dict[str, object] = {}
    exec(source, scope)
    return eval(call, scope)


def results(source: str, task: Task) -> list[object]:
    assert isinstance(task.secret, BackendSecret)
    return [run(source, call) for call in task.secret.tests.values()]


def test_a_seed_always_makes_the_same_tasks_and_more_tasks_only_add_to_them() -> None:
    assert list(make_tasks("test", 20, seed=3)) == list(make_tasks("test", 30, seed=3))[:20]
    assert list(make_tasks("test", 20, seed=3)) != list(make_tasks("test", 20, seed=4))


def test_tasks_have_ids_and_requests_of_their_own_and_ten_calls() -> None:
    assert len({task.id for task in TASKS}) == len({task.request for task in TASKS}) == len(TASKS)
    assert {len(task.secret.tests) for task in TASKS if isinstance(task.secret, BackendSecret)} == {10}


def test_no_reference_is_in_two_splits_whatever_its_name() -> None:
    bodies = {
        split: {tuple(reference(task).splitlines()[1:]) for task in make_tasks(split, 400, seed)}
        for seed, split in enumerate(SPLIT_SHARES)
    }
    train, validation, test = bodies.values()
    assert not (train & validation)
    assert not (train & test)
    assert not (validation & test)


def test_all_splits_are_drawn_from_the_same_kinds_of_task() -> None:
    for split in SPLIT_SHARES:
        drawn = list(make_tasks(split, 300, 1))
        assert {fact for task in drawn for fact in hidden_facts(task)} == {fact.name for fact in ALL_FACTS}


def test_a_split_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no split 'dev'; it has train, validation, test"):
        next(make_tasks("dev", 1))


@pytest.mark.parametrize("task", TASKS[:60], ids=lambda task: task.id)
def test_every_wrong_or_missing_step_is_caught_by_a_call(task: Task) -> None:
    family, choice = read_choice(reference(task))
    name = reference(task).removeprefix("def ").partition("(")[0]
    right = results(reference(task), task)
    for at, (fact, chosen) in enumerate(choice):
        codes = [value.code for _, value in choice]
        others = [[value.code] for value in fact.values if value != chosen]
        for instead in ([], *others):
            wrong = function_source(family, name, [*codes[:at], *instead, *codes[at + 1 :]])
            assert results(wrong, task) != right


def test_a_reference_can_be_read_back() -> None:
    for task in TASKS:
        family, choice = read_choice(reference(task))
        name = reference(task).removeprefix("def ").partition("(")[0]
        assert function_source(family, name, [value.code for _, value in choice]) == reference(task)
        assert split_of(choice) == task.split


def test_functions_of_others_are_refused() -> None:
    with pytest.raises(UsageError, match="not a reference of mini-backend"):
        read_choice("def f(x):\n    x = x + 1\n    return x")


def test_hints_tell_which_facts_are_likely_to_matter() -> None:
    drawn = list(make_tasks("train", 600, seed=2))
    hinted = [(hidden_facts(task), read_choice(reference(task))[0], task.request) for task in drawn]
    held = [fact.name in facts for facts, family, request in hinted for fact in cued_facts(request, family)]
    strays = [
        fact.name in facts
        for facts, family, request in hinted
        for fact in family.facts
        if fact not in cued_facts(request, family)
    ]
    assert 0.88 < sum(held) / len(held) < 0.98
    assert sum(strays) / len(strays) < 0.02


def test_a_hint_does_not_give_the_value_away() -> None:
    for fact in ALL_FACTS:
        phrases = [phrase for value in fact.values for phrase in value.phrases]
        assert not [(cue, phrase) for cue in fact.cues for phrase in phrases if phrase in cue.lower()]


# ---------------------------------------------------------------- speech


def test_no_two_values_of_a_fact_are_told_in_the_same_words() -> None:
    for fact in ALL_FACTS:
        for one, two in permutations(fact.values, 2):
            assert not [phrase for phrase in one.phrases if any(phrase in other for other in two.phrases)]


def test_every_listed_question_is_understood_by_its_words_alone() -> None:
    for family in FAMILIES:
        for fact in family.facts:
            for question in fact.questions:
                words = " ".join(re.findall("[a-z]+", question.lower()))
                best = max(family.facts, key=lambda each: _evidence(each, words))
                assert best == fact, question


@pytest.mark.parametrize("opener", OPENERS)
def test_a_question_means_the_same_after_an_opener(opener: str) -> None:
    for family in FAMILIES:
        questions = [*IRRELEVANT, *(question for fact in family.facts for question in fact.questions)]
        for question in questions:
            assert understand(f"{opener} {question}", [family]) == understand(question, [family])
            assert asked_fact(f"{opener} {question}") == asked_fact(question)


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Do you want it in uppercase or lowercase?", "case"),
        ("should blanks be replaced by anything", "spaces"),
        ("Is there any prefix I should put?", "start"),
        ("What's the minimum value?", "least"),
        ("Are results rounded to the nearest ten?", "step"),
        ("Do I have to convert the currency?", "unit"),
        ("How many characters at most, any length limit?", "length"),
        ("Hello there.", None),
    ],
)
def test_people_may_ask_in_their_own_words(question: str, fact: str | None) -> None:
    assert asked_fact(question) == fact


def test_the_colleague_tells_the_value_of_a_fact_that_matters_and_knows_nothing_of_others() -> None:
    for task in TASKS[:50]:
        family, choice = read_choice(reference(task))
        values = dict(choice)
        for fact in family.facts:
            reply = reply_to(task, fact.questions[0], seed=1)
            told = [value for value in fact.values if any(phrase in reply for phrase in value.phrases)]
            assert told == ([values[fact]] if fact in values else [])
            assert (reply in IGNORANCE) == (fact not in values)


def test_the_colleague_words_its_replies_in_several_ways() -> None:
    _family, choice = read_choice(reference(TASKS[0]))
    question = choice[0][0].questions[0]
    assert len({reply_to(TASKS[0], question, seed) for seed in range(50)}) > 4


def test_irrelevant_questions_get_no_information() -> None:
    assert {reply_to(task, question, 0) for task in TASKS[:20] for question in IRRELEVANT} <= set(IGNORANCE)


@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text: str) -> None:
    assert reply_to(TASKS[0], text, 0)
    assert understand(text, FAMILIES) is None or asked_fact(text) is not None


# ---------------------------------------------------------------- corpus


def test_dialogues_of_the_corpus_end_with_an_answer_within_the_limit() -> None:
    for task in TASKS:
        said = hold_dialogue(task, 0)
        assert said[0].text == task.request
        assert [message.role for message in said[::2]] == [Role.USER] * (len(said) // 2)
        assert said[-1].text.startswith("I WANT TO ANSWER:\ndef ")
        assert len(said) // 2 <= TURN_LIMIT


def test_a_perfect_programmer_would_solve_nearly_all_tasks() -> None:
    perfect = Habits(understands=3, follow=1.0, repeat=0.0, hurry=0.0)
    solved = [hold_dialogue(task, 0, perfect)[-1].text.endswith(reference(task)) for task in TASKS]
    assert sum(solved) / len(solved) > 0.9


def test_the_programmer_whom_the_larger_model_imitates_succeeds_twice_as_often() -> None:
    def solved(habits: Habits) -> int:
        dialogues = [(task, hold_dialogue(task, seed, habits)) for task in TASKS for seed in range(10)]
        return sum(said[-1].text.endswith(reference(task)) for task, said in dialogues)

    assert solved(ABLE) > 1.8 * solved(HABITS)


def test_what_was_told_can_be_written_down_exactly() -> None:
    perfect = Habits(understands=3, follow=1.0, repeat=0.0, hurry=0.0)
    for task in TASKS[:50]:
        *history, answer = hold_dialogue(task, 0, perfect)
        assert answer.text.endswith(written_from(history))


def test_the_programmer_takes_only_some_cues_as_hints() -> None:
    for task in TASKS:
        family, _ = read_choice(reference(task))
        hinted, understood = cued_facts(task.request, family), cued_facts(task.request, family, understood=1)
        assert set(understood) <= set(hinted)
    assert 0.2 < sum(_understood_share(task) for task in TASKS) / len(TASKS) < 0.5


def _understood_share(task: Task) -> float:
    family, _ = read_choice(reference(task))
    return len(cued_facts(task.request, family, understood=1)) / len(cued_facts(task.request, family))


def _questions(habits: Habits) -> list[str]:
    said = (message for task in TASKS for message in hold_dialogue(task, 0, habits)[:-1])
    return [message.text for message in said if message.role is Role.ASSISTANT]


def test_questions_vary_in_words_and_length_if_they_shall() -> None:
    plain, varied = _questions(HABITS), _questions(VARIED)
    assert not any(question.startswith(OPENERS) for question in plain)
    opened = sum(question.startswith(OPENERS) for question in varied) / len(varied)
    assert opened == pytest.approx(0.5, abs=0.05)
    third = {fact.questions[2] for fact in ALL_FACTS}
    assert not third & set(plain)
    assert third <= {question.partition(": ")[2] or question for question in varied}


# ---------------------------------------------------------------- what a turn is worth


@pytest.mark.parametrize("habits", [HABITS, VARIED], ids=["plain", "varied"])
def test_the_enumerated_chance_of_success_is_that_of_the_programmer(habits: Habits) -> None:
    dialogues = [(task, hold_dialogue(task, seed, habits)) for task in TASKS for seed in range(20)]
    succeeded = sum(said[-1].text.endswith(reference(task)) for task, said in dialogues) / len(dialogues)
    expected = sum(_chance_at_first(task) for task in TASKS) / len(TASKS)
    assert succeeded == pytest.approx(expected, abs=0.02)  # three standard errors


@pytest.mark.parametrize("number", range(3))
def test_what_the_turns_of_a_dialogue_are_worth_adds_up_to_its_outcome(number: int) -> None:
    for task in TASKS[:50]:
        said = hold_dialogue(task, number)
        worth = [turn_worth(task, said[:at], said[at].text) for at in range(1, len(said), 2)]
        outcome = float(said[-1].text.endswith(reference(task)))
        assert _chance_at_first(task) + sum(worth) == pytest.approx(outcome)


def _chance_at_first(task: Task) -> float:
    """Of success, read off a right answer at the first turn, which makes it certain."""
    return 1 - turn_worth(task, [Message(Role.USER, task.request)], ANSWER + reference(task))


def test_asking_for_what_matters_is_worth_more_than_asking_twice_or_about_nothing() -> None:
    for task in TASKS[:50]:
        asked = [Message(Role.USER, task.request)]
        facts = sorted(hidden_facts(task))
        useful = turn_worth(task, asked, question_about(facts[0], 0))
        nothing = turn_worth(task, asked, IRRELEVANT[0])
        wrong = turn_worth(task, asked, ANSWER + "def f(): pass")
        assert useful > 0 > nothing > wrong
        asked += [Message(Role.ASSISTANT, question_about(facts[0], 0)), Message(Role.USER, "It should.")]
        assert turn_worth(task, asked, question_about(facts[0], 1)) < 0


def test_the_tasks_are_a_source_like_any_other() -> None:
    assert list(load_tasks("mini-backend:train:5:5").values()) == TASKS[:5]


def test_seeded_wording_does_not_depend_on_the_global_generator() -> None:
    random.seed(1)
    first = hold_dialogue(TASKS[0], 7)
    random.seed(2)
    assert hold_dialogue(TASKS[0], 7) == first
