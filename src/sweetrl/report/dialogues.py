"""The section of example dialogues: what was said, what it earned, and which turn a critic thinks earned it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sweetrl.report.charts import advantage_bar, colour_class
from sweetrl.report.contents import Example, ReportContents
from sweetrl.report.markup import Markup, cut, element, excerpt, join
from sweetrl.report.messages import code_block, cut_note, is_prose, message
from sweetrl.report.pictures import PictureBudget
from sweetrl.report.scales import amount
from sweetrl.types import Check, Failure, Outcome, Reply, TokenCredit, Turn, TurnCredit, Verdict

TURNS = 30
"""Turns of a dialogue that are shown."""
DIALOGUE_CHARACTERS = 400_000
"""How much HTML the agent's part of a dialogue may take, about."""
CHECKS = 40
TOKENS = 400
TOKEN_CHARACTERS = 80
REQUEST_CHARACTERS = 2000

_MARKS = {
    Outcome.PASSED: "✓",
    Outcome.WRONG: "✗",
    Outcome.RAISED: "!",
    Outcome.TIMED_OUT: "◷",
    Outcome.UNUSABLE: "∅",
}


@dataclass(frozen=True)
class _Setting:
    """What all dialogues of a page share."""

    titles: Mapping[str, str]
    """Of methods, by name."""
    colours: Mapping[str, int]
    scale: float
    """The largest advantage."""
    budget: PictureBudget

    def title(self, example: Example) -> str:
        return self.titles.get(example.method, example.method)

    def swatch(self, example: Example) -> Markup:
        colour = colour_class(self.colours.get(example.method, 0))
        return element("span", class_=f"swatch {colour}", aria_hidden="true")


def dialogues(contents: ReportContents) -> Markup:
    """All examples, task by task."""
    if not contents.examples:
        return Markup()
    credited = [each for example in contents.examples for each in example.credit]
    setting = _Setting(
        titles={method.name: method.title for method in contents.methods},
        colours={method.name: number for number, method in enumerate(contents.methods)},
        scale=largest_advantage(credited),
        budget=PictureBudget(),
    )
    left_out = f"{contents.left_out:,} more dialogues are left out of this page."
    return join(
        [
            credit_key(credited, setting.scale) if credited else None,
            *(
                _task(task, list(examples), setting)
                for task, examples in groupby(contents.examples, key=lambda each: each.episode.task_id)
            ),
            element("p", left_out, class_="note") if contents.left_out else None,
        ]
    )


def largest_advantage(credited: Iterable[TurnCredit]) -> float:
    """The largest advantage: one scale for all bars of the page."""
    sizes = [abs(each.advantage) for each in credited if each.advantage is not None]
    return max(filter(math.isfinite, sizes), default=0.0)


def credit_key(credited: Iterable[TurnCredit], scale: float) -> Markup:
    """Which critic the bars are of, and what their directions mean."""
    critics = sorted({each.critic for each in credited})
    return element(
        "p",
        "Advantage of a turn, by ",
        element("code", excerpt(", ".join(critics), 120)),
        ": ",
        element("span", class_="swatch minus", aria_hidden="true"),
        "led astray ",
        element("span", class_="swatch plus", aria_hidden="true"),
        "brought it closer to what was wanted. All bars share one scale: ",
        f"the longest is {scale:.3g}.",
        class_="note credit-key",
    )


def _task(task: str, examples: Sequence[Example], setting: _Setting) -> Markup:
    reference = next((each.reference for each in examples if each.reference), None)
    return element(
        "article",
        element("h3", element("code", excerpt(task, 100))),
        element("div", message(examples[0].episode.request, limit=REQUEST_CHARACTERS), class_="task-request"),
        fold("What was wanted", _source(reference)) if reference else None,
        _gallery(examples, setting),
        *(_dialogue(each, setting) for each in examples),
        class_="example",
    )


def _source(reference: str) -> Markup:
    shown, left_out = cut(reference)
    return join([code_block(shown), cut_note(left_out) if left_out else None])


def _gallery(examples: Sequence[Example], setting: _Setting) -> Markup | None:
    """The wanted page and the answers of all methods side by side."""
    reference = next((each.pictures.reference for each in examples if each.pictures.reference), None)
    shown = [setting.budget.show(reference, "the wanted page", "wanted")]
    for each in examples:
        title = excerpt(setting.title(each), 60)
        earned = "" if each.verdict is None or each.verdict.reward is None else f": {each.verdict.reward:.3f}"
        shown.append(setting.budget.show(each.pictures.answer, f"the page of {title}", f"{title}{earned}"))
    return element("div", *shown, class_="gallery") if any(shown) else None


# ---------------------------------------------------------------- one dialogue


def _dialogue(example: Example, setting: _Setting) -> Markup:
    episode = example.episode
    failure = (
        None if episode.failure is None else element("p", failure_text(episode.failure), class_="warning")
    )
    return element(
        "details",
        _heading(example, setting),
        element("ol", *_turns(example, setting), class_="chat credited" if example.credit else "chat"),
        failure,
        verdict_details(example.verdict) if example.verdict is not None else None,
        class_="dialogue",
    )


def _turns(example: Example, setting: _Setting) -> Iterator[Markup]:
    """What both sides said, as far as there is room for it."""
    credit = {each.turn: each for each in example.credit}
    turns, room = example.episode.turns, DIALOGUE_CHARACTERS
    for number, turn in enumerate(turns):
        if number == TURNS or room < 0:
            yield element("li", f"… {len(turns) - number} more turns are left out", class_="cut")
            return
        said = agent_turn(number, turn, credit.get(number), setting.scale)
        room -= len(said)
        yield said
        if turn.reply is not None:
            yield collaborator_reply(turn.reply, _draft(turn.reply, number, example, setting.budget))


