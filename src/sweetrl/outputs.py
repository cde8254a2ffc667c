"""The parts of an agent's output: a thought, the visible text, the answer marker, code blocks, a page.

All parsing of outputs is here, so that rules, importers and scorers agree. A marker in code, in quotes or in a page
belongs to that text and marks nothing. Outputs are hostile: every
pattern takes time linear in their length, and nothing is parsed as Python.
"""

import html
import os
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

ANSWER_MARKER = "I WANT TO ANSWER:"
OUTPUT_MARKER = "OUTPUT:"

# Possessive quantifiers (`*+`): giving characters back would take time quadratic in the length of the text.
_LINE_START = r"^[ \t>]*+(?:(?:\#{2,6}|[-+]|\d{1,2}[.)])[ \t]++)?[*_]{0,3}"
_WORDS = r"I\s++WANT\s++TO\s++ANSWER[*_]{0,3}[ \t]?[:\uff1a]"
_ANSWER = rf"(?:{_LINE_START}(?i:{_WORDS})|{re.escape(ANSWER_MARKER)})(?:[*_]{{1,3}}(?=\s|\Z))?"
_OUTPUT = rf"(?<![\w>.\[{{])[*_]{{0,3}}{OUTPUT_MARKER}(?:[*_]{{1,3}}(?=\s|\Z))?"
_MARKS = re.compile(
    rf"""
    (?=[ \t>\#*_+\d"'`<iI\u0130\u0131OrbfuRBFU-])  # how any of these can begin: twice as fast
    (?:
    (?P<heading>^[ ]{{0,3}}\#{{1,6}}[ \t]*+{_OUTPUT}[ \t]*+$|^\#{{2,6}}[ \t]*+{_OUTPUT})
    | \"{{3}}[\s\S]*?\"{{3}} | '{{3}}[\s\S]*?'{{3}}
    | `[^`\n]++` | "(?:\\.|[^"\\\n])*+" | (?<!\w)[rbfuRBFU]{{0,2}}+'(?:\\.|[^'\\\n])*+'(?!\w)
    | (?i:<html\b(?:[^<]++|<(?!html\b|/html\b))*+</html\s*+>)
    | (?P<answer>{_ANSWER})
    | (?<!\S)\#[^\n]*+
    | (?P<output>{_OUTPUT})
    )
    """,
    re.MULTILINE | re.VERBOSE,
)
_ANSWER_NEXT = re.compile(rf"[\s>*_`]*+{_ANSWER}", re.MULTILINE)
_ANY_MARK = re.compile(rf"{_ANSWER}|{OUTPUT_MARKER}", re.MULTILINE)
_CODE_NEXT = re.compile(r"[ \t]*+(?:\n|`{3}|~{3}|\Z)")
_REASONING_START = re.compile(r"\s*+<think(?:ing)?>")
_REASONING_END = re.compile(r"</think(?:ing)?>")
_REASONING_END_ALONE = re.compile(r"^[ \t]*+</think(?:ing)?>[ \t]*+$", re.MULTILINE)

_FENCE = re.compile(r"^([ \t>]*+)(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$", re.MULTILINE)
_MOST_INDENT = 3
"""How much deeper than its opening a fence may close, as in Markdown; one in a docstring is deeper."""
_DEEP_INDENT = 4
"""Blanks before a marker after which it stands in code, though nothing else stands before it."""
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*+\n)++")
_DECIMAL = re.compile(r"&#(?=[0-9])0*+([0-9]*+)")
_HEXADECIMAL = re.compile(r"&#[xX](?=[0-9a-fA-F])0*+([0-9a-fA-F]*+)")
_QUOTE = re.compile(r"^[ \t]*+> ?", re.MULTILINE)

