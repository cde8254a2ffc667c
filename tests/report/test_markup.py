import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.reading import Node, read
from sweetrl.report.markup import Markup, cut, element, excerpt, join, text

ORDINARY = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Cf"], exclude_characters="\ufffe\uffff") | st.just("\n")
).filter(lambda value: not any(0xFDD0 <= ord(each) <= 0xFDEF for each in value))


@given(ORDINARY)
def test_any_text_is_shown_as_it_is(value):
    [node] = read(element("p", value)).children
    assert isinstance(node, Node)
    assert (node.name, node.text) == ("p", value)


@given(ORDINARY)
def test_any_attribute_keeps_its_value(value):
    [node] = read(element("p", title=value)).children
    assert isinstance(node, Node)
    assert node.attributes == {"title": value}


@given(st.text(st.characters()))
def test_no_text_at_all_becomes_an_element_or_breaks_the_encoding(value):
    html = element("p", value, title=value)
    assert [node.name for node in read(html).all()] == ["p"]
    assert html.encode().decode() == html


def test_markup_is_not_escaped_and_its_joined_text_is():
    inner = element("b", "<i>")
    assert element("p", inner, "&") == "<p><b>&lt;i&gt;</b>&amp;</p>"
    assert isinstance(join([inner, "<"]), Markup)


def test_attributes_are_spelt_as_html_does():
    assert element("td", class_="x", data_tip="y", hidden=True, id=None, open=False, width=1.5) == (
        '<td class="x" data-tip="y" hidden width="1.5"></td>'
    )
    assert element("img", alt="") == '<img alt="">'


@pytest.mark.parametrize(
    ("deceiving", "shown"),
    [
        ("a\u202eb", "a[U+202E]b"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]"),
        ("\x1b[2J", "␛[2J"),
        ("\x00", "␀"),
        ("\x7f", "\ufffd"),
        ("\ud83d", "\ufffd"),
        ("a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_characters_that_deceive_are_made_visible(deceiving, shown):
    assert text(deceiving) == shown


def test_long_text_is_cut_and_the_rest_counted():
    assert cut("x" * 50, 100) == ("x" * 50, 0)
    assert cut("x" * 250, 100) == ("x" * 100, 150)


@given(st.text(), st.integers(2, 50))
def test_an_excerpt_is_one_line_of_bounded_length(value, limit):
    shown = excerpt(value, limit)
    assert len(shown) <= limit
    assert "\n" not in shown


def test_an_excerpt_says_when_something_is_missing():
    assert excerpt("one two", 10) == "one two"
    assert excerpt("one two three", 8) == "one two…"
    assert excerpt(" " * 1000 + "end", 8).endswith("…")
