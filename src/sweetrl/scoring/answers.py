"""Finding the code in an answer: raw, fenced in any way, or surrounded by prose.

Text in, readings out, best first; the sandbox takes the first one that compiles and defines the function.
Nothing is parsed as Python here: compilers have been crashed by the source they were given.
"""

import re
import textwrap

ANSWER_MARKER = "I WANT TO ANSWER:"
MAX_ANSWER_CHARACTERS = 1 << 20

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})[ \t]*([^\n`]*)$")
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
    blocks = fenced_blocks(text)
    if not blocks:
        candidates = [text, *_unfenced(text)]
    else:
        candidates = [*_combined(blocks, function), *reversed(blocks)]
        candidates += [textwrap.dedent(block) for block in _INLINE_FENCE.findall(text)]
        candidates.append(text)
    return tuple(dict.fromkeys(candidate.strip("\n") for candidate in candidates))


def fenced_blocks(text: str) -> list[str]:
    """The contents of Markdown code fences; a fence that is never closed reaches to the end."""
    blocks: list[str] = []
    inside: list[str] | None = None
    opening = ""
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if inside is None:
            if fence:
                inside, opening = [], fence[1]
        elif fence and fence[1].startswith(opening) and not fence[2].strip():
            blocks.append(textwrap.dedent("\n".join(inside)))
            inside = None
        else:
            inside.append(line)
    if inside:
        blocks.append(textwrap.dedent("\n".join(inside)))
    return blocks


def _combined(blocks: list[str], function: str) -> list[str]:
    """The last block that defines the function, with the blocks that only define other things."""
    defines = re.compile(
        rf"^(?:async def|def|class)\s+{re.escape(function)}\b|^{re.escape(function)} *=", re.MULTILINE
    )
    mains = [index for index, block in enumerate(blocks) if defines.search(block)]
    if not mains:
        return []
    kept = [
        block
        for index, block in enumerate(blocks)
        if index == mains[-1] or (index not in mains and _only_defines(block))
    ]
    return ["\n\n".join(kept), blocks[mains[-1]]]


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
