"""Credit beside the turns of a dialogue: a bar for each turn, a ground for each word, and what they mean."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sweetrl.report.charts import advantage_bar
from sweetrl.report.markup import Markup, element, excerpt, join
from sweetrl.report.scales import advantage_text
from sweetrl.types import TokenCredit, TurnCredit

TOKENS = 400
TOKEN_CHARACTERS = 80
END = "⏎"
"""Stands for what ends a turn, such as `<|im_end|>` and a line break."""
ENDING_TOKENS = 4
"""One more than chat templates put at the end of a turn."""
SHOWN = 0.0005
"""An advantage that is smaller is shown as zero."""


def credit_key(
    credited: Sequence[TurnCredit], *, whose: str = "its dialogue", shaded: bool = False
) -> Markup | None:
    """The legend of the bars beside the turns, up to the strongest turn of `whose`; None if there are no bars.

    `shaded` explains the ground of words, too.
    """
    critics = sorted({each.critic for each in credited})
    if not critics:
        return None
    words = " Words are shaded by what each contributed." if any(each.tokens for each in credited) else ""
    return element(
        "p",
        "Advantage of a turn, by ",
        element("code", excerpt(", ".join(critics), 120)),
        ": ",
        element("span", class_="swatch minus", aria_hidden="true"),
        "led astray ",
        element("span", class_="swatch plus", aria_hidden="true"),
        "brought it closer to what was wanted. ",
        f"The longest bar is the strongest turn of {whose}.",
        words if shaded else None,
        class_="note credit-key",
    )


@dataclass(frozen=True)
class CreditScale:
    """The advantages of a dialogue: its bars have a scale of their own."""

    low: float
    high: float

    @classmethod
    def of(cls, credited: Iterable[TurnCredit]) -> "CreditScale":
        """The scale of a dialogue."""
        known = [each.advantage for each in credited if each.advantage is not None]
        finite = list(filter(math.isfinite, known))
        return cls(min(finite, default=0.0), max(finite, default=0.0))

    @property
    def largest(self) -> float:
        """The value of the longest bar."""
        return max(abs(self.low), abs(self.high))

    def remark(self, advantage: float) -> str:
        """Whether this is the turn that a reader should look at; not if its advantage is shown as zero."""
        if abs(advantage) < SHOWN:
            return ""
        if advantage == self.low < 0:
            return "hurt most"
        return "helped most" if advantage == self.high > 0 else ""


def credit_bar(credit: TurnCredit | None, scale: CreditScale) -> Markup | None:
    """The advantage of a turn as a bar and a number; None where there is none."""
    if credit is None:
        return None
    if credit.advantage is None or not math.isfinite(credit.advantage):
        return element("div", "the critic failed", class_="credit")
    remark = scale.remark(credit.advantage)
    return element(
        "div",
        element("span", remark, class_=f"remark {'minus' if credit.advantage < 0 else 'plus'}")
        if remark
        else None,
        advantage_bar(credit.advantage, scale.largest),
        element("span", "advantage ", class_="unseen"),
        element("span", advantage_text(credit.advantage), class_="value"),
        class_="credit",
        title="advantage of this turn",
    )


def token_credit(tokens: Sequence[TokenCredit], output: str) -> Markup:
    """The words of an output, coloured by the contribution of each.

    What the model emitted to end its turn is no word: it is one sign, however the model writes it.
    """
    words, ends = _without_ends(tokens, output)
    shown = words[:TOKENS]
    strongest = max(
        (abs(each.advantage) for each in (*shown, *ends) if math.isfinite(each.advantage)), default=0.0
    )
    spans = [_token(each.text[:TOKEN_CHARACTERS], each.advantage, strongest) for each in shown]
    rest = len(words) - len(shown)
    if ends and not rest:
        spans.append(_token(END, sum(each.advantage for each in ends), strongest, "end of the turn: "))
    note = element("p", f"… {rest} more words", class_="cut") if rest else None
    return join([element("p", *spans, class_="tokens"), note])


def _without_ends(
    tokens: Sequence[TokenCredit], output: str
) -> tuple[Sequence[TokenCredit], Sequence[TokenCredit]]:
    """The tokens of the output, and those that only end the turn: the output does not end with them."""
    said = output.rstrip()
    for number in range(len(tokens), max(0, len(tokens) - ENDING_TOKENS), -1):
        last = tokens[number - 1].text.strip()
        if last and said.endswith(last):
            ends = tokens[number:]
            return (tokens[:number], ends) if any(each.text.strip() for each in ends) else (tokens, ())
    return tokens, ()


def _token(text: str, advantage: float, strongest: float, about: str = "") -> Markup:
    tint = _tint(advantage, strongest)
    classes = " ".join(filter(None, (tint, "end" if about else "")))
    return element("span", text, class_=classes or None, title=f"{about}{advantage:+.4f}")


def _tint(advantage: float, strongest: float) -> str | None:
    """One of four grades in either direction."""
    if not strongest or not math.isfinite(advantage):
        return None
    grade = round(4 * abs(advantage) / strongest)
    return f"{'plus' if advantage > 0 else 'minus'}-{grade}" if grade else None
