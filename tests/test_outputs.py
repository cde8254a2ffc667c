"""Taking outputs apart: thoughts, markers, code blocks and pages."""

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweetrl.outputs import (
    ANSWER_MARKER,
    OUTPUT_MARKER,
    fenced_blocks,
    find_page,
    marked_answer,
    spoken,
    unescaped,
)

PAGE = "<html><body>one</body></html>"
OTHER_PAGE = "<HTML lang='en'>\n<body>two</body>\n</HTML>"
PROSE = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="`~\"'#<>:")
prose = st.text(PROSE).map(str.strip)


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


@given(prose, st.text(PROSE))
def test_nothing_of_a_thought_is_said(thought: str, rest: str) -> None:
    assert spoken(f"{thought}\n{OUTPUT_MARKER} {rest}") == rest.strip()
    assert spoken(f"{thought} {OUTPUT_MARKER}\n{rest}").strip() == rest.strip()


@given(st.text())
def test_what_is_said_is_part_of_the_output(output: str) -> None:
    assert spoken(output) in output


@pytest.mark.parametrize(
    "separator",
    ["OUTPUT:", "**OUTPUT:**", "## OUTPUT:", "# OUTPUT:", "## OUTPUT: ", "  OUTPUT:", "I know. OUTPUT:"],
)
def test_a_separator_may_be_dressed(separator: str) -> None:
    assert spoken(f'They\'d "like" it sorted.\n{separator}\nBy what?') == "By what?"


CODE_WITH_OUTPUT = {
    "string": 'print("OUTPUT:", x)',
    "f-string": "print(f'The OUTPUT: {x}')",
    "constant": 'LABEL = "OUTPUT: "',
    "comment": "x = 1  # OUTPUT: a number",
    "comment line": "# OUTPUT: a number",
    "docstring": 'def f(x):\n    """Adds.\n\n    OUTPUT: a number\n    """\n    return x',
    "docstring at the margin": 'def f(x):\n    """\nOUTPUT:\n    a number\n"""\n    return x',
    "condition": "def f(x):\n    if x == OUTPUT:\n        return 1",
    "small indent": "def f(x):\n  if x == OUTPUT:\n    return 1",
    "slice": "y = x[OUTPUT:]",
    "longer name": "if x is MY_OUTPUT: y = 1",
    "fence": "```python\nOUTPUT: int = 3\n```",
    "inline code": "Should lines begin with `OUTPUT:` or not?",
    "page": "<html><body>\n<pre>\nOUTPUT: 3\n</pre></body></html>",
    "page that breaks off": "<html><body><pre>OUTPUT: 3</pre>",
    "after the marker": "Thanks.\nI WANT TO ANSWER:\nOUTPUT: int = 3",
    "below an answer": "Thanks! I WANT TO ANSWER: ```\nx = 1\n```\nOUTPUT: nothing",
    "below an answer on lines of its own": "Thanks! I WANT TO ANSWER:\nx = 1\nOUTPUT: nothing",
}


@pytest.mark.parametrize("output", CODE_WITH_OUTPUT.values(), ids=CODE_WITH_OUTPUT)
def test_output_in_code_ends_no_thought(output: str) -> None:
    assert spoken(output) == output
    assert spoken(f"I think so.\nOUTPUT:\n{output}") == output


THOUGHTS = {
    "draft in a fence": "```python\nprint('OUTPUT: 1')\n```",
    "draft in a fence that stays open": "```python\ndef f(",
    "bare draft": "def f(x):\n    return x",
    "quotes and apostrophes": "It's the users' \"list\", 5' long.",
    "marker in the middle of a line": "Soon I can say I WANT TO ANSWER: and then the code.",
    "marker that opens a line": "I WANT TO ANSWER: is what I should write now.",
    "page": PAGE,
    "tag": "I put all in <html> tags.",
}


@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
def test_whatever_is_thought_is_dropped_before_an_answer(thought: str) -> None:
    answer = "I WANT TO ANSWER:\n```python\ndef f(x): ...\n```"
    assert spoken(f"{thought}\nOUTPUT:\n{answer}") == answer


