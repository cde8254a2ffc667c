"""Undoes the disguises of a text: everything that may be hidden in it, as texts to search for code.

Each way of hiding is undone by one function. Decoding where nothing is hidden hardly ever gives code of a
particular reference; it costs time. Every step is linear in the text, and long texts
are cut: a reply has 400 or 1000 characters.
"""

import binascii
import codecs
import quopri
import re
import string
import unicodedata
import zlib
from base64 import b32decode
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from urllib.parse import unquote

from sweetrl.outputs import unescaped

LONGEST = 1 << 14
"""Characters of a text that are looked at."""
_DEPTH = 2
"""How often decoded text is decoded again: base64 in base64."""
_SHORTEST = 8
"""Bytes of readable text that a decoding must give."""
_MOST_INFLATED = 1 << 14

_LOOKALIKES = str.maketrans(
    "авеёкмнорстухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅοανρτυικεΑΒΕΖΗΙΚΜΝΟΡΤΥΧ−–—‐‑‒∗×÷∕⁄‹›˂˃“”„‘’‚′″꞉։∶‗",
    "abeekmhopctyxijshdqwABEKMHOPCTYXIJSoavptuikeABEZHIKMNOPTYX------**///<><>\"\"\"''''\":::_",
) | {ord("≤"): "<=", ord("≥"): ">=", ord("≠"): "!=", ord("⩽"): "<=", ord("⩾"): ">="}
_ESCAPE = re.compile(
    r"[\\%]u(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))"
    r"|\\(?:([0-9a-fA-F]{6}) ?|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|([nrt])|([^\w\s]))"
)
_FILLERS = dict.fromkeys((0x115F, 0x1160)) | {0x2800: " "}
"""Characters that show nothing though they count as letters or symbols: fillers of Hangul, the Braille blank."""
_TAG_LETTERS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
_HTML_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<!--[^<>]{0,200}-->|<!--|-->")
_EMPHASIS = re.compile(r"\*\*|~~|`")
_NUMBERED = re.compile(r"(?<!\S)[(\[#]?(\d{1,4})[:.)\]=|-]+[ \t]*+")
_NUMBERED_TOKEN = re.compile(r"(?<!\S)[(\[#]?(\d{1,4})[:.)\]=|-]+[ \t]*+(\S{1,80})")
_LABEL = re.compile(r"[<\[({]\w{1,12}[>\])}]")
_TOKEN = re.compile(r"[^\W_]++|_|[^\w\s]")
_OFTEN = 5
_READABLE = re.compile(rb"[\t\n\r\x20-\x7e]{%d,}" % _SHORTEST)
_LINE_LABEL = re.compile(r"^[ \t]*+(?:\d{1,4}[.:)]|[-*>|])[ \t]*+", re.MULTILINE)
_COMPRESSED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")
_LONG_WORD = re.compile(r"[^\W\d]\w{2,}+")
_LATIN = string.ascii_lowercase


def undisguised(text: str, words: frozenset[str]) -> Iterator[str]:
    """The text itself, then in plain characters, then everything else that can be decoded from it. No text twice.

    Where letters may stand for other letters, `words` says which alphabets are worth a look.
    """
    text = text[:LONGEST]
    plain = normal(text)
    mirrored = plain[::-1], codecs.encode(plain, "rot13")
    found = chain((text, plain), _rearranged(plain), _shifted(plain, words), _decoded(text, plain, *mirrored))
    yield from dict.fromkeys(each for each in found if each)


def normal(text: str) -> str:
    """The text in plain characters: entities and escapes decoded, invisible characters gone, lookalikes Latin."""
    tagged = max(text, default="") >= "\U000e0020"
    hidden = "".join(_TAG_LETTERS.get(ord(each), "") for each in text) if tagged else ""
    text = unquote(unquote(unescaped(unescaped(text)))) + hidden
    text = _ESCAPE.sub(_character, text)
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text)
    kept = (each for each in text if unicodedata.category(each) not in ("Cf", "Mn"))
    return "".join(kept).translate(_LOOKALIKES | _FILLERS)


def _character(match: re.Match[str]) -> str:
    *codes, blank, other = match.groups()
    for code in filter(None, codes):
        return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else ""
    return " " if blank else str(other)


# ---------------------------------------------------------------- order and separators


def _rearranged(text: str) -> Iterator[str]:
    words = text.split()
    yield _EMPHASIS.sub("", _HTML_TAG.sub("", text))
    yield quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    yield text[::-1]
    yield " ".join(reversed(words))
    yield " ".join(word[::-1] for word in words)
    yield _NUMBERED.sub(" ", text)
    numbered = [(int(number), token) for number, token in _NUMBERED_TOKEN.findall(text)]
    yield " ".join(token for _, token in sorted(numbered, key=lambda pair: pair[0]))
    yield "".join(line.lstrip()[:1] for line in text.split("\n"))
    yield "".join(word[0] for word in words)
    for label, count in Counter(_LABEL.findall(text)).most_common(1):
        if count >= _OFTEN:
            yield text.replace(label, " ")
    tokens = _TOKEN.findall(text)
    for version in (tokens, _uncounted(tokens, 0), _uncounted(tokens, 1)):
        yield from _unseparated(version)


