"""One dialogue: its turns with their credit, what else might have been said, and what the answer earned."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sweetrl.report.credit import CreditScale, credit_key
from sweetrl.report.dialogues import (
    agent_turn,
    collaborator_reply,
    failure_text,
    labels_of,
    outcome,
    verdict_details,
    verdict_summary,
)
from sweetrl.report.markup import Markup, counted, element, excerpt, join
from sweetrl.report.messages import message
from sweetrl.types import Annotation, CandidateSet, TurnValues, Verdict
from sweetrl.viewer.dialogues import Dialogue
from sweetrl.viewer.pages.answers import answer_section, hidden_section, picture
from sweetrl.viewer.pages.candidates import candidates_fold
from sweetrl.viewer.pages.frame import address, hidden_switch, page
from sweetrl.viewer.queries import Row
from sweetrl.viewer.secrets import Hidden, domain_for

TURNS = 200
"""Turns of a dialogue that are shown."""


@dataclass(frozen=True)
class Around:
    """Where a dialogue page leads to."""

    here: str
    """Its own address with the other position of the switch."""
    list_address: str
    previous: str = ""
    next: str = ""
    others: Sequence[Row] = ()
    """Other dialogues on the same task."""
    show_hidden: bool = False
    author: str = ""
    """Whose marks can be set and taken back here."""
    critics: Mapping[str, str] = field(default_factory=dict)
    """Others that judged the dialogue, and the address of this page with their credit."""
    version: int = 0
    """Of the index, before the dialogue was read."""


def dialogue_page(dialogue: Dialogue, hidden: Hidden | None, around: Around) -> str:
    """The page of one dialogue; `hidden` is given only where the switch says so."""
    return page(
        dialogue.title,
        _path(around),
        _heading(dialogue, around),
        request(dialogue),
        chat(dialogue, author=around.author),
        _other_critics(around),
        *outcome_parts(dialogue, hidden, show_hidden=around.show_hidden),
        hidden_part(hidden) if around.show_hidden else None,
        _others(dialogue, around),
        live=around.version or True,
    )


def _path(around: Around) -> Markup:
    def step(title: str, target: str, rel: str) -> Markup:
        if not target:
            return element("span", title, class_="disabled")
        return element("a", title, href=target, rel=rel, id=f"to-{rel}")

    return element(
        "nav",
        element("a", "‹ all dialogues", href=around.list_address, id="to-list"),
        element("span", step("← previous", around.previous, "prev"), step("next →", around.next, "next")),
        class_="path",
        aria_label="dialogues",
    )


def _heading(dialogue: Dialogue, around: Around) -> Markup:
    episode = dialogue.episode
    count = counted(len(episode.turns), "turn")
    facts = [count, episode.ending.replace("_", " "), f"agent {episode.agent}", f"seed {episode.seed}"]
    if player := dialogue.player:
        facts.append(f"played by {player}")
    if dialogue.title != episode.id:
        facts.append(episode.id)
    return element(
        "div",
        element("h1", element("code", excerpt(dialogue.title, 120))),
        hidden_switch(around.here, shown=around.show_hidden),
        element(
            "p",
            element("strong", excerpt(dialogue.run, 80)),
            outcome(dialogue.verdict),
            *(element("span", excerpt(fact, 80), class_="facts") for fact in facts),
            class_="summary-line",
        ),
        class_="headline",
    )


def request(dialogue: Dialogue) -> Markup:
    """What the agent was asked for."""
    return element("div", message(dialogue.episode.request, limit=4000), class_="task-request")


# ---------------------------------------------------------------- turns


def chat(
    dialogue: Dialogue, *, prefix: str = "turn", scale: CreditScale | None = None, author: str | None = None
) -> Markup:
    """What both sides said, with the credit of each turn; bars go up to `scale`, or their own largest.

    An `author` can mark turns.
    """
    key = credit_key(dialogue.credit, shaded=True) if scale is None else None
    scale = CreditScale.of(dialogue.credit) if scale is None else scale
    failure = dialogue.episode.failure
    return join(
        [
            key,
            element(
                "ol",
                *_turns(dialogue, scale, prefix, author),
                class_="chat credited" if dialogue.credit else "chat",
            ),
            None if failure is None else element("p", failure_text(failure), class_="warning"),
        ]
    )


def _turns(dialogue: Dialogue, scale: CreditScale, prefix: str, author: str | None) -> Iterator[Markup]:
    credit = {each.turn: each for each in dialogue.credit}
    who = labels_of(dialogue.verdict).collaborator
    for number, turn in enumerate(dialogue.episode.turns[:TURNS]):
        yield agent_turn(
            number,
            turn,
            credit.get(number),
            scale,
            candidates_fold(turn, _sets(dialogue, number), _values(dialogue, number)),
            None if author is None else annotation_form(dialogue, number, author),
            shaded=True,
            id=f"{prefix}-{number + 1}",
            tabindex=-1,
            data_turn=number,
        )
        if turn.reply is not None:
            seen = picture(dialogue, turn.reply.screenshot, f"what the {who} saw at turn {number + 1}")
            yield collaborator_reply(turn.reply, seen, who=who)
    if (more := len(dialogue.episode.turns) - TURNS) > 0:
        yield element("li", f"… {more:,} more turns are left out", class_="cut")


def _other_critics(around: Around) -> Markup | None:
    if not around.critics:
        return None
    links = [
        element("a", excerpt(critic, 80), href=target, class_="critic")
        for critic, target in around.critics.items()
    ]
    return element("p", "The same turns by ", join(links, ", "), class_="note other-critics")


def _sets(dialogue: Dialogue, turn: int) -> list[CandidateSet]:
    found = [each for each in dialogue.candidates if each.turn == turn]
    ranked = [each for each in found if each.advantages is not None]
    return ranked or found[:1]


def _values(dialogue: Dialogue, turn: int) -> list[TurnValues]:
    return [each for each in dialogue.values if each.turn == turn]


def annotation_form(dialogue: Dialogue, turn: int, author: str) -> Markup:
    """Where a person says whether a turn helped or hurt; what others think is told beside it."""
    marks = [each for each in dialogue.annotations if each.turn == turn]
    own = next((each for each in marks if each.author == author), None)
    mark = own.mark if own else ""
    buttons = [
        element(
            "button", title, type="button", data_mark=name, aria_pressed="true" if mark == name else "false"
        )
        for name, title in (("helped", "▲ helped"), ("hurt", "▼ hurt"))
    ]
    note = element(
        "input",
        type="text",
        value=own.note if own else "",
        placeholder="note",
        aria_label=f"note on turn {turn + 1}",
        maxlength=2000,
        hidden=own is None,
    )
    others = [_other_mark(each) for each in marks if each is not own]
    return element(
        "form",
        *buttons,
        note,
        element("span", class_="saved", role="status"),
        *others,
        class_="annotation",
        data_run=dialogue.run,
        data_episode=dialogue.episode.id,
        data_turn=turn,
    )


def _other_mark(annotation: Annotation) -> Markup:
    who = excerpt(annotation.author, 40) or "someone"
    note = f": {excerpt(annotation.note, 200)}" if annotation.note else ""
    return element("span", f"{who} thinks it {annotation.mark}{note}", class_="note")


# ---------------------------------------------------------------- how it ended


def outcome_parts(dialogue: Dialogue, hidden: Hidden | None, *, show_hidden: bool) -> list[Markup | None]:
    """The answer and what it earned; a failure that the dialogue has told already is not told again."""
    verdict = dialogue.verdict
    is_told = verdict is None or (verdict.failure is not None and verdict.failure == dialogue.episode.failure)
    return [
        answer_section(dialogue, domain_for(hidden, verdict), hidden, show_hidden=show_hidden),
        None if verdict is None or is_told else _scored(verdict, show_hidden=show_hidden),
    ]


def hidden_part(hidden: Hidden | None) -> Markup:
    """What was hidden, or why it cannot be shown."""
    if hidden is not None:
        return hidden_section(hidden)
    return element(
        "p",
        "The task of this dialogue was not found, so its reference is not shown. Start the viewer with ",
        element("code", "--tasks"),
        ", and name the file or generator that the run was given.",
        class_="warning",
    )


def _scored(verdict: Verdict, *, show_hidden: bool) -> Markup:
    if show_hidden or verdict.failure is not None:
        shown = verdict_details(verdict)
    else:
        shown = element("div", verdict_summary(verdict), class_="verdict")
    return element("section", element("h2", "Score"), shown, id="score")


def _others(dialogue: Dialogue, around: Around) -> Markup | None:
    if not around.others:
        return None
    episode = dialogue.episode
    rows = [
        element(
            "li",
            element(
                "a",
                f"{excerpt(row.run, 60)} · {excerpt(row.title, 80)}",
                href=address("/dialogue", of=row.run, id=row.id),
            ),
            " ",
            element(
                "a",
                "compare",
                href=address("/compare", left=dialogue.run, id=episode.id, right=row.run, other=row.id),
                class_="compare",
            ),
            element("span", _earned(row), class_="facts"),
        )
        for row in around.others
    ]
    return element(
        "section",
        element("h2", "Other dialogues on this task"),
        element("ul", *rows, class_="others"),
        element("p", element("a", "all on this task", href=address("/", task=episode.task_id))),
        id="others",
    )


def _earned(row: Row) -> str:
    score = "unscored" if row.reward is None else "✓ success" if row.success else f"✗ reward {row.reward:.2f}"
    return f"{score}, {counted(row.turns, 'turn')}"
