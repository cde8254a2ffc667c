"""The section of example dialogues: messages, results, and the turn that a critic considers decisive."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sweetrl.domains.domain import Labels
from sweetrl.domains.registry import domain_of_scorer, labels_of_scorer
from sweetrl.report.charts import swatch
from sweetrl.report.contents import Example, ReportContents
from sweetrl.report.credit import CreditScale, credit_bar, credit_key, token_credit
from sweetrl.report.markup import Markup, counted, cut, element, excerpt, join
from sweetrl.report.messages import code_block, cut_note, is_prose, message, pieces
from sweetrl.report.pictures import PictureBudget
from sweetrl.report.scales import amount
from sweetrl.types import Check, Failure, Outcome, Reply, TokenCredit, Turn, TurnCredit, Verdict

TURNS = 30
"""Turns of a dialogue that are shown."""
DIALOGUE_CHARACTERS = 400_000
"""Approximate limit on the HTML of the agent's part of a dialogue."""
CHECKS = 40
REQUEST_CHARACTERS = 2000
BRIEF_CHARACTERS = 1500
"""Characters shown of one message in a brief transcript."""

_MARKS = {
    Outcome.PASSED: "✓",
    Outcome.WRONG: "✗",
    Outcome.RAISED: "!",
    Outcome.TIMED_OUT: "◷",
    Outcome.UNUSABLE: "∅",
}


@dataclass(frozen=True)
class Setting:
    """Data that all dialogues of a page share."""

    titles: Mapping[str, str]
    """The titles of methods, by name."""
    colours: Mapping[str, int]
    budget: PictureBudget

    @classmethod
    def of(cls, contents: ReportContents) -> "Setting":
        """The setting of a page."""
        return cls(
            titles={method.name: method.title for method in contents.methods},
            colours={method.name: number for number, method in enumerate(contents.methods)},
            budget=PictureBudget(),
        )

    def title(self, example: Example) -> str:
        """The displayed name of an example's method."""
        return self.titles.get(example.method, example.method)

    def swatch(self, example: Example) -> Markup:
        """The colour of the method of an example."""
        return swatch(self.colours.get(example.method, 0))


def dialogues(contents: ReportContents, setting: Setting) -> Markup:
    """All examples, task by task."""
    left_out = f"{contents.left_out:,} more dialogues are left out of this page."
    return join(
        [
            credit_key([each for example in contents.examples for each in example.credit]),
            *(
                _task(number, task if contents.names_tasks else None, list(examples), setting)
                for number, (task, examples) in enumerate(
                    groupby(contents.examples, key=lambda each: each.episode.task_id)
                )
            ),
            element("p", left_out, class_="note") if contents.left_out and contents.examples else None,
        ]
    )


def anchor(number: int) -> str:
    """The anchor of the examples of a task, by its number."""
    return f"example-{number}"


def _task(number: int, task: str | None, examples: Sequence[Example], setting: Setting) -> Markup:
    return element(
        "article",
        element("h3", element("code", excerpt(task, 100))) if task is not None else None,
        task_request(examples),
        gallery(examples, setting),
        *(dialogue(each, setting) for each in examples),
        class_="example",
        id=anchor(number),
    )


def task_request(examples: Sequence[Example]) -> Markup:
    """The request of the task and, folded away, the wanted result."""
    reference = next((each.reference for each in examples if each.reference), None)
    asked = message(examples[0].episode.request, limit=REQUEST_CHARACTERS)
    return join(
        [
            element("div", asked, class_="task-request"),
            fold("What was wanted", _source(reference)) if reference else None,
        ]
    )


def _source(reference: str) -> Markup:
    shown, left_out = cut(reference)
    return join([code_block(shown), cut_note(left_out) if left_out else None])