def failure_text(failure: Failure) -> str:
    """Why a dialogue broke down, in one line."""
    return excerpt(f"Broken off: {failure.stage}: {failure.kind}: {failure.message}", 400)


def _heading(example: Example, setting: _Setting) -> Markup:
    episode = example.episode
    count = f"{len(episode.turns)} {'turn' if len(episode.turns) == 1 else 'turns'}"
    return element(
        "summary",
        setting.swatch(example),
        element("strong", excerpt(setting.title(example), 60)),
        outcome(example.verdict),
        element("span", f"{count}, {episode.ending.replace('_', ' ')}", class_="facts"),
    )


def outcome(verdict: Verdict | None) -> Markup:
    """Success, or the reward, or that there is none."""
    if verdict is None:
        return element("span", "not scored", class_="outcome unscored")
    if verdict.reward is None:
        return element("span", "unscored", class_="outcome unscored")
    if verdict.success:
        return element("span", "✓ success", class_="outcome success")
    earned = amount(verdict.reward, percent=True)
    return element("span", f"✗ reward {earned} %", class_="outcome failure")


def agent_turn(
    number: int,
    turn: Turn,
    credit: TurnCredit | None,
    scale: float,
    *more: Markup | None,
    shaded: bool = False,
    **attributes: str | int,
) -> Markup:
    """What the agent said at a turn, with its advantage; `more` follows in the same bubble.

    `shaded` prose has what each word contributed; otherwise, and for code, that is folded away.
    """
    thought = turn.output if turn.output.strip() != turn.said.strip() else ""
    tokens = credit.tokens if credit is not None else None
    in_place = shaded and tokens is not None and not thought and is_prose(turn.said)
    return element(
        "li",
        element("div", _who(f"agent · turn {number + 1}", turn.trouble), class_="who"),
        _credit(credit, scale),
        element(
            "div",
            None if in_place else message(turn.said or "(nothing)"),
            fold("raw output, with the thought", message(thought)) if thought else None,
            _shading(tokens, in_place=in_place) if tokens else None,
            *more,
            class_="bubble",
        ),
        class_="agent",
        **attributes,
    )


def _shading(tokens: Sequence[TokenCredit], *, in_place: bool) -> Markup:
    shown = _tokens(tokens)
    return shown if in_place else fold("advantage, word by word", shown)


def collaborator_reply(reply: Reply, picture: Markup | None = None) -> Markup:
    """What the collaborator replied, with what it saw."""
    return element(
        "li",
        element("div", _who("collaborator", reply.excuse and f"no reply: {reply.excuse}"), class_="who"),
        element("div", picture, message(reply.text or "(nothing)"), class_="bubble"),
        class_="collaborator",
    )


def _draft(reply: Reply, number: int, example: Example, budget: PictureBudget) -> Markup | None:
    png = None if reply.screenshot is None else example.pictures.drafts.get(reply.screenshot)
    return budget.show(png, f"the draft of turn {number + 1}", "what the collaborator saw")


def _who(side: str, trouble: str) -> str:
    """Who speaks and, if the agent's words broke something, what that was."""
    return f"{side} · {excerpt(trouble, 60)}" if trouble else side


def fold(title: str, *content: Markup | None) -> Markup:
    """Something that is shown when the reader asks for it."""
    return element("details", element("summary", title), *content, class_="folded")


# ---------------------------------------------------------------- credit


def _credit(credit: TurnCredit | None, scale: float) -> Markup | None:
    if credit is None:
        return None
    if credit.advantage is None or not math.isfinite(credit.advantage):
        return element("div", "the critic failed", class_="credit")
    number = f"{credit.advantage:+.3f}".replace("-", "−")
    return element(
        "div",
        advantage_bar(credit.advantage, scale),
        element("span", "advantage ", class_="unseen"),
        element("span", number, class_="value"),
        class_="credit",
        title="advantage of this turn",
    )


def _tokens(tokens: Sequence[TokenCredit]) -> Markup:
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


# ---------------------------------------------------------------- verdicts


def verdict_details(verdict: Verdict) -> Markup:
    """What a scorer says, test by test."""
    if verdict.failure is not None:
        failure = verdict.failure
        reason = excerpt(f"Unscored: {failure.stage}: {failure.kind}: {failure.message}", 400)
        return element("p", reason, class_="warning")
    passed = sum(check.outcome is Outcome.PASSED for check in verdict.checks)
    earned = "" if verdict.reward is None else f"reward {verdict.reward:.3f}"
    counted = f"{passed} of {len(verdict.checks)} checks passed, " if verdict.checks else ""
    rows = [_check(check) for check in verdict.checks[:CHECKS]]
    rest = len(verdict.checks) - len(rows)
    scorer = element("code", excerpt(verdict.scorer, 60))
    return element(
        "div",
        element(
            "p",
            element("strong", "Verdict: "),
            f"{counted}{earned} by ",
            scorer,
        ),
        element("ul", *rows, class_="checks") if rows else None,
        element("p", f"… {rest} more checks", class_="cut") if rest else None,
        class_="verdict",
    )


def _check(check: Check) -> Markup:
    outcome = check.outcome.replace("_", " ")
    return element(
        "li",
        element("span", _MARKS[check.outcome], class_="mark", aria_hidden="true"),
        element("span", excerpt(check.name, 60), class_="name"),
        element("span", outcome, class_="outcome-word"),
        element("span", excerpt(check.detail, 200), class_="detail") if check.detail else None,
        class_=f"check {check.outcome.value}",
    )
