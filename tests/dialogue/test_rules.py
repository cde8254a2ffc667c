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
    find_page,
    last_page,
    marked_answer,
    spoken,
    without_page,
)
from sweetrl.types import Ending, Kind

PAGE = "<html><body>one</body></html>"
OTHER_PAGE = "<HTML lang='en'>\n<body>two</body>\n</HTML>"
plain = st.text().filter(lambda text: OUTPUT_MARKER not in text and ANSWER_MARKER not in text)


# ---------------------------------------------------------------- thoughts


def test_a_thought_before_output_is_dropped() -> None:
    assert spoken("THOUGHT: they want rounding.\nOUTPUT: How do you round?") == "How do you round?"


def test_without_output_everything_is_said() -> None:
    assert spoken("  How do you round?\n") == "How do you round?"


def test_only_the_first_output_ends_the_thought() -> None:
    assert spoken("thought OUTPUT: print('OUTPUT: 3')") == "print('OUTPUT: 3')"


def test_an_output_that_opens_with_the_answer_is_not_taken_for_a_thought() -> None:
    answer = "I WANT TO ANSWER:\nprint('OUTPUT: 3')"
    assert spoken(answer) == answer


def test_an_answer_marker_in_a_thought_does_not_count() -> None:
    said = spoken("I could say I WANT TO ANSWER: but no. OUTPUT: What about zero?")
    assert marked_answer(said) is None


@given(plain, st.text())
def test_nothing_of_a_thought_is_said(thought: str, rest: str) -> None:
    assert spoken(thought + OUTPUT_MARKER + rest) == rest.strip()


@given(st.text())
def test_what_is_said_is_part_of_the_output(output: str) -> None:
    assert spoken(output) in output


# ---------------------------------------------------------------- answers


def test_the_answer_is_what_follows_the_marker() -> None:
    assert marked_answer("Thanks! I WANT TO ANSWER:\ndef f():\n    return 1\n") == "def f():\n    return 1"


def test_the_marker_alone_is_an_empty_answer() -> None:
    assert marked_answer("I WANT TO ANSWER:") == ""


def test_the_marker_is_exact() -> None:
    assert marked_answer("i want to answer: 1") is None
    assert marked_answer("I WANT TO ANSWER 1") is None


@given(plain, st.text())
def test_a_marked_answer_is_found_wherever_it_stands(before: str, answer: str) -> None:
    assert marked_answer(before + ANSWER_MARKER + answer) == answer.strip()


# ---------------------------------------------------------------- replies


@pytest.mark.parametrize(("kind", "length"), [(Kind.BACKEND, 400), (Kind.FRONTEND, 1000)])
def test_a_reply_is_cut_at_the_length_of_its_kind(kind: Kind, length: int) -> None:
    assert cut_reply("x" * length, kind) == "x" * length
    assert cut_reply("x" * length + "y", kind) == "x" * length


@given(st.text(), st.sampled_from(Kind))
def test_a_cut_reply_is_a_beginning_of_the_reply(text: str, kind: Kind) -> None:
    assert text.strip().startswith(cut_reply(text, kind))


# ---------------------------------------------------------------- pages


def test_a_page_is_found_in_prose_and_in_fences() -> None:
    assert find_page(f"Here it is:\n{PAGE}\nDo you like it?") == PAGE
    assert find_page(f"```html\n{PAGE}\n```") == PAGE


def test_the_document_type_belongs_to_the_page() -> None:
    assert find_page(f"Look: <!DOCTYPE html>\n{PAGE}") == f"<!DOCTYPE html>\n{PAGE}"


def test_the_last_page_of_a_message_counts() -> None:
    assert find_page(f"not {PAGE} but {OTHER_PAGE}") == OTHER_PAGE


def test_a_mention_of_the_tag_is_not_the_start_of_the_page() -> None:
    assert find_page(f"I put all in <html> tags: {PAGE}") == PAGE
    assert find_page(f"{PAGE} I put all in <html> tags.") == PAGE


def test_a_page_that_breaks_off_is_a_page() -> None:
    assert find_page("<html><body>half") == "<html><body>half"
    assert find_page("```html\n<html><body>half\n```\nsorry") == "<html><body>half"


def test_a_fenced_fragment_is_a_page() -> None:
    assert find_page("```html\n<div>hi</div>\n```") == "<div>hi</div>"


@pytest.mark.parametrize("text", ["", "no page", "```python\nx\n```", "```html\n```", "</html>", "<htmlx>"])
def test_a_message_without_a_page_has_none(text: str) -> None:
    assert find_page(text) is None


def test_the_last_page_shown_may_be_some_turns_back() -> None:
    assert last_page([PAGE, OTHER_PAGE, "What about the colour?"]) == OTHER_PAGE
    assert last_page(["hello", "What about the colour?"]) is None


