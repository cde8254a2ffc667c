"""What the words of a turn contributed."""

import pytest

from report.reading import read
from sweetrl.report.credit import END, token_credit
from sweetrl.types import TokenCredit


def shown(texts: list[str], output: str) -> list[tuple[str, str]]:
    page = read(token_credit([TokenCredit(text, 0.5) for text in texts], output))
    return [(span.text, span.attributes["title"]) for span in page.all("span")]


@pytest.mark.parametrize("end", [["<|end|>"], ["</s>"], ["<|im_end|>", "\n"], ["", "<eos>", "\n"]])
def test_what_ends_a_turn_is_one_sign_with_its_advantage(end: list[str]) -> None:
    about = f"end of the turn: {0.5 * len(end):+.4f}"
    assert shown(["Is", " it?", *end], "Is it?") == [("Is", "+0.5000"), (" it?", "+0.5000"), (END, about)]


@pytest.mark.parametrize(
    ("texts", "output"),
    [
        (["Is", " it"], "Is it"),  # cut off: nothing ended the turn
        (["Is", " it?", "\n"], "Is it?\n"),
        (["Is", " it", " <|end|>"], "Is it <|end|>"),  # the agent wrote it out
        (["other", "tokens", "than", "those"], "Is it?"),
    ],
)
def test_words_of_the_agent_are_never_taken_for_the_end(texts: list[str], output: str) -> None:
    assert [text for text, _ in shown(texts, output)] == texts