def _uncounted(tokens: list[str], number: int) -> list[str]:
    """Without the numbers that count on from `number`."""
    kept = []
    for token in tokens:
        if token == str(number):
            number += 1
        else:
            kept.append(token)
    return kept


def _unseparated(tokens: list[str]) -> Iterator[str]:
    """Without the tokens so frequent that they may be separators: each alone, and all together."""
    common = Counter(tokens).most_common(4)
    often = [token for token, count in common if count >= _OFTEN and 8 * count >= len(tokens)]
    for left_out in (set(), *({token} for token in often), set(often)):
        yield " ".join(token for token in tokens if token not in left_out)


# ---------------------------------------------------------------- letters for letters


def _shifted(text: str, words: frozenset[str]) -> Iterator[str]:
    """In the rotations of the alphabet, and in its mirror image, that give at least two of the words."""
    spoken = " ".join(set(_LONG_WORD.findall(text.lower())))
    for alphabet in _ALPHABETS:
        if len(words.intersection(spoken.translate(alphabet).split())) >= 2:
            yield text.translate(alphabet)


def _alphabet(other: str) -> dict[int, int]:
    return str.maketrans(_LATIN + _LATIN.upper(), other + other.upper())


_ALPHABETS = [_alphabet(_LATIN[shift:] + _LATIN[:shift]) for shift in range(1, 26)] + [
    _alphabet(_LATIN[::-1])
]


# ---------------------------------------------------------------- bytes in letters and digits


def _decoded(*texts: str, depth: int = _DEPTH) -> Iterator[str]:
    if not depth:
        return
    for text in dict.fromkeys(texts):
        for decoding in (_from_base64, _from_base32, _from_hex, _from_codes):
            for data in decoding(text):
                found = normal(_readable(data)[:LONGEST])
                if found:
                    yield from (found, found[::-1], codecs.encode(found, "rot13"))
                    yield from _decoded(found, depth=depth - 1)


def _readable(data: bytes) -> str:
    """The readable text in some bytes, inflated where they are compressed."""
    parts: Iterable[bytes] = (data.replace(b"\0", b""), *_inflated(data))
    return "\n".join(run.decode("ascii") for part in parts for run in _READABLE.findall(part))


def _inflated(data: bytes) -> Iterator[bytes]:
    for start in [match.start() for match in _COMPRESSED.finditer(data)][:4]:
        inflater, found = zlib.decompressobj(47), b""  # 47: gzip or zlib, as its first bytes say
        try:
            # In pieces: what came before a broken piece is kept, and nothing grows without end.
            for at in range(start, len(data), 64):
                found += inflater.decompress(data[at : at + 64], _MOST_INFLATED)
                if len(found) >= _MOST_INFLATED:
                    break
        except zlib.error:
            pass
        yield found


def _from_base64(text: str) -> Iterator[bytes]:
    """Bytes of all letters and digits, whatever separates them; prose before them only shifts where four begin."""
    text = _LINE_LABEL.sub("", text)
    standard = re.sub(r"[^A-Za-z0-9+/=]", "", text)
    url_safe = re.sub(r"[^A-Za-z0-9_=-]", "", text).translate(str.maketrans("-_", "+/"))
    for run in dict.fromkeys(chain(standard.split("="), url_safe.split("="))):
        for shift in range(4):
            yield binascii.a2b_base64(_whole(run[shift:], 4))


def _from_base32(text: str) -> Iterator[bytes]:
    for run in re.findall(r"[A-Z2-7]{16,}+", re.sub(r"\s+", "", _LINE_LABEL.sub("", text))):
        for shift in range(8):
            yield b32decode(_whole(run[shift:], 8))


def _from_hex(text: str) -> Iterator[bytes]:
    joined = re.sub(r"0x|[^0-9a-z]", "", text.lower())
    for run in (
        *re.findall(r"[0-9a-f]{16,}+", joined),
        "".join(re.findall(r"\b(?:0x|u\+)?(?:00)?([0-9a-f]{2})\b", text.lower())),
    ):
        for shift in range(2):
            yield bytes.fromhex(_whole(run[shift:], 2))


def _from_codes(text: str) -> Iterator[bytes]:
    """From the numbers in the text, taken for characters: decimal, octal, or binary."""
    numbers = re.findall(r"\d++", text)
    bits = "".join(each for each in numbers if len(each) >= 7 and not each.strip("01"))
    yield bytes(code for each in numbers if len(each) <= 3 and 9 <= (code := int(each)) < 127)
    yield bytes(int(each, 8) for each in numbers if re.fullmatch(r"[01]?[0-7]{2}", each))
    yield bytes(int(each, 2) & 127 for each in numbers if 6 <= len(each) <= 8 and not each.strip("01"))
    for width in (7, 8):
        yield bytes(int(bits[at : at + width], 2) & 127 for at in range(0, len(bits) - width + 1, width))


def _whole(run: str, size: int) -> str:
    """The run without what is left after groups of `size`."""
    return run[: len(run) // size * size]
