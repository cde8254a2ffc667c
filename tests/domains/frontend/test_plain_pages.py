"""Plain pages: the tasks, the builder that the tiny page model imitates, and the designer without a browser."""

import asyncio
import random
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

import pytest

from sweetrl.browser.pool import BrowserPool
from sweetrl.domains.frontend.colours import colour_name
from sweetrl.domains.frontend.designer import SATISFIED, remark
from sweetrl.domains.frontend.layout import features_of, page_similarity
from sweetrl.domains.frontend.mini_frontend import BUSINESSES, Design, page_of, split_of
from sweetrl.domains.frontend.plain_pages.builder import (
    GUESSING,
    HABITS,
    KNOWING,
    LISTENING,
    Habits,
    MediocreBuilder,
    business_of,
    hold_dialogue,
    meant,
    mended,
    named_choices,
    next_output,
)
from sweetrl.domains.frontend.plain_pages.designs import (
    CHOICES,
    Choices,
    draw_choices,
    make_tasks,
    plain_design,
    read_choices,
    right_choices,
    written_page,
)
from sweetrl.domains.frontend.plain_pages.sketch import COLOURS, remark_on
from sweetrl.domains.frontend.scorer import SUCCESS
from sweetrl.domains.frontend.secret import frontend_secret
from sweetrl.errors import UsageError
from sweetrl.types import Message, Role, Shot, Task

TASKS = list(make_tasks("train", 300, 7))
ANSWER = "I WANT TO ANSWER:\n"


def rng_of(seed: int) -> random.Random:
    return random.Random(seed)


def with_changes(wanted: Choices, count: int, rng: random.Random) -> Choices:
    """`count` choices differ."""
    changed = dict(wanted)
    for name in rng.sample(list(CHOICES), count):
        changed[name] = rng.choice([value for value in CHOICES[name] if value != wanted[name]])
    return changed


def drafts(dialogue: list[Message]) -> list[Choices]:
    return [read_choices(message.text) for message in dialogue if message.role is Role.ASSISTANT]


def share_of_successes(habits: Habits) -> float:
    answers = [(task, hold_dialogue(task, 0, habits)[-1].text) for task in TASKS]
    return fmean(right_choices(task, [], answer) == 1 for task, answer in answers)


# ---------------------------------------------------------------- tasks


def test_a_seed_fixes_the_tasks_and_a_greater_count_only_adds() -> None:
    assert list(make_tasks("train", 5, 7)) == TASKS[:5]
    assert list(make_tasks("train", 5, 8)) != TASKS[:5]


def test_the_split_of_a_plain_page_is_that_of_any_page() -> None:
    for split in ("train", "validation", "test"):
        assert {split_of(frontend_secret(task).page) for task in make_tasks(split, 30, 1)} == {split}


def test_all_values_of_all_choices_are_drawn_and_can_be_read_from_the_page() -> None:
    found = [read_choices(frontend_secret(task).page) for task in TASKS]
    assert {name: {each[name] for each in found} for name in CHOICES} == {
        name: set(values) for name, values in CHOICES.items()
    }


def test_a_page_is_written_as_its_choices_were_read() -> None:
    for task in TASKS[:50]:
        page = frontend_secret(task).page
        assert written_page(business_of(task.request), read_choices(page)) == page


def test_the_designer_has_a_word_of_its_own_for_every_colour_of_a_part() -> None:
    for name in CHOICES:
        if name.endswith("_colour"):
            assert len({colour_name(COLOURS[value]) for value in CHOICES[name]}) == len(CHOICES[name])


# ---------------------------------------------------------------- the designer without a browser


def _pairs_of_pages() -> Iterator[tuple[Design, Design]]:
    rng = rng_of(5)
    for business in BUSINESSES:
        for count in (1, 3, 7):
            wanted = draw_choices(rng)
            shown = with_changes(wanted, count, rng)
            yield plain_design(business, wanted), plain_design(business, shown)


async def _rendered(pages: list[str]) -> list[Shot]:
    async with BrowserPool() as pool:
        return [await pool.render(page) for page in pages]


def test_remarks_on_sketches_are_those_on_rendered_pages() -> None:
    pairs = list(_pairs_of_pages())
    shots = iter(asyncio.run(_rendered([page_of(design) for pair in pairs for design in pair])))
    for wanted, shown in pairs:
        assert remark_on(wanted, shown) == remark(next(shots), next(shots))


def test_a_page_with_one_wrong_choice_is_no_success() -> None:
    wanted = draw_choices(rng_of(1))
    others = [
        {**wanted, name: value}
        for name, values in CHOICES.items()
        for value in values
        if value != wanted[name]
    ]
    pages = [written_page(BUSINESSES[0], choices) for choices in (wanted, *others)]
    reference, *wrong = map(features_of, asyncio.run(_rendered(pages)))
    assert max(page_similarity(reference, draft).score for draft in wrong) < SUCCESS


def test_the_designer_is_satisfied_with_the_wanted_page_alone() -> None:
    for wanted, shown in _pairs_of_pages():
        assert remark_on(wanted, wanted) == SATISFIED
        assert remark_on(wanted, shown) != SATISFIED


# ---------------------------------------------------------------- the builder


def test_every_sentence_of_the_designer_names_a_choice_that_is_wrong() -> None:
    for wanted, shown in _pairs_of_pages():
        said = remark_on(wanted, shown)
        named = dict(named_choices(said))
        assert len(named) == said.count(" should ")
        assert all(getattr(wanted, name) != getattr(shown, name) for name in named)


