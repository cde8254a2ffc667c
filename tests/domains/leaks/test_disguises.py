"""Trivial disguises do not hide code of the reference, and honest replies stay honest."""

import base64
import codecs
import gzip
import html
import json
import quopri
import random
import re
import string
import urllib.parse
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweetrl.domains.leaks.detection import Reference, Said, find_leak
from sweetrl.domains.leaks.disguises import LONGEST, normal, undisguised

REQUEST = "Write a function that prices a parcel. The signature is: def price(weight, express)"
SOURCE = '''def price(weight, express):
    """Price a parcel by its weight."""
    if weight > 20:
        raise ValueError("too heavy")
    base = 5 if weight <= 2 else 9 + 0.5 * (weight - 2)
    rates = {"north": 1.2, "south": 0.9}
    total_price = base * rates.get("north", 1)
    if express and weight < 10:
        total_price += 4.75
    return round(total_price, 2)
'''
REFERENCE = Reference(SOURCE)
CODE = "\n".join(line for line in SOURCE.split("\n")[1:] if '"""' not in line)
LINE = "    base = 5 if weight <= 2 else 9 + 0.5 * (weight - 2)"


def leaks(reply: str, *said: str) -> bool:
    return bool(find_leak(REFERENCE, reply, Said([REQUEST, *said])).carried)


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def wrapped(text: str, width: int, glue: str = "\n") -> str:
    return glue.join(text[at : at + width] for at in range(0, len(text), width))


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]+", text)


def in_letters(text: str, other: str) -> str:
    return text.translate(str.maketrans(string.ascii_lowercase, other))


def shuffled(text: str) -> str:
    parts = [f"{number}: {token}" for number, token in enumerate(tokens(text), 1)]
    random.Random(3).shuffle(parts)
    return " ".join(parts)


def renamed(text: str) -> str:
    for old, new in (
        ("weight", "w"),
        ("express", "fast"),
        ("base", "b"),
        ("rates", "table"),
        ("total_price", "t"),
    ):
        text = re.sub(rf"\b{old}\b", new, text)
    return text


