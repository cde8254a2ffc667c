"""Finding the code in an answer: raw, fenced in any way, or surrounded by prose.

Text in, readings out, best first; the sandbox takes the first one that compiles and defines the function, so
one reading is run, and which one does not depend on the hidden tests. docs/dialogues.md has the order. Nothing
is parsed as Python here: compilers have been crashed by the source they were given.
"""

import re
import sys
from collections.abc import Iterator
from itertools import accumulate

from sweetrl.domains.backend.wrappings import (
    texts_in_json,
    with_real_lines,
    without_bare_signatures,
    without_markdown_escapes,
)
from sweetrl.outputs import (
    Block,
    after_last_marker,
    dedented,
    fenced_blocks,
    marked_answer,
    spoken,
    unescaped,
)

MAX_ANSWER_CHARACTERS = 1 << 20

_ANYTHING = "*"
"""Stands for the unknown names of a star import, among the names that a block defines for others."""

_MOST_BLOCKS = 64
_MOST_VERSIONS = 4
"""Blocks that define the function, from the last, which are read with the helpers of other blocks."""
_MOST_CHARACTERS = 8 << 20
"""Limit on all readings of an answer together: the sandbox is sent every one."""
_MOST_REPAIRED = 32
_LONGEST_REPAIRED = 1 << 16
"""Readings beyond these, and longer ones, are taken as they are."""