def test_the_wanted_value_is_among_those_that_the_words_fit() -> None:
    for wanted, shown in _pairs_of_pages():
        for name, words in named_choices(remark_on(wanted, shown)):
            assert getattr(wanted, name) in meant(name, words, getattr(shown, name))


def test_a_listening_builder_mends_what_was_named_and_nothing_else() -> None:
    before = draw_choices(rng_of(0)) | {"header_colour": "red-600", "footer_align": "left"}
    said = (
        "The header should be pink instead of red. "
        "The text of the paragraph should be centred instead of on the left."
    )
    after = mended(before, said, rng_of(1), LISTENING)
    assert after == before | {"header_colour": "pink-600", "footer_align": "center"}


def test_the_mediocre_builder_tries_something_else_for_a_word_that_it_does_not_know() -> None:
    before = draw_choices(rng_of(0)) | {"header_colour": "red-600"}
    tried = {
        mended(before, "The header should be pink instead of red.", rng_of(seed), HABITS)["header_colour"]
        for seed in range(200)
    }
    assert tried == set(CHOICES["header_colour"])  # red where it does not listen


def test_what_a_builder_does_depends_on_the_last_draft_and_remark_alone() -> None:
    request = Message(Role.USER, TASKS[0].request)
    [first, last] = [
        Message(Role.ASSISTANT, written_page(BUSINESSES[0], draw_choices(rng_of(k)))) for k in (1, 2)
    ]
    said = Message(Role.USER, "The header should be pink instead of red.")
    one, other = [request, last, said], [request, first, said, last, said]
    assert next_output(one, rng_of(3), HABITS, 9) == next_output(other, rng_of(3), HABITS, 9)


def test_dialogues_follow_from_task_and_seed_and_end_with_an_answer_in_time() -> None:
    for task in TASKS[:50]:
        dialogue = hold_dialogue(task, 1)
        assert dialogue == hold_dialogue(task, 1)
        assert [message.role for message in dialogue[:2]] == [Role.USER, Role.ASSISTANT]
        *shown, answer = [message.text for message in dialogue if message.role is Role.ASSISTANT]
        assert answer.startswith(ANSWER)
        assert not any(text.startswith(ANSWER) for text in shown)
        assert len(shown) < 5
    assert any(hold_dialogue(task, 1) != hold_dialogue(task, 2) for task in TASKS[:50])


def test_the_replies_of_a_dialogue_are_the_designers() -> None:
    for task in TASKS[:50]:
        dialogue = hold_dialogue(task, 0)
        business, wanted = business_of(task.request), read_choices(frontend_secret(task).page)
        for draft, reply in pairwise(dialogue[1:]):
            if draft.role is Role.ASSISTANT:
                shown = plain_design(business, read_choices(draft.text))
                assert reply.text == remark_on(plain_design(business, wanted), shown)


def test_there_is_something_to_learn_between_chance_and_doing_what_is_said() -> None:
    assert share_of_successes(GUESSING) < 0.02
    assert 0.05 < share_of_successes(HABITS) < 0.2
    assert share_of_successes(LISTENING) == 1


def test_a_builder_who_has_read_the_reference_comes_nearer_than_the_remarks_explain() -> None:
    def right_at_second_draft(habits: Habits) -> float:
        found = []
        for task in TASKS[:100]:
            wanted, second = (
                read_choices(frontend_secret(task).page),
                drafts(hold_dialogue(task, 0, habits))[1],
            )
            found.append(sum(second[name] == value for name, value in wanted.items()))
        return fmean(found)

    assert right_at_second_draft(KNOWING) > right_at_second_draft(LISTENING) + 1


def test_as_an_agent_it_needs_no_task_and_draws_every_draft_for_itself() -> None:
    def sampled() -> list[str]:
        history = [Message(Role.USER, TASKS[0].request)]
        return asyncio.run(MediocreBuilder([], 5).sample(history, n=4, seed=1))

    assert len(set(sampled())) == 4
    assert sampled() == sampled()


def test_as_an_agent_it_refuses_tasks_of_another_kind() -> None:
    task = Task(id="shop", domain="frontend", request="A shop.", secret=TASKS[0].secret)
    with pytest.raises(UsageError, match=r"knows mini-frontend-plain tasks only, and not 'A shop\.'"):
        MediocreBuilder([task], 5)


# ---------------------------------------------------------------- the oracle


def output_with(task: Task, wrong: int) -> str:
    wanted = read_choices(frontend_secret(task).page)
    return written_page(business_of(task.request), with_changes(wanted, wrong, rng_of(wrong)))


def test_the_oracle_counts_right_choices() -> None:
    shares = [right_choices(TASKS[0], [], output_with(TASKS[0], wrong)) for wrong in range(8)]
    assert shares == [pytest.approx((7 - wrong) / 7) for wrong in range(8)]
    assert right_choices(TASKS[0], [], "What colour is the header?") == 0


def test_the_oracle_likes_a_draft_better_than_handing_in_the_same_wrong_page() -> None:
    wrong, right = output_with(TASKS[0], 1), output_with(TASKS[0], 0)
    assert right_choices(TASKS[0], [], wrong) > right_choices(TASKS[0], [], ANSWER + wrong)
    assert right_choices(TASKS[0], [], right) == right_choices(TASKS[0], [], ANSWER + right)