def test_a_page_can_be_left_out_of_a_message() -> None:
    assert without_page(f"See {PAGE} now", "(page)") == "See (page) now"
    assert without_page("nothing to see", "(page)") == "nothing to see"


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="<>")), st.text(alphabet="abc \n"))
def test_a_closed_page_is_found_in_any_surroundings(before: str, body: str, after: str) -> None:
    page = f"<html>{body}</html>"
    assert (find_page(before + page + after) or "").endswith(page)


@given(st.text(alphabet="<>/html`! doctype\n"))
def test_a_page_is_part_of_its_message(text: str) -> None:
    page = find_page(text)
    assert page is None or (page and page in text)


# ---------------------------------------------------------------- endings


def test_a_dialogue_goes_on_until_the_agent_answers() -> None:
    assert conclude(Kind.BACKEND, ["What about zero?"], Rules()) is None


def test_a_marked_answer_ends_it() -> None:
    said = ["What about zero?", "I WANT TO ANSWER: def f(): pass"]
    assert conclude(Kind.BACKEND, said, Rules()) == Conclusion(Ending.ANSWERED, "def f(): pass")


def test_the_tenth_message_of_a_programmer_is_the_answer() -> None:
    said = [f"question {number}?" for number in range(1, 11)]
    assert conclude(Kind.BACKEND, said[:9], Rules()) is None
    assert conclude(Kind.BACKEND, said, Rules()) == Conclusion(Ending.TURN_LIMIT, "question 10?")


def test_a_marked_answer_at_the_turn_limit_is_an_answer() -> None:
    said = ["?"] * 9 + ["I WANT TO ANSWER: x"]
    assert conclude(Kind.BACKEND, said, Rules()) == Conclusion(Ending.ANSWERED, "x")


def test_at_the_turn_limit_a_designer_answers_with_the_last_page_shown() -> None:
    said = ["?"] * 5 + [PAGE] + ["?"] * 4
    assert conclude(Kind.FRONTEND, said, Rules()) == Conclusion(Ending.TURN_LIMIT, PAGE)


def test_a_designer_who_showed_no_page_has_no_answer() -> None:
    assert conclude(Kind.FRONTEND, ["?"] * 10, Rules()) == Conclusion(Ending.TURN_LIMIT, None)


def test_a_designer_answers_with_the_page_after_the_marker_or_else_the_last_one_shown() -> None:
    final = [PAGE, f"I WANT TO ANSWER: {OTHER_PAGE}"]
    assert conclude(Kind.FRONTEND, final, Rules()) == Conclusion(Ending.ANSWERED, OTHER_PAGE)
    as_shown = [PAGE, "I WANT TO ANSWER: the page above"]
    assert conclude(Kind.FRONTEND, as_shown, Rules()) == Conclusion(Ending.ANSWERED, PAGE)


def test_an_agent_that_breaks_off_is_judged_by_what_it_said_last() -> None:
    assert broken_off(Kind.BACKEND, ["One?", "def f(): ..."]) == (Ending.BROKE_OFF, "def f(): ...")
    assert broken_off(Kind.BACKEND, []) == (Ending.BROKE_OFF, None)
    assert broken_off(Kind.FRONTEND, ["<html>1</html>", "ok?"]) == (Ending.BROKE_OFF, "<html>1</html>")
    assert broken_off(Kind.FRONTEND, ["ok?"]) == (Ending.BROKE_OFF, None)


def test_the_turn_limit_can_be_another() -> None:
    assert conclude(Kind.BACKEND, ["a", "b"], Rules(turn_limit=2)) == Conclusion(Ending.TURN_LIMIT, "b")


def test_in_single_turn_mode_the_only_message_is_the_answer_with_or_without_marker() -> None:
    rules = Rules(single_turn=True)
    assert conclude(Kind.BACKEND, ["def f(): pass"], rules) == Conclusion(Ending.ANSWERED, "def f(): pass")
    assert conclude(Kind.BACKEND, ["I WANT TO ANSWER: x"], rules) == Conclusion(Ending.ANSWERED, "x")
    assert conclude(Kind.FRONTEND, [PAGE], rules) == Conclusion(Ending.ANSWERED, PAGE)
    assert conclude(Kind.FRONTEND, ["no"], rules) == Conclusion(Ending.ANSWERED, None)


@given(st.lists(plain, min_size=1, max_size=12), st.integers(1, 12))
def test_a_dialogue_without_marker_ends_exactly_at_its_limit(said: list[str], limit: int) -> None:
    conclusion = conclude(Kind.BACKEND, said, Rules(turn_limit=limit))
    assert (conclusion is None) == (len(said) < limit)
