import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.reading import read
from sweetrl.report.highlight import highlight, language_of
from sweetrl.report.markup import text

CODE = st.text("abdefr'\"#\\\r\n <>/=!-123&{}\x00\u202e\ud800\ufeff")


@given(CODE, st.sampled_from(["python", "html", "text"]))
def test_colour_changes_no_character(code, language):
    assert read(highlight(code, language)).text == read(text(code)).text


def coloured(code, language):
    return [
        (node.classes[0].removeprefix("code-"), node.text) for node in read(highlight(code, language)).all()
    ]


def test_python_has_its_words_coloured():
    code = 'def fee(days):\n    return 20.5 * days  # "per" day\n'
    assert coloured(code, "python") == [
        ("keyword", "def"),
        ("name", "fee"),
        ("keyword", "return"),
        ("number", "20.5"),
        ("comment", '# "per" day'),
    ]


@pytest.mark.parametrize("literal", ['"a # b"', "'it\\'s'", '"""a\n"b" """', 'f"a{{b}}"', '"unfinished'])
def test_a_python_string_is_one_piece(literal):
    assert coloured(f"x = {literal}", "python") == [("string", literal)]


def test_what_an_f_string_computes_is_code():
    assert coloured('f"{x + 1} days"', "python") == [
        ("string", 'f"{'),
        ("number", "1"),
        ("string", '} days"'),
    ]


def test_html_has_tags_and_attributes_coloured_but_not_its_prose():
    code = '<p class="a > b">it\'s <!-- <b> -->fine</p>'
    assert coloured(code, "html") == [
        ("keyword", "p"),
        ("string", '"a > b"'),
        ("comment", "<!-- <b> -->"),
        ("keyword", "p"),
    ]


HOSTILE = (
    "</code></pre><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"</span><script>alert(1)</script>"',
    "# </span><svg onload=alert(1)>",
    "<!-- --><script>alert(1)</script>",
    "<style></style><script>alert(1)//</script",
    "def </span><b>():",
    "&lt;script&gt;",
)


@pytest.mark.parametrize("code", HOSTILE)
@pytest.mark.parametrize("language", ["python", "html", "text"])
def test_code_that_is_markup_stays_text(code, language):
    page = read(highlight(code, language))
    assert page.text == code
    assert {node.name for node in page.all()} <= {"span"}
    assert all(set(node.attributes) == {"class"} for node in page.all())


def test_the_language_is_told_by_the_look():
    assert language_of("<!DOCTYPE html>\n<html>") == "html"
    assert language_of("return a < b") == "python"
