import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.dialogue.rules import (
    ANSWER_MARKER,
    OUTPUT_MARKER,
    Conclusion,
    Rules,
    broken_off,
    conclude,
    cut_reply,
    last_page,
    without_page,
)
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.domain import Domain
from sweetrl.domains.frontend.domain import FRONTEND
from sweetrl.types import Ending

PAGE = "<html><body>one</body></html>"
OTHER_PAGE = "<HTML lang='en'>\n<body>two</body>\n</HTML>"
plain = st.text().filter(lambda text: OUTPUT_MARKER not in text and ANSWER_MARKER not in text)


# ---------------------------------------------------------------- replies


@pytest.mark.parametrize(("kind", "length"), [(BACKEND, 400), (FRONTEND, 1000)])
def test_a_reply_is_cut_at_the_length_of_its_kind(kind: Domain, length: int) -> None:
    assert cut_reply("x" * length, kind) == "x" * length
    assert cut_reply("x" * length + "y", kind) == "x" * length


@given(st.text(), st.sampled_from([BACKEND, FRONTEND]))
def test_a_cut_reply_is_a_beginning_of_the_reply(text: str, kind: Domain) -> None:
    assert text.strip().startswith(cut_reply(text, kind))


# ---------------------------------------------------------------- pages


def test_the_last_page_shown_may_be_some_turns_back() -> None:
    assert last_page([PAGE, OTHER_PAGE, "What about the colour?"]) == OTHER_PAGE
    assert last_page(["hello", "What about the colour?"]) is None


def test_a_page_can_be_left_out_of_a_message() -> None:
    assert without_page(f"See {PAGE} now", "(page)") == "See (page) now"
    assert without_page("nothing to see", "(page)") == "nothing to see"


# ---------------------------------------------------------------- endings


def test_a_dialogue_goes_on_until_the_agent_answers() -> None:
    assert conclude(BACKEND, ["What about zero?"], Rules()) is None


def test_a_marked_answer_ends_it() -> None:
    said = ["What about zero?", "I WANT TO ANSWER: def f(): pass"]
    assert conclude(BACKEND, said, Rules()) == Conclusion(Ending.ANSWERED, "def f(): pass")


def test_the_tenth_message_of_a_programmer_is_the_answer() -> None:
    said = [f"question {number}?" for number in range(1, 11)]
    assert conclude(BACKEND, said[:9], Rules()) is None
    assert conclude(BACKEND, said, Rules()) == Conclusion(Ending.TURN_LIMIT, "question 10?")


def test_a_marked_answer_at_the_turn_limit_is_an_answer() -> None:
    said = ["?"] * 9 + ["I WANT TO ANSWER: x"]
    assert conclude(BACKEND, said, Rules()) == Conclusion(Ending.ANSWERED, "x")


def test_at_the_turn_limit_a_designer_answers_with_the_last_page_shown() -> None:
    said = ["?"] * 5 + [PAGE] + ["?"] * 4
    assert conclude(FRONTEND, said, Rules()) == Conclusion(Ending.TURN_LIMIT, PAGE)


def test_a_designer_who_showed_no_page_has_no_answer() -> None:
    assert conclude(FRONTEND, ["?"] * 10, Rules()) == Conclusion(Ending.TURN_LIMIT, None)


def test_a_designer_answers_with_the_page_after_the_marker_or_else_the_last_one_shown() -> None:
    final = [PAGE, f"I WANT TO ANSWER: {OTHER_PAGE}"]
    assert conclude(FRONTEND, final, Rules()) == Conclusion(Ending.ANSWERED, OTHER_PAGE)
    as_shown = [PAGE, "I WANT TO ANSWER: the page above"]
    assert conclude(FRONTEND, as_shown, Rules()) == Conclusion(Ending.ANSWERED, PAGE)


def test_an_agent_that_breaks_off_is_judged_by_what_it_said_last() -> None:
    assert broken_off(BACKEND, ["One?", "def f(): ..."]) == (Ending.BROKE_OFF, "def f(): ...")
    assert broken_off(BACKEND, []) == (Ending.BROKE_OFF, None)
    assert broken_off(FRONTEND, ["<html>1</html>", "ok?"]) == (Ending.BROKE_OFF, "<html>1</html>")
    assert broken_off(FRONTEND, ["ok?"]) == (Ending.BROKE_OFF, None)


def test_the_turn_limit_can_be_another() -> None:
    assert conclude(BACKEND, ["a", "b"], Rules(turn_limit=2)) == Conclusion(Ending.TURN_LIMIT, "b")


def test_in_single_turn_mode_the_only_message_is_the_answer_with_or_without_marker() -> None:
    rules = Rules(single_turn=True)
    assert conclude(BACKEND, ["def f(): pass"], rules) == Conclusion(Ending.ANSWERED, "def f(): pass")
    assert conclude(BACKEND, ["I WANT TO ANSWER: x"], rules) == Conclusion(Ending.ANSWERED, "x")
    assert conclude(FRONTEND, [PAGE], rules) == Conclusion(Ending.ANSWERED, PAGE)
    assert conclude(FRONTEND, ["no"], rules) == Conclusion(Ending.ANSWERED, None)


@given(st.lists(plain, min_size=1, max_size=12), st.integers(1, 12))
def test_a_dialogue_without_marker_ends_exactly_at_its_limit(said: list[str], limit: int) -> None:
    conclusion = conclude(BACKEND, said, Rules(turn_limit=limit))
    assert (conclusion is None) == (len(said) < limit)