@pytest.mark.parametrize("tag", ["think", "thinking"])
def test_a_reasoning_block_is_a_thought(tag: str) -> None:
    assert (
        spoken(f"<{tag}>\nI WANT TO ANSWER: OUTPUT: no\n</{tag}>\n\nWhat about zero?") == "What about zero?"
    )
    assert spoken(f"I WANT TO ANSWER: no\n</{tag}>\n\nWhat about zero?") == "What about zero?"


@pytest.mark.parametrize("code", ["x = s.split('</think>')[-1]", "x = 1\ny = '<think>a</think>'"])
def test_tags_of_reasoning_in_code_are_code(code: str) -> None:
    assert spoken(code) == code


# ---------------------------------------------------------------- answers


def test_the_answer_is_what_follows_the_marker() -> None:
    assert marked_answer("Thanks! I WANT TO ANSWER:\ndef f():\n    return 1\n") == "def f():\n    return 1"


def test_the_marker_alone_is_an_empty_answer() -> None:
    assert marked_answer("I WANT TO ANSWER:") == ""


@pytest.mark.parametrize("text", ["I WANT TO ANSWER 1", "yes, i want to answer: 1", "I WANTED TO ANSWER: 1"])
def test_other_words_are_no_marker(text: str) -> None:
    assert marked_answer(text) is None


@pytest.mark.parametrize(
    "marker",
    [
        "I want to answer:",
        "i want to answer :",
        "**I WANT TO ANSWER:**",
        "**I WANT TO ANSWER**:",
        "> _I Want to Answer:_",
        "I WANT\nTO ANSWER:",
        "I WANT TO ANSWER\uff1a",
    ],
)
def test_a_marker_that_opens_a_line_may_be_dressed(marker: str) -> None:
    assert marked_answer(f"Thanks.\n{marker}\ndef f(): ...") == "def f(): ..."


@given(prose, prose)
def test_a_marked_answer_is_found_wherever_it_stands(before: str, answer: str) -> None:
    assume(answer.strip())
    assert (marked_answer(f"{before} {ANSWER_MARKER} {answer}") or "").strip() == answer.strip()


def test_where_nothing_follows_the_marker_the_answer_is_what_stands_before_it() -> None:
    assert marked_answer("```\ndef f(): ...\n```\nI WANT TO ANSWER:\n") == "```\ndef f(): ...\n```"


def test_indentation_that_all_lines_of_an_answer_share_is_kept() -> None:
    assert marked_answer("I WANT TO ANSWER:\n\n    import re\n    x = 1\n") == "    import re\n    x = 1"


@pytest.mark.parametrize(
    "said",
    [
        "def f(x):\n    # I WANT TO ANSWER: quickly\n    return x",
        "import math\n# I WANT TO ANSWER: quickly\ndef f(x): ...",
        "def f(x):\n    return 'I WANT TO ANSWER:' + x",
        'def f(x):\n    """\n    I WANT TO ANSWER: in a docstring\n    """\n    return x',
        "```python\nI WANT TO ANSWER:\ndef f(x): ...\n```",
    ],
)
def test_a_marker_in_code_ends_the_dialogue_and_leaves_the_code_whole(said: str) -> None:
    assert marked_answer(said) == said


FLOOD = 1 << 19