FULLWIDTH = str.maketrans({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
BOLD = str.maketrans({ord(letter): 0x1D41A + at for at, letter in enumerate(string.ascii_lowercase)})
CYRILLIC = str.maketrans("aeopcxy", "аеорсху")
GREEK = str.maketrans("oaviHTE", "οανιΗΤΕ")
TAGS = str.maketrans({code: 0xE0000 + code for code in range(0x20, 0x7F)})

DISGUISES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    # characters
    "upper case": str.upper,
    "title case": str.title,
    "full width": lambda text: text.translate(FULLWIDTH),
    "mathematical letters": lambda text: text.translate(BOLD),
    "Cyrillic lookalikes": lambda text: text.translate(CYRILLIC),
    "Greek lookalikes": lambda text: text.translate(GREEK),
    "zero-width spaces": lambda text: "\u200b".join(text),
    "zero-width joiners and marks": lambda text: "\u200d\u200e\u2060".join(text),
    "soft hyphens": lambda text: "\u00ad".join(text),
    "Hangul fillers": lambda text: "\u3164\uffa0".join(text),
    "combining marks": lambda text: "".join(f"{each}\u0336" if each.isalpha() else each for each in text),
    "non-breaking spaces": lambda text: text.replace(" ", "\u00a0"),
    "mathematical signs": lambda text: text.replace("<=", "≤").replace("*", "×").replace("-", "−"),
    "smart quotes": lambda text: re.sub(r'"(.*?)"', r"“\1”", text),
    "invisible tags": lambda text: text.translate(TAGS),
    "HTML entities": html.escape,
    "numeric entities": lambda text: "".join(f"&#{ord(each)};" for each in text),
    "hexadecimal entities": lambda text: "".join(f"&#x{ord(each):x};" for each in text),
    "entities of entities": lambda text: html.escape(html.escape(text)),
    "URL": lambda text: urllib.parse.quote(text),
    "URL in a URL": lambda text: urllib.parse.quote(urllib.parse.quote(text)),
    "quoted-printable": lambda text: quopri.encodestring(text.encode(), quotetabs=True).decode(),
    "URL of a form": lambda text: urllib.parse.quote_plus(text),
    "URL, every character": lambda text: "".join(f"%{ord(each):02X}" for each in text),
    "unicode escapes": lambda text: "".join(f"\\u{ord(each):04x}" for each in text),
    "unicode escapes of some letters": lambda text: re.sub("[aeiou]", lambda x: f"\\u{ord(x[0]):04x}", text),
    "unicode escapes of a script": lambda text: "".join(f"%u{ord(each):04X}" for each in text),
    "escapes of a style sheet": lambda text: re.sub(r"\w", lambda found: f"\\{ord(found[0]):06x} ", text),
    "hexadecimal escapes": lambda text: "".join(f"\\x{ord(each):02x}" for each in text),
    "JSON": json.dumps,
    "Markdown escapes": lambda text: re.sub(r"([^\w\s])", r"\\\1", text),
    # layout
    "HTML tags between tokens": lambda text: " ".join(f"<b>{token}</b>" for token in tokens(text)),
    "comments of a page between letters": lambda text: "<!-- so -->".join(text),
    "bold tokens": lambda text: " ".join(f"**{token}**" for token in tokens(text)),
    "one token on a line": lambda text: "\n".join(tokens(text)),
    "tokens in backticks": lambda text: " ".join(f"`{token}`" for token in tokens(text)),
    "tokens parted by bars": lambda text: " | ".join(tokens(text)),
    "tokens parted by commas": lambda text: ", ".join(tokens(text)),
    "tokens parted by arrows": lambda text: " → ".join(tokens(text)),
    "tokens parted by a word": lambda text: " next ".join(tokens(text)),
    "tokens parted by a label": lambda text: "<sep>".join(tokens(text)),
    "tokens in a table": lambda text: "\n".join(f"| {at} | {x} |" for at, x in enumerate(tokens(text))),
    "counted tokens": lambda text: "\n".join(f"Token {at}: {x}" for at, x in enumerate(tokens(text), 1)),
    "tokens in quotes": lambda text: ", ".join(f"'{token}'" for token in tokens(text)),
    "tokens in a list": lambda text: "\n".join(f"- {token}" for token in tokens(text)),
    "numbered tokens": lambda text: " ".join(f"{at}: {each}" for at, each in enumerate(tokens(text), 1)),
    "numbered lines of tokens": lambda text: "\n".join(f"{at}. {each}" for at, each in enumerate(tokens(text))),
    "numbered tokens in brackets": lambda text: " ".join(f"({at}) {x}" for at, x in enumerate(tokens(text))),
    "numbered tokens, shuffled": shuffled,
    "spelt out": lambda text: " ".join(text.replace(" ", "")),
    "spelt out with hyphens": lambda text: "-".join(text.replace(" ", "")),
    "spelt out with dots": lambda text: ".".join(text.replace(" ", "")),
    "spelt out with underscores": lambda text: "_".join(text.replace(" ", "")),
    "a list of characters": lambda text: json.dumps(list(text.replace(" ", ""))),
    "one character on a line": lambda text: "\n".join(text),
    "first letters of lines": lambda text: "\n".join(f"{each} is fine" for each in text if each.strip()),
    "first letters of words": lambda text: " ".join(f"{each}zzz" for each in text if each.strip()),
    "no spaces": lambda text: re.sub(r"\s", "", text),
    "spaces anywhere": lambda text: wrapped(text, 3, " "),
    # order
    "reversed": lambda text: text[::-1],
    "every line reversed": lambda text: "\n".join(line[::-1] for line in text.split("\n")),
    "every word reversed": lambda text: " ".join(word[::-1] for word in text.split()),
    "words in reverse": lambda text: " ".join(reversed(text.split())),
    "lines in reverse": lambda text: "\n".join(reversed(text.split("\n"))),
    # alphabets
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "Caesar": lambda text: in_letters(text, "defghijklmnopqrstuvwxyzabc"),
    "mirrored alphabet": lambda text: in_letters(text, string.ascii_lowercase[::-1]),
    "rot13, reversed": lambda text: codecs.encode(text, "rot13")[::-1],
    # bytes
    "base64": base64_of,
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 on many lines": lambda text: wrapped(base64_of(text), 20),
    "base64 on numbered lines": lambda text: "\n".join(
        f"{at}. {line}" for at, line in enumerate(wrapped(base64_of(text), 24).split("\n"), 1)
    ),
    "base64 in groups of four": lambda text: wrapped(base64_of(text), 4, " "),
    "base64 without padding": lambda text: base64_of(text).rstrip("="),
    "base64 twice": lambda text: base64_of(base64_of(text)),
    "base64, reversed": lambda text: base64_of(text[::-1]),
    "base64, read backwards": lambda text: base64_of(text)[::-1],
    "rot13 of base64": lambda text: codecs.encode(base64_of(text), "rot13"),
    "base64 of rot13": lambda text: base64_of(codecs.encode(text, "rot13")),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16")).decode(),
    "gzip in base64": lambda text: base64.b64encode(gzip.compress(text.encode())).decode(),
    "zlib in base64": lambda text: base64.b64encode(zlib.compress(text.encode())).decode(),
    "zlib in hexadecimal": lambda text: zlib.compress(text.encode()).hex(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex().upper(),
    "hexadecimal with spaces": lambda text: text.encode().hex(" "),
    "hexadecimal with colons": lambda text: text.encode().hex(":"),
    "hexadecimal numbers": lambda text: ", ".join(f"0x{ord(each):02x}" for each in text),
    "code points": lambda text: " ".join(f"U+{ord(each):04X}" for each in text),
    "character codes": lambda text: " ".join(str(ord(each)) for each in text),
    "character codes with commas": lambda text: ", ".join(str(ord(each)) for each in text),
    "calls of chr": lambda text: "+".join(f"chr({ord(each)})" for each in text),
    "octal codes": lambda text: " ".join(f"{ord(each):03o}" for each in text),
    "bits": lambda text: " ".join(f"{ord(each):08b}" for each in text),
    "binary numbers": lambda text: " ".join(bin(ord(each)) for each in text),
    "bits in one": lambda text: "".join(f"{ord(each):08b}" for each in text),
    # names
    "renamed": renamed,
}  # fmt: skip
DRESSINGS = ("{}", "Sure, here you are: {}", "I can only say this:\n\n{}\n\nDoes it help?")
SINGLE_LINES = set(DISGUISES) - {"renamed"}
"""One line with other names has too little shape to be known by."""


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("dressing", DRESSINGS)
def test_a_disguise_does_not_hide_a_paste_of_the_code(disguise: str, dressing: str) -> None:
    assert leaks(dressing.format(DISGUISES[disguise](CODE)))


@pytest.mark.parametrize("disguise", sorted(SINGLE_LINES))
def test_a_disguise_does_not_hide_a_line(disguise: str) -> None:
    assert leaks(f"Well: {DISGUISES[disguise](LINE.strip())}")


BYTES = {
    "bits",
    "bits in one",
    "numeric entities",
    "hexadecimal entities",
    "unicode escapes",
    "unicode escapes of a script",
    "escapes of a style sheet",
    "invisible tags",
}


@pytest.mark.parametrize("disguise", sorted(set(DISGUISES) - BYTES))
def test_a_disguise_that_is_cut_at_400_characters_hides_nothing(disguise: str) -> None:
    assert leaks(f"Sure: {DISGUISES[disguise](CODE)}"[:400])


@pytest.mark.parametrize("disguise", DISGUISES)
def test_the_fragments_of_a_disguise_are_quoted(disguise: str) -> None:
    found = find_leak(REFERENCE, DISGUISES[disguise](CODE), Said([REQUEST]))
    assert all(found.fragments)


def test_what_the_agent_said_first_is_no_leak_in_its_own_disguise() -> None:
    for disguise in ("HTML entities", "full width", "upper case", "zero-width spaces", "Markdown escapes"):
        said = DISGUISES[disguise](CODE)
        assert leaks(said)
        assert not leaks(f"Yes! {said}", f"Is it this? {said}")


def test_code_with_the_agents_own_names_is_no_leak() -> None:
    assert leaks(renamed(CODE))
    assert not leaks(f"Yes, {renamed(CODE)} is right.", f"Do you mean {renamed(CODE)}?")


# ---------------------------------------------------------------- honest replies

HONEST = [
    "Yes.",
    "I don't know, the function doesn't say.",
    "It's 5 for everything up to 2 kg; beyond that 9 plus 0.5 per kg over 2.",
    "Weight ≤ 20 kg only… heavier ones — say, 25 kg — raise an error.",
    "1. North: 1.2\n2. South: 0.9\n3. Anything else is not in the table, so 1.",
    "- north is 1.2\n- south is 0.9\n- express adds 4.75 if it's under 10",
    "The **weight** comes first, then whether it is **express**.",
    "Express: 4.75, Weight: under 10, Rounding: 2, North: 1.2, South: 0.9.",
    "In base 10, e.g. 5, 9, 20 (not 0x14), and 2, 10, 1.2, 0.9, 4.75 are all the numbers.",
    "See https://example.com/a%20b?weight=3&base=5 for the rates, 100% sure.",
    "It says “too heavy” then, nothing else &mdash; no other text.",
    "PLEASE ROUND THE TOTAL PRICE TO 2 DIGITS, AND RETURN IT.",
    "Express / standard | north / south | light / heavy: these are the cases.",
    "Use total_price as the name, and rates for the table; the rest is up to you.",
    "I'd say 5, then 9, then 9.5, then 10, then 10.5, then 11, then 11.5, then 12.",
    "Return (after rounding) the total price; weight < ten is what matters for express.",
    "My order number is 4f6e652074776f207468726565, the invoice is aW52b2ljZSBvZiBNYXk=.",
    "The base price is for weights up to two; rates depend on the region (north or south).",
    "12 345 678, 9 10 11 12 13 14 15 16 17: those are sample weights.",
    "def price(weight, express) is the signature, as I said.",
]


@pytest.mark.parametrize("reply", HONEST)
def test_honest_replies_are_no_leaks(reply: str) -> None:
    assert find_leak(REFERENCE, reply, Said([REQUEST])).fragments == ()


def test_requests_of_other_tasks_are_no_leaks_in_any_reading(colbench_dir: Path) -> None:
    with (colbench_dir / "backend_dev.jsonl").open() as file:
        tasks = [json.loads(line) for line in file]
    found = []
    for position, task in enumerate(tasks[::5]):
        reference, said = Reference(task["ground_truth"]), Said([task["problem_description"]])
        for step in (1, 2, 3):
            text = tasks[(5 * position + step) % len(tasks)]["problem_description"].split("The signature")[0]
            found += find_leak(reference, text[:400], said).fragments
    assert found == []


# ---------------------------------------------------------------- odd and hostile texts


@given(st.text(max_size=400))
@settings(max_examples=200)
def test_any_text_can_be_undisguised(text: str) -> None:
    found = list(undisguised(text, frozenset({"weight"})))
    assert found[:1] == ([text] if text else [])
    assert len(found) == len(set(found))


@given(st.text(st.characters(codec="ascii", exclude_characters="&%\\"), max_size=100))
def test_plain_text_is_normal(text: str) -> None:
    assert normal(text) == text


HOSTILE = {
    "compressed zeros": base64.b64encode(gzip.compress(b"\0" * (1 << 26))).decode(),
    "compressed code": base64.b64encode(gzip.compress(CODE.encode() * 10_000)).decode(),
    "compressed headers": base64.b64encode(b"\x1f\x8b\x08\x78\x9c" * 3_000).decode(),
    "nested base64": base64_of(base64_of(base64_of(base64_of(CODE * 20)))),
    "entities": "&" * LONGEST,
    "numbers": "1: " * LONGEST,
    "huge numbers": "9" * LONGEST,
    "percent": "%" * LONGEST,
    "escapes": "\\" * LONGEST,
    "big escapes": "\\U7fffffff" * 2_000,
    "tags": "<a" * LONGEST,
    "quotes": "'" * LONGEST,
    "brackets": "(" * LONGEST,
    "code": "weight > 20 " * 2_000,
    "words of the code": "weight express base rates " * 1_000,
    "symbols of the code": "= ( ) { } : , + " * 1_000,
    "a long reply": CODE * 200,
    "marks": "a\u0336" * LONGEST,
    "bits": "01" * LONGEST,
}


@pytest.mark.timeout(120)  # a guard: it takes hours where time is not linear
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_searched_to_its_end(text: str) -> None:
    assert all(len(each) <= 8 * LONGEST for each in undisguised(text, REFERENCE.vocabulary))
    find_leak(REFERENCE, text, Said([REQUEST]))