# Possessive (`*+`) and bounded: answers are hostile, and every pattern must take time linear in their length.
_FENCE_LINE = re.compile(r"^[ \t>]*+(?:`{3}|~{3})", re.MULTILINE)
_LINE_END = re.compile(r"(?:\r\n?|\n)\ufeff?|\A\ufeff")
_TILDES = re.compile(r"^ {0,3}~{3}", re.MULTILINE)
_INLINE_FENCE = re.compile(r"```(?:[ \t]*(?:python3?|py3?)\b)?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_INLINE_CODE = re.compile(r"(?<!`)`([^`\n]++)`(?!`)")
_ASSIGNMENT = r"[A-Za-z_]\w*+(?: *+, *+[A-Za-z_]\w*+){0,9} *+(?::[^=\n]{0,80})?=(?!=)"
_IMPORT = r"import +[\w.]+ *(?:,|as\b|#|;|$)|from +[\w.]+ +import\b"
_START = rf"(?:async +)?def +\w+ *\(|class +\w+ *[:(]|@\w|{_IMPORT}"
_CODE_START = re.compile(_START)
_CODE_OR_CONSTANT = re.compile(rf"{_START}|{_ASSIGNMENT}|\"\"\"|'''|#|(?:if|for|try|with)\b.*:\s*$")
_OPENERS = "def|class|import|from|async def|if|for|while|try|with|else|elif|except|finally"
_CODE_LINE = re.compile(rf"(?:{_OPENERS})\b|[@#)\]}}\s]|\w+ *(?:=|:|\()|\Z")
_MARGIN_CODE = re.compile(rf"(?:{_OPENERS})\b|[@)\]}}]|{_ASSIGNMENT}")
_DEFINITION = r"(?:def|class|import|from|async def|try|except|else)\b"
_DEFINITION_LINE = re.compile(rf"{_DEFINITION}|[@#)\]}}\s]|{_ASSIGNMENT}|\Z")
# At the top level such a line can only fail: it is a word of prose, or the name of the language.
_STRAY_LINE = re.compile(
    r"(?!(?:try|else|finally|except)\b)(?:(?:[-+] +)?[A-Za-z_]\w*(?:: *[A-Za-z_]\w*)?[.!]?)?\s*\Z"
)

_TOP_NAME = re.compile(
    r"^(?:(?:async +def|def|class)\s+(\w++)|(\w++) *(?::[^=\n]{0,80})?=(?!=))", re.MULTILINE
)
_STUB = re.compile(
    r"^(?:async +)?def +(\w++)[^\n]{0,1000}:[ \t]*+(?:\n[ \t]++)?(?:\.\.\.|pass)[ \t]*+(?:\n(?![ \t])|\Z)",
    re.MULTILINE,
)
_ANY_FUNCTION = re.compile(r"^([ \t]*+)(?:async +)?def +(\w++)", re.MULTILINE)
_TOP_DEFINITION = re.compile(r"^(?:async +)?(?:def|class) +(\w++)", re.MULTILINE)
_TOP_VALUE = re.compile(
    rf"^(?=({_ASSIGNMENT}))|^(?:from +[\w.]+ +)?import +(\([^()]{{1,2000}}\)|[^\n#]{{1,400}})", re.MULTILINE
)
_BOUND = re.compile(
    r"\b(?:def|class|as|import|lambda|global) +(\w++)|\b(?:for|lambda) +([\w, ()]{1,80}?)(?: in\b|:)"
    r"|\b(\w++) *(?::[^=\n:]{0,80})?=(?!=)|\bdef +\w++ *\(([^)]{0,2000})\)"
)
_WORD = re.compile(r"[A-Za-z_]\w*+")

_PLAIN = {ord(smart): plain for smart, plain in zip("“”„‟‘’‚‛", "\"\"\"\"''''", strict=True)}
_PLAIN |= dict.fromkeys(map(ord, "\u00a0\u1680\u2002\u2003\u2007\u2008\u2009\u200a\u202f\u205f\u3000"), " ")
_PLAIN |= dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"), "")
# Tags of pages, and tokens of chat templates that a server has let through.
_CODE_TAG = re.compile(
    r"</?(?:pre|code|answer|python)\b[^<>]{0,80}>|<!\[CDATA\[|\]\]>|<\|\w{1,30}\|>|\[/?INST\] ?|</?s>",
    re.IGNORECASE,
)
_LABEL = re.compile(rf"\A\s*+[A-Za-z*][\w* ]{{0,30}}:[ *]*+(?={_START})", re.MULTILINE)
"""A word or two before code on the same line: `Answer: import math`."""
_NUMBER = re.compile(r"[ \t]*+(\d{1,4})[ \t]?(?:[:.|)]|(?=\s|\Z))[ \t]?")
_PROMPT = re.compile(r"(?:>>>|\.\.\.|In \[\d{1,4}\]:| {2,9}\.\.\.:)(?: |$)", re.MULTILINE)
_DIFF_LINE = re.compile(
    r"[-+ ]|@@|diff |index |\\ |\Z|(?:new|old|deleted)(?: file)? mode |(?:rename|copy) (?:from|to) |similarity "
)
_STAR_IMPORT = re.compile(r"^from +(\w++)[\w.]*+ +import +\*", re.MULTILINE)


def readings(answer: str, function: str) -> tuple[str, ...]:
    """The ways to read `answer` as Python source that should define `function`."""
    text = _LINE_END.sub("\n", answer)
    found: dict[str, None] = {}
    for section in _sections(text):
        for candidates in (_marked_code(section, function), _unmarked_code(section, function)):
            found |= dict.fromkeys(_with_repairs(list(dict.fromkeys(candidates)), function))
    # A block that only uses the function (in a docstring, say) must not pass for the one that defines it.
    best_first = sorted(found, key=lambda reading: not _defines(reading, function))
    sizes = accumulate(map(len, best_first))
    return tuple(each for each, size in zip(best_first, sizes, strict=True) if size <= _MOST_CHARACTERS)


def _defines(source: str, function: str) -> bool:
    """Whether the name is defined at the top level. Of all names, for patterns of one name take long to compile."""
    return function in source and any(
        function in (match[1], match[2]) for match in _TOP_NAME.finditer(source)
    )


def _sections(text: str) -> list[str]:
    """The parts of an answer that may hold the code, the likeliest first."""
    said = spoken(text)
    parts = dict.fromkeys((after_last_marker(said), marked_answer(said), said, text))
    found = [each for part in parts if part is not None for each in (part, *texts_in_json(part))]
    return list(dict.fromkeys(found))


def _marked_code(text: str, function: str) -> Iterator[str]:
    """The whole text, if it is code; then the contents of its code blocks."""
    if not _TILDES.search(text):  # `~~~python` is an expression, too
        for version in dict.fromkeys((text, _CODE_TAG.sub("\n", text))):
            yield _without_stray_lines(dedented(version))
    blocks = fenced_blocks(text, most=_MOST_BLOCKS)
    yield from _versions(blocks, function)
    yield from _outermost(text)
    yield from (block.text for block in reversed(blocks))


def _unmarked_code(text: str, function: str) -> Iterator[str]:
    """Text that looks like code, among prose or within a line."""
    yield text
    untagged = _CODE_TAG.sub("\n", text)
    bare = _LABEL.sub("", without_bare_signatures(untagged), count=1)
    for version in dict.fromkeys((bare, untagged, text)):
        yield from _unfenced(version, function)
    yield from _indented_block(untagged)
    for pattern in (_INLINE_FENCE, _INLINE_CODE):
        yield from (dedented(code).strip() for code in pattern.findall(text)[-_MOST_BLOCKS:])


def _without_stray_lines(text: str) -> str:
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if not _STRAY_LINE.match(line)), len(lines))
    last = next((at for at in range(len(lines), first, -1) if not _STRAY_LINE.match(lines[at - 1])), first)
    return "\n".join(lines[first:last])


# ---------------------------------------------------------------- code blocks


def _versions(blocks: list[Block], function: str) -> Iterator[str]:
    """The blocks that define the function, the last first, each with the blocks that it needs."""
    python = [block.text for block in blocks if not block.language or "py" in block.language]
    mains = [at for at, source in enumerate(python) if _defines(source, function)]
    mains = [at for at in mains if not _is_stub(python[at], function)] or mains
    helpers = {at: _provided(source) for at, source in enumerate(python) if at not in mains}
    for main in reversed(mains[-_MOST_VERSIONS:]):
        needed = _needed(main, python, helpers)
        yield "\n\n".join(_without_stray_lines(python[at]) for at in sorted(needed))


def _is_stub(source: str, function: str) -> bool:
    """Whether a block has nothing of the function but its signature."""
    if "..." not in source and "pass" not in source:
        return False
    stubs = [match[1] for match in _STUB.finditer(source)].count(function)
    return bool(stubs) and stubs == [match[1] for match in _TOP_NAME.finditer(source)].count(function)


def _needed(main: int, sources: list[str], helpers: dict[int, set[str]]) -> set[int]:
    """The block and those that define names which it uses and does not define."""
    taken, waiting = {main}, [main]
    while waiting:
        source = sources[waiting.pop()]
        missing = set(_WORD.findall(source)) - _bound(source) | {_ANYTHING}
        found = [at for at, names in helpers.items() if at not in taken and names & missing]
        taken.update(found)
        waiting += found
    return taken


def _provided(source: str) -> set[str]:
    """The names that a block defines for others. If it makes calls, as an example does, its values do not count."""
    names = set(_TOP_DEFINITION.findall(source))
    if all(_DEFINITION_LINE.match(line) for line in source.split("\n")):
        names.update(
            word for groups in _TOP_VALUE.findall(source) for word in _WORD.findall(" ".join(groups))
        )
        names.update(
            _ANYTHING for module in _STAR_IMPORT.findall(source) if module in sys.stdlib_module_names
        )
    return names


def _bound(source: str) -> set[str]:
    """The names that a block binds anywhere; it needs no other block for these."""
    return {word for groups in _BOUND.findall(source) for group in groups for word in _WORD.findall(group)}


def _outermost(text: str) -> list[str]:
    """The text between the first and the last fence, for code that has fences in it."""
    lines = text.split("\n")
    fences = [at for at, line in enumerate(lines) if _FENCE_LINE.match(line)]
    return ["\n".join(lines[fences[0] + 1 : fences[-1]])] if len(fences) > 2 else []


# ---------------------------------------------------------------- code among prose


def _unfenced(text: str, function: str) -> Iterator[str]:
    """From a line that looks like code, to the end or to the first line that does not."""
    lines = text.split("\n")
    looks_like_code = (_CODE_OR_CONSTANT.match, _CODE_START.match, lambda line: _defines(line, function))
    starts = [next((at for at, line in enumerate(lines) if is_so(line)), None) for is_so in looks_like_code]
    for start in dict.fromkeys(start for start in starts if start is not None):
        yield _without_stray_lines("\n".join(lines[start:]))
        for pattern in (_CODE_LINE, _DEFINITION_LINE):
            end = next((at for at in range(start, len(lines)) if not pattern.match(lines[at])), len(lines))
            yield _without_stray_lines("\n".join(lines[start:end]))


def _indented_block(text: str) -> Iterator[str]:
    """The lines that are indented, where prose is not and holds no code: a code block without fences."""
    lines = text.split("\n")
    margin = [line for line in lines if line.strip() and line[0] not in " \t"]
    if margin and len(margin) < len(lines) and not any(map(_MARGIN_CODE.match, margin)):
        yield dedented("\n".join(line for line in lines if line[:1] in (" ", "\t", "")))


# ---------------------------------------------------------------- damaged code


def _with_repairs(sources: list[str], function: str) -> Iterator[str]:
    """The sources as they are, then repaired ones."""
    repaired = [each for source in sources[:_MOST_REPAIRED] for each in _repaired(source)]
    found = [source.strip("\n") for source in (*sources, *repaired)]
    yield from found
    yield from (bound for source in found[:_MOST_REPAIRED] if (bound := _bound_method(source, function)))


def _repaired(source: str) -> Iterator[str]:
    """The source without what a word processor, a web page or a listing may have done to it."""
    if len(source) <= _LONGEST_REPAIRED:
        plain = source if source.isascii() else source.translate(_PLAIN)
        decoded = _unnumbered(unescaped(plain))
        lines = with_real_lines(plain) if "\\" in plain else plain
        versions = (plain, decoded, _patched(plain), lines, without_markdown_escapes(lines))
        yield from (repaired for repaired in dict.fromkeys(versions) if repaired != source)


def _patched(source: str) -> str:
    """The source with a diff applied, if it is a diff."""
    lines = source.split("\n")
    if not any(line.startswith("+") for line in lines) or not all(map(_DIFF_LINE.match, lines)):
        return source
    return "\n".join(line[1:] for line in lines if line[:1] in "+ " and not line.startswith("+++"))


def _unnumbered(source: str) -> str:
    """Without the numbers of lines, or the prompts of an interpreter, if every line has one."""
    if not source.lstrip()[:1].isdigit() and not _PROMPT.match(source):
        return source
    lines = [line for line in source.split("\n") if line.strip()]
    numbers = [_NUMBER.match(line) for line in lines]
    if lines and all(_PROMPT.match(line) for line in lines):
        return "\n".join(_PROMPT.sub("", line, count=1) for line in lines)
    if [match and int(match[1]) for match in numbers] != list(range(1, len(lines) + 1)):
        return source
    return dedented(
        "\n".join(line[match.end() :] for line, match in zip(lines, numbers, strict=True) if match)
    )


def _bound_method(source: str, function: str) -> str | None:
    """The source with the function that it only has as a method of a class bound to its name."""
    found = [match for match in _ANY_FUNCTION.finditer(source) if match[2] == function]
    if not found or not all(match[1] for match in found):
        return None
    classes = re.findall(r"^class +(\w+)", source[: found[0].start()], re.MULTILINE)
    return f"{source}\n\n{function} = {classes[-1]}().{function}\n" if classes else None