_PAGE_START = re.compile(r"<html\b", re.IGNORECASE)
_PAGE_END = re.compile(r"</html\s*+>", re.IGNORECASE)
_TAG = re.compile(r"<[a-z!/][^<>]*>", re.IGNORECASE)
_DOCTYPE = re.compile(r"<!doctype\s[^<>]*>\s*\Z", re.IGNORECASE)
_ROOTLESS_START = re.compile(r"<!doctype\s[^<>]*>|<(?:head|body)\b", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*+>", re.IGNORECASE)
_FENCED_MARKUP = re.compile(r"(?<![`~])(?:`{3,}+|~{3,}+)[^\S\n]*+\w*+\s*+(<.*?)(?:```|~~~|\Z)", re.DOTALL)


# ---------------------------------------------------------------- thoughts and answers


def spoken(output: str) -> str:
    """The part of an output that others see: everything after its thought, if it has one.

    A thought ends at the first `OUTPUT:` outside of code. Once the answer has begun, with a marker that opens or
    ends its line, `OUTPUT:` belongs to the answer, unless the marker follows it once more.
    """
    text = output[_reasoning_end(output) :]
    return _trimmed(text[_thought_end(text) :])


def marked_answer(said: str) -> str | None:
    """The text after the first answer marker outside of code; None if there is no marker.

    All of the message where the marker is only found in its code, or where nothing follows it.
    """
    first = next((mark for mark in _marks(said) if mark.lastgroup == "answer"), None)
    if first is None:
        return said.strip() if ANSWER_MARKER in said else None
    return _trimmed(said[first.end() :]) or said[: first.start()].strip()


def after_last_marker(text: str) -> str | None:
    """The text after the last answer marker at the start of a line: the final version, if there were drafts."""
    ends = [mark.end() for mark in _marks(text) if mark.lastgroup == "answer" and _opens_line(text, mark)]
    return text[ends[-1] :] if ends else None


def _opens_line(text: str, mark: re.Match[str]) -> bool:
    return mark.start() == 0 or text[mark.start() - 1] == "\n"


def _reasoning_end(output: str) -> int:
    """The end of the reasoning block at the beginning of an output; its opening tag may be in the prompt."""
    if opening := _REASONING_START.match(output):
        closing = _REASONING_END.search(output, opening.end())
    else:
        closing = _REASONING_END_ALONE.search(output)
    return closing.end() if closing else 0


def _thought_end(text: str) -> int:
    answering = False
    line = seen = 0
    for mark in _marks(text):
        line = max(line, text.rfind("\n", seen, mark.start()) + 1)
        seen = mark.start()
        if mark.lastgroup == "answer":
            answering = answering or _opens_line(text, mark) or bool(_CODE_NEXT.match(text, mark.end()))
        elif _ANSWER_NEXT.match(text, mark.end()) or not (
            answering or _is_indented_code(text[line : min(mark.start(), line + _DEEP_INDENT + 1)])
        ):
            return mark.end()
    return 0


def _is_indented_code(before: str) -> bool:
    """Whether the text before a marker on its line looks like indented code; lines of prose hardly ever do."""
    indent = len(before) - len(before.lstrip(" \t"))
    return before.startswith("\t") or indent >= (_DEEP_INDENT if indent == len(before) else 2)


def _marks(text: str) -> Iterator[re.Match[str]]:
    """The markers outside of code, in order."""
    if not _ANY_MARK.search(text):
        return
    fences = [(opening.start(), end) for opening, end, closed in _fenced_spans(text) if closed]
    starts = [start for start, _ in fences]
    for mark in _MARKS.finditer(text):
        if mark.lastgroup is not None:
            at = bisect(starts, mark.start()) - 1
            if at < 0 or mark.start() >= fences[at][1]:
                yield mark


def _trimmed(text: str) -> str:
    """The text without blank lines around it. Indentation that all lines share is kept: the first must not differ."""
    text = _BLANK_LINES.sub("", text).rstrip()
    return text if dedented(text) != text and "\n" in text else text.lstrip()


# ---------------------------------------------------------------- code blocks


class Block(NamedTuple):
    """A Markdown code block."""

    language: str
    """The first word after the opening fence, in lower case."""
    text: str
    """The contents, without the indentation that its lines share."""
    closed: bool


def fenced_blocks(text: str, most: int | None = None) -> list[Block]:
    """The code blocks of a message, or the last of them.

    One that is never closed reaches to the next opening, or to the end.
    """
    found = list(_fenced_spans(text))[-most if most else 0 :]
    blocks = [_block(text, opening, end, closed=closed) for opening, end, closed in found]
    return [block for block in blocks if block.text.strip()]


def _fenced_spans(text: str) -> Iterator[tuple[re.Match[str], int, bool]]:
    """The opening of each block, where its contents end, and whether it is closed."""
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif _closes(fence, opening):
            yield opening, fence.start(), True
            opening = None
        elif fence[2] == opening[2] and fence[3].strip() and len(fence[1]) <= len(opening[1]):
            yield opening, fence.start(), False
            opening = fence
    if opening is not None:
        yield opening, len(text), False


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    near = len(fence[1]) <= len(opening[1]) + _MOST_INDENT
    return near and fence[2].startswith(opening[2]) and not fence[3].strip()


def _block(text: str, opening: re.Match[str], end: int, *, closed: bool) -> Block:
    start = min(opening.end() + 1, end)
    words = opening[3].lower().split()
    contents = text[start:end].removesuffix("\n")
    if ">" in opening[1]:
        contents = _QUOTE.sub("", contents)
    return Block(words[0] if words else "", dedented(contents), closed)


def dedented(text: str) -> str:
    """The text without the indentation that its lines share. Not by `textwrap`, whose time a long one uses up."""
    lines = text.split("\n")
    indents = [line[: -len(line.lstrip(" \t"))] for line in lines if line.strip()]
    margin = len(os.path.commonprefix(indents))  # noqa: RUF071  characters are meant, not parts of a path
    return "\n".join(line[margin:] for line in lines)


def unescaped(text: str) -> str:
    """The text with HTML's character references resolved."""
    # No character has a number of more than seven digits, and Python refuses to read one of thousands.
    text = _DECIMAL.sub(lambda found: f"&#{found[1][:8] or 0}", text)
    return html.unescape(_HEXADECIMAL.sub(lambda found: f"&#x{found[1][:8] or 0}", text))


# ---------------------------------------------------------------- pages


def find_page(said: str) -> str | None:
    """The last HTML page in a message; a page that breaks off counts, as browsers show those too."""
    span = page_span(said)
    return None if span is None else said[span[0] : span[1]].strip()


def page_span(said: str) -> tuple[int, int] | None:
    """The place of the last page in a message: a document, or markup in a code block."""
    starts = [match.start() for match in _PAGE_START.finditer(said)]
    documents = [
        (start, end)
        for start, limit in pairwise([*starts, len(said)])
        if (end := _document_end(said, start, limit)) is not None
    ]
    if documents:
        # `<html>...</html>` in prose has no tag in it; a page has.
        start, end = next(filter(lambda span: _has_tag(said, *span), reversed(documents)), documents[-1])
        return _with_doctype(said, start), end
    if starts:
        fence = said.find("```", starts[0])
        return _with_doctype(said, starts[0]), len(said) if fence < 0 else fence
    return _rootless_span(said) or _last_markup(said)


def _rootless_span(said: str) -> tuple[int, int] | None:
    """A document whose `<html>` tag is left out, as the language allows."""
    start = _ROOTLESS_START.search(said)
    ends = [match.end() for match in _BODY_END.finditer(said)]
    return (start.start(), ends[-1]) if start and ends and start.end() < ends[-1] else None


def _last_markup(said: str) -> tuple[int, int] | None:
    spans = [match.span(1) for match in _FENCED_MARKUP.finditer(said)]
    return spans[-1] if spans else None


def _document_end(said: str, start: int, limit: int) -> int | None:
    """The last `</html>` that follows a tag, as pages end; otherwise the last one."""
    ends = list(_PAGE_END.finditer(said, start, limit))
    after_tag = [
        end for end in ends if said[max(start, end.start() - 99) : end.start()].rstrip().endswith(">")
    ]
    return (after_tag or ends)[-1].end() if ends else None


def _has_tag(said: str, start: int, end: int) -> bool:
    opening = said.find(">", start, end)
    inner = _TAG.search(said, opening + 1, end)
    return inner is not None and not _PAGE_END.match(inner[0])


def _with_doctype(said: str, start: int) -> int:
    """The start of the page including the document type before it, which decides how browsers lay it out."""
    doctype = _DOCTYPE.search(said, max(0, start - 300), start)
    return start if doctype is None else doctype.start()


def without_page(said: str, placeholder: str) -> str:
    """The message with its page replaced, for readers who see the page itself."""
    span = page_span(said)
    return said if span is None else said[: span[0]] + placeholder + said[span[1] :]


def last_page(said: Sequence[str]) -> str | None:
    """The last page shown in a dialogue."""
    return next((page for text in reversed(said) if (page := find_page(text))), None)
