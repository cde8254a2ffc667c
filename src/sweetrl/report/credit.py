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
SHOWN = 0.0005
"""An advantage that is smaller is shown as zero."""


def credit_key(credited: Iterable[TurnCredit]) -> Markup | None:
    """What the bars beside the turns mean; None where there are none."""
    critics = sorted({each.critic for each in credited})
    if not critics:
        return None
    return element(
        "p",
        "Advantage of a turn, by ",
        element("code", excerpt(", ".join(critics), 120)),
        ": ",
        element("span", class_="swatch minus", aria_hidden="true"),
        "led astray ",
        element("span", class_="swatch plus", aria_hidden="true"),
        "brought it closer to what was wanted. The longest bar is the strongest turn of its dialogue.",
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
        """What the longest bar stands for."""
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


def token_credit(tokens: Sequence[TokenCredit]) -> Markup:
    """The words on a ground that says what each contributed."""
    shown = tokens[:TOKENS]
    strongest = max((abs(each.advantage) for each in shown if math.isfinite(each.advantage)), default=0.0)
    spans = [
        element(
            "span",
            each.text[:TOKEN_CHARACTERS],
            class_=_tint(each.advantage, strongest),
            title=f"{each.advantage:+.4f}",
        )
        for each in shown
    ]
    rest = len(tokens) - len(shown)
    note = element("p", f"… {rest} more words", class_="cut") if rest else None
    return join([element("p", *spans, class_="tokens"), note])


def _tint(advantage: float, strongest: float) -> str | None:
    """One of four grades in either direction."""
    if not strongest or not math.isfinite(advantage):
        return None
    grade = round(4 * abs(advantage) / strongest)
    return f"{'plus' if advantage > 0 else 'minus'}-{grade}" if grade else None