def gallery(examples: Sequence[Example], setting: Setting) -> Markup | None:
    """The wanted page and the answers of all methods side by side."""
    reference = next((each.pictures.reference for each in examples if each.pictures.reference), None)
    shown = [setting.budget.show(reference, "the wanted page", "wanted")]
    for each in examples:
        title = excerpt(setting.title(each), 60)
        earned = "" if each.verdict is None or each.verdict.reward is None else f": {each.verdict.reward:.3f}"
        shown.append(setting.budget.show(each.pictures.answer, f"the page of {title}", f"{title}{earned}"))
    return element("div", *shown, class_="gallery") if any(shown) else None


# ---------------------------------------------------------------- one dialogue


def dialogue(example: Example, setting: Setting, *, opened: bool = False) -> Markup:
    """One dialogue, turn by turn, with its verdict."""
    episode = example.episode
    failure = (
        None if episode.failure is None else element("p", failure_text(episode.failure), class_="warning")
    )
    return element(
        "details",
        _heading(example, setting),
        element("ol", *_turns(example, setting), class_="chat credited" if example.credit else "chat"),
        failure,
        verdict_details(example.verdict, folded=opened) if example.verdict is not None else None,
        class_="dialogue",
        open=opened,
    )


def brief(example: Example, setting: Setting) -> Markup:
    """A short form of a dialogue: the messages of both sides and nothing else."""
    return element(
        "details",
        _heading(example, setting),
        element("ol", *_lines(example), class_="brief"),
        class_="dialogue",
    )


def _lines(example: Example) -> Iterator[Markup]:
    scorer = "" if example.verdict is None else example.verdict.scorer
    domain = domain_of_scorer(scorer)
    turns = example.episode.turns
    for turn in turns[:TURNS]:
        yield element(
            "li", _short(turn.said if domain is None else domain.in_transcript(turn.said)), class_="a"
        )
        if turn.reply is not None:
            yield element("li", _short(turn.reply.text))
    if len(turns) > TURNS:
        yield element("li", f"… {len(turns) - TURNS} more turns are left out", class_="cut")


def _short(content: str) -> Markup:
    shown, left_out = cut(content.strip() or "(nothing)", BRIEF_CHARACTERS)
    parts: list[str | None] = [
        piece.content.strip() if piece.language is None else element("code", piece.content.strip("\n"))
        for piece in pieces(shown)
    ]
    return join([*parts, f"… {left_out:,} more characters" if left_out else None], "\n")


def labels_of(verdict: Verdict | None) -> Labels:
    """The words that the domain of a verdict uses."""
    return labels_of_scorer("" if verdict is None else verdict.scorer)


def _turns(example: Example, setting: Setting) -> Iterator[Markup]:
    """The messages of both sides, up to a limit on their size."""
    credit, scale = {each.turn: each for each in example.credit}, CreditScale.of(example.credit)
    turns, room = example.episode.turns, DIALOGUE_CHARACTERS
    for number, turn in enumerate(turns):
        if number == TURNS or room < 0:
            yield element("li", f"… {len(turns) - number} more turns are left out", class_="cut")
            return
        said = agent_turn(number, turn, credit.get(number), scale)
        room -= len(said)
        yield said
        if turn.reply is not None:
            picture = _draft(turn.reply, number, example, setting.budget)
            yield collaborator_reply(turn.reply, picture, who=labels_of(example.verdict).collaborator)


def failure_text(failure: Failure) -> str:
    """Why a dialogue broke down, in one line."""
    return excerpt(f"Broken off: {failure}", 400)


def _heading(example: Example, setting: Setting) -> Markup:
    episode = example.episode
    count = counted(len(episode.turns), "turn")
    return element(
        "summary",
        setting.swatch(example),
        element("strong", excerpt(setting.title(example), 60)),
        outcome(example.verdict),
        element("span", f"{count}, {episode.ending.replace('_', ' ')}", class_="facts"),
    )


