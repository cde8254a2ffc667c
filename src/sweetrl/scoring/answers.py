"""Finding the code in an answer: raw, fenced in any way, or surrounded by prose.

Text in, readings out, best first; the sandbox takes the first one that compiles and defines the function.
Nothing is parsed as Python here: compilers have been crashed by the source they were given.
"""

import os
import re

ANSWER_MARKER = "I WANT TO ANSWER:"
MAX_ANSWER_CHARACTERS = 1 << 20

_MOST_BLOCKS = 64
# Possessive (`*+`): answers are hostile, and giving back characters would take time quadratic in their length.
_FENCE = re.compile(r"^([ \t>]*+)(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$")
_MOST_INDENT = 3
"""How much deeper than its opening a fence may close, as in Markdown; one in a docstring is deeper."""
_INLINE_FENCE = re.compile(r"```(?:[ \t]*(?:python3?|py)\b)?(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_CODE_START = re.compile(r"(?:def|class|import|from|async def)\s|@\w")
_OPENERS = "def|class|import|from|async def|if|for|while|try|with|else|elif|except|finally"
_CODE_LINE = re.compile(rf"(?:{_OPENERS})\b|[@#)\]}}\s]|\w+ *(?:=|:|\()|\Z")
_DEFINITION = r"(?:def|class|import|from|async def|try|except|else)\b"
_DEFINITION_LINE = re.compile(rf"{_DEFINITION}|[@#)\]}}\s]|[A-Za-z_]\w* *(?::[^=]*)?=(?!=)|\Z")


def readings(answer: str, function: str) -> tuple[str, ...]:
    """The ways to read `answer` as Python source that should define `function`."""
    text = answer.replace("\r\n", "\n")
    if ANSWER_MARKER in text:
        text = text.split(ANSWER_MARKER, 1)[1]
    blocks = fenced_blocks(text)[-_MOST_BLOCKS:]
    inline = [_dedented(block).strip() for block in _INLINE_FENCE.findall(text)[-_MOST_BLOCKS:]]
    name = re.escape(function)
    defines = re.compile(rf"^(?:async def|def|class)\s+{name}\b|^{name} *=", re.MULTILINE)
    found = [*_combined(blocks, defines), *_outermost(text), *reversed(blocks)]
    found += [text, *_unfenced(text), *inline]
    # A block that only uses the function (in a docstring, say) must not pass for the one that defines it.
    found.sort(key=lambda reading: not defines.search(reading))
    return tuple(dict.fromkeys(reading.strip("\n") for reading in found))


def fenced_blocks(text: str) -> list[str]:
    """The contents of Markdown code fences; a fence that is never closed reaches to the end."""
    blocks: list[str] = []
    inside: list[str] | None = None
    opening, margin = "", 0
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if inside is None:
            if fence:
                inside, opening, margin = [], fence[2], len(fence[1]) + _MOST_INDENT
        elif fence and fence[2].startswith(opening) and not fence[3].strip() and len(fence[1]) <= margin:
            blocks.append(_dedented("\n".join(inside)))
            inside = None
        else:
            inside.append(line)
    if inside:
        blocks.append(_dedented("\n".join(inside)))
    return blocks


def _dedented(text: str) -> str:
    """The text without the indentation that its lines share. Not by `textwrap`, whose time a long one uses up."""
    lines = text.split("\n")
    indents = [line[: -len(line.lstrip(" \t"))] for line in lines if line.strip()]
    margin = len(os.path.commonprefix(indents))  # noqa: RUF071  characters are meant, not parts of a path
    return "\n".join(line[margin:] for line in lines)


def _combined(blocks: list[str], defines: re.Pattern[str]) -> list[str]:
    """The last block that defines the function, with the blocks that only define other things."""
    mains = [index for index, block in enumerate(blocks) if defines.search(block)]
    if not mains:
        return []
    kept = [
        block
        for index, block in enumerate(blocks)
        if index == mains[-1] or (index not in mains and _only_defines(block))
    ]
    return ["\n\n".join(kept), blocks[mains[-1]]]


def _outermost(text: str) -> list[str]:
    """What lies between the first and the last fence, for code that has fences in it."""
    lines = text.split("\n")
    fences = [index for index, line in enumerate(lines) if _FENCE.match(line)]
    return ["\n".join(lines[fences[0] + 1 : fences[-1]])] if len(fences) > 2 else []


def _only_defines(block: str) -> bool:
    return all(_DEFINITION_LINE.match(line) for line in block.split("\n"))


def _unfenced(text: str) -> list[str]:
    """Without fences: from the first line that looks like code, to the end or to the first that does not."""
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if _CODE_START.match(line)), None)
    if start is None:
        return []
    end = next((i for i in range(start, len(lines)) if not _CODE_LINE.match(lines[i])), len(lines))
    return ["\n".join(lines[start:]), "\n".join(lines[start:end])]
