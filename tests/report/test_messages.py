from report.reading import read
from sweetrl.report.messages import Piece, message, pieces


def test_fenced_code_is_told_from_prose():
    said = "Here it is:\n```python\ndef f():\n    pass\n```\nAll right?"
    assert pieces(said) == [
        Piece("Here it is:\n"),
        Piece("def f():\n    pass", "python"),
        Piece("\nAll right?"),
    ]


def test_a_fence_without_end_reaches_to_the_end():
    assert pieces("So:\n```\nx = 1\n") == [Piece("So:\n"), Piece("x = 1\n", "python")]


def test_a_page_and_the_words_around_it():
    page = "<!doctype html>\n<html><p>Hi</p></html>"
    assert pieces(f"Look: {page} Better?") == [Piece("Look: "), Piece(page, "html"), Piece(" Better?")]


def test_a_bare_function_after_the_marker_is_code():
    assert pieces("I WANT TO ANSWER:\ndef f():\n    return 1") == [
        Piece("I WANT TO ANSWER:\n"),
        Piece("def f():\n    return 1", "python"),
    ]


def test_prose_about_definitions_stays_prose():
    assert pieces("Is the default def or class?") == [Piece("Is the default def or class?")]


def test_long_code_and_every_page_are_folded():
    short, long = "x = 1\n" * 5, "x = 1\n" * 50
    assert read(message(f"```\n{short}```")).all("details") == []
    assert read(message(f"```\n{long}```")).one("summary").text == "code, 50 lines"
    assert read(message("<html>\n" + "<p>\n" * 20)).one("summary").text == "HTML page, 21 lines"


def test_a_huge_message_is_cut_with_a_note():
    shown = read(message("word " * 100_000))
    assert shown.one(class_="cut").text == "… 494,000 more characters are left out"
    assert len(shown.text) < 7000