@pytest.mark.timeout(120)  # a guard: it takes hours where a pattern tries every way to match
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "OUTPUT: ",
            "    OUTPUT:\n",
            "I WANT TO ANSWER: ",
            "I WANT TO ANSWER:\nOUTPUT:",
            "<html>",
            "</html>",
        ),
        *(
            "<html",
            "<body>",
            "`",
            "~",
            "```x\n",
            '"',
            "'",
            '"""',
            "# ",
            " ",
            "\n",
            ">",
            "<!doctype ",
            "*",
            "I ",
        ),
        *("```\nOUTPUT:\n", "```<", "</think>\n", "<think>", "f'", "</html ", "</body", "\\"),
    ],
)
def test_hostile_outputs_are_read_to_their_end(unit: str) -> None:
    for flood in (unit * (FLOOD // len(unit)), f"OUTPUT x I WANT TO ANSWER:{unit * (FLOOD // len(unit))}"):
        assert spoken(flood) in flood
        marked_answer(flood)
        find_page(flood)


def test_many_markers_on_one_line_take_time_linear_in_their_number() -> None:
    def seconds(count: int) -> float:
        text = "\t" + "OUTPUT: " * count
        started = time.process_time()
        assert spoken(text) == text.strip()
        return time.process_time() - started

    assert seconds(1 << 17) < 64 * min(seconds(1 << 13) for _ in range(5))


# ---------------------------------------------------------------- code blocks


def test_a_block_has_a_language_and_contents() -> None:
    found = fenced_blocks("a\n```Python title=x\nx = 1\n```\nb\n~~~\n  y\n  z\n~~~\n")
    assert [(block.language, block.text, block.closed) for block in found] == [
        ("python", "x = 1", True),
        ("", "y\nz", True),
    ]


def test_a_block_that_is_never_closed_reaches_to_the_next_opening_or_to_the_end() -> None:
    found = fenced_blocks("```python\nx = 1\n```python\ny = 2\n```\n```\nz")
    assert [(block.text, block.closed) for block in found] == [
        ("x = 1", False),
        ("y = 2", True),
        ("z", False),
    ]


def test_the_marks_of_a_quotation_are_no_part_of_its_block() -> None:
    assert [block.text for block in fenced_blocks("> ```\n> if x:\n>     y\n> ```\n")] == ["if x:\n    y"]


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


@pytest.mark.parametrize(
    "text",
    [
        f"{PAGE}\nEverything is between <html> and </html>.",
        f"{PAGE}\nAs you see, <html>...</html> is closed.",
        f"The page is closed by </html>, see:\n{PAGE}",
        f"```css\np {{ color: red }}\n```\n```html\n{PAGE}\n```\n```text\nbuild it\n```",
        f"~~~\n{PAGE}\n~~~",
    ],
)
def test_talk_about_a_page_does_not_hide_it(text: str) -> None:
    assert find_page(text) == PAGE


def test_a_document_may_leave_out_its_root() -> None:
    page = "<!doctype html>\n<title>x</title>\n<body><p>hi</p></body>"
    assert find_page(f"Look:\n{page}\nNice?") == page
    assert find_page("I would put it into the <body> of the page.") is None


@pytest.mark.parametrize("fence", ["```", "~~~", "```html", "~~~HTML"])
def test_markup_in_any_fence_is_a_page(fence: str) -> None:
    assert find_page(f"Look:\n{fence}\n<div>hi</div>\n{fence[:3]}\n") == "<div>hi</div>"


def test_markers_in_the_text_of_a_page_belong_to_it() -> None:
    page = "<html><body>\nOUTPUT:\n<p>I WANT TO ANSWER: yes</p></body></html>"
    assert find_page(spoken(f"Look:\n{page}")) == page
    assert find_page(spoken(f"I think.\nOUTPUT:\nI WANT TO ANSWER:\n{page}")) == page


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="<>")), st.text(alphabet="abc \n"))
def test_a_closed_page_is_found_in_any_surroundings(before: str, body: str, after: str) -> None:
    page = f"<html>{body}</html>"
    assert (find_page(before + page + after) or "").endswith(page)


@given(st.text(alphabet="<>/html`! doctype\n"))
def test_a_page_is_part_of_its_message(text: str) -> None:
    page = find_page(text)
    assert page is None or (page and page in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a &lt; b &amp;&amp; c", "a < b && c"),
        ("&#65;&#x42;&#000067;&#X0044;", "ABCD"),
        ("&#65abc", "Aabc"),
        ("&# &#x &#xg;", "&# &#x &#xg;"),
        ("&#" + "9" * 5000 + ";x", "\ufffdx"),
        ("&#" + "0" * 5000 + "65;", "A"),
        ("&#x" + "f" * 5000 + ";", "\ufffd"),
    ],
)
def test_character_references_of_any_length_are_resolved(text: str, expected: str) -> None:
    assert unescaped(text) == expected