def outcome(verdict: Verdict | None) -> Markup:
    """Success, the reward, or a note that there is none."""
    if verdict is None:
        return element("span", "not scored", class_="outcome unscored")
    if verdict.reward is None:
        return element("span", "unscored", class_="outcome unscored")
    if verdict.success:
        return element("span", "✓ success", class_="outcome success")
    labels = labels_of(verdict)
    earned = amount(verdict.reward, percent=labels.share) + (" %" if labels.share else "")
    return element("span", f"✗ {labels.reward}: {earned}", class_="outcome failure")


def agent_turn(
    number: int,
    turn: Turn,
    credit: TurnCredit | None,
    scale: CreditScale,
    *more: Markup | None,
    shaded: bool = False,
    who: str = "agent",
    **attributes: str | int,
) -> Markup:
    """The agent's message at a turn, with its advantage; `more` follows in the same bubble.

    `shaded` prose has what each word contributed; otherwise, and for code, that is folded away.
    """
    thought = turn.output if turn.output.strip() != turn.said.strip() else ""
    tokens = credit.tokens if credit is not None else None
    in_place = shaded and tokens is not None and not thought and is_prose(turn.said)
    return element(
        "li",
        element("div", _who(f"{who} · turn {number + 1}", turn.trouble), class_="who"),
        credit_bar(credit, scale),
        element(
            "div",
            None if in_place else message(turn.said or "(nothing)"),
            fold("raw output, with the thought", message(thought)) if thought else None,
            _shading(tokens, turn.output, in_place=in_place) if tokens else None,
            *more,
            class_="bubble",
        ),
        class_="agent",
        **attributes,
    )


def _shading(tokens: Sequence[TokenCredit], output: str, *, in_place: bool) -> Markup:
    shown = token_credit(tokens, output)
    return shown if in_place else fold("advantage, word by word", shown)


def collaborator_reply(reply: Reply, picture: Markup | None = None, *, who: str = "collaborator") -> Markup:
    """The collaborator's reply, with the picture it saw."""
    return element(
        "li",
        element("div", _who(who, reply.excuse and f"no reply: {reply.excuse}"), class_="who"),
        element("div", picture, message(reply.text or "(nothing)"), class_="bubble"),
        class_="collaborator",
    )


def _draft(reply: Reply, number: int, example: Example, budget: PictureBudget) -> Markup | None:
    png = None if reply.screenshot is None else example.pictures.drafts.get(reply.screenshot)
    return budget.show(png, f"the draft of turn {number + 1}", "what the collaborator saw")


def _who(side: str, trouble: str) -> str:
    """The speaker and, if the agent's words broke something, what that was."""
    return f"{side} · {excerpt(trouble, 60)}" if trouble else side


def fold(title: str, *content: Markup | None) -> Markup:
    """Something that is shown when the reader asks for it."""
    return element("details", element("summary", title), *content, class_="folded")


# ---------------------------------------------------------------- verdicts


def verdict_details(verdict: Verdict, *, folded: bool = False) -> Markup:
    """A scorer's verdict, test by test."""
    if verdict.failure is not None:
        return element("p", excerpt(f"Unscored: {verdict.failure}", 400), class_="warning")
    rows = [_check(check) for check in verdict.checks[:CHECKS]]
    rest = len(verdict.checks) - len(rows)
    note = element("p", f"… {rest} more checks", class_="cut") if rest else None
    checks = join([element("ul", *rows, class_="checks"), note])
    return element(
        "div",
        verdict_summary(verdict),
        (fold("one by one", checks) if folded else checks) if rows else None,
        class_="verdict",
    )


def verdict_summary(verdict: Verdict) -> Markup:
    """How many tests passed, the reward, and the scorer."""
    passed = sum(check.outcome is Outcome.PASSED for check in verdict.checks)
    counted = f"{passed} of {len(verdict.checks)} {labels_of(verdict).checks}" if verdict.checks else ""
    earned = "" if verdict.reward is None else f"reward {verdict.reward:.3f}"
    scorer = element("code", excerpt(verdict.scorer, 60))
    said = ", ".join(filter(None, (counted, earned))) or "unscored"
    return element("p", element("strong", said), " by ", scorer)


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
