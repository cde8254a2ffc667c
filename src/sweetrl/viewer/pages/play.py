"""The pages of a game: what a player agrees to, the dialogue, and what it came out as."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sweetrl.dialogue.game import Debrief, Game
from sweetrl.domains.domain import SecretPart
from sweetrl.domains.registry import domain_of
from sweetrl.outputs import find_page
from sweetrl.report.credit import CreditScale
from sweetrl.report.dialogues import agent_turn, collaborator_reply, outcome
from sweetrl.report.markup import Markup, element
from sweetrl.report.messages import code_block, message
from sweetrl.types import Turn, TurnCredit
from sweetrl.viewer.games import Player, PlaySettings, credit_of
from sweetrl.viewer.pages.answers import framed_page, title_of
from sweetrl.viewer.pages.frame import address, page
from sweetrl.viewer.reply_game import ReplyGame


def play_page(settings: PlaySettings, player: Player, game: Game | ReplyGame | None) -> str:
    """What a player sees now."""
    content: list[Markup | None]
    if game is None:
        content = [element("h1", "A dialogue"), _invitation(settings), _start(settings, player, "Start")]
    elif player.debrief is not None:
        content = [*_debriefing(player.debrief, game), _start(settings, player, "Play another")]
    elif isinstance(game, ReplyGame):
        content = _replying(player, game)
    else:
        content = _playing(player, game)
    return page("Play", element("div", *content, id="live", class_="play"), is_game=True)


def _invitation(settings: PlaySettings) -> Markup:
    said = (
        "An agent is asked for something, and only you know what exactly is wanted. It asks, you reply."
        if settings.collaborator is None
        else "You are asked for something, but the request leaves things open. Ask about them, then hand in an answer."
    )
    return element("p", said, " Afterwards you see how the answer was scored.", class_="lead")


def _start(settings: PlaySettings, player: Player, title: str) -> Markup:
    """The button that starts a game, after consent and name where they are asked for."""
    consent = settings.consent and not player.consented
    named = settings.ask_name and not player.name
    return element(
        "form",
        element("div", *(element("p", part) for part in settings.consent.split("\n\n")), class_="consent")
        if consent
        else None,
        element(
            "label",
            element("input", type="checkbox", name="consents", required=True),
            " I have read this and agree.",
        )
        if consent
        else None,
        element("label", "Name ", element("input", name="name", required=True, maxlength=100))
        if named
        else None,
        element("button", title, class_="primary"),
        element("span", class_="saved", role="status"),
        id="start",
    )


def _playing(player: Player, game: Game) -> list[Markup | None]:
    sides = _sides(game)
    return [
        element("h1", "Find out what is wanted, then answer"),
        element("p", game.goal, class_="lead"),
        element("div", message(game.task.request, limit=4000), class_="task-request"),
        _chat(
            _turns(player, game),
            sides,
            awaited=_awaited(
                player, "scoring the answer" if _hands_in(player) else sides.collaborator, "collaborator"
            ),
        ),
        *_next(player, game, answers=True),
    ]


def _replying(player: Player, game: ReplyGame) -> list[Markup | None]:
    sides = _sides(game)
    return [
        element("h1", "You know what is wanted: help the agent"),
        element(
            "p", "Answer what it asks in your own words, and do not give the solution away.", class_="lead"
        ),
        element("div", message(game.task.request, limit=4000), class_="task-request"),
        element("aside", *_secret(_parts(player, game)), aria_label="what is wanted"),
        _chat(
            _turns(player, game),
            sides,
            awaited=_awaited(player, sides.agent, "agent"),
        ),
        *_next(player, game, answers=False),
    ]


def _next(player: Player, game: Game | ReplyGame, *, answers: bool) -> list[Markup | None]:
    """What the player can do now."""
    if player.is_waiting:
        return []
    number = element("p", f"Message {game.turn} of {game.turn_limit}", class_="note", id="turn")
    return [_failure(player) if player.failure else None, number, _entry(player, answers=answers)]


def _hands_in(player: Player) -> bool:
    return player.unsent is not None and player.unsent.answer


def _turns(player: Player, game: Game | ReplyGame) -> Sequence[Turn]:
    """What was said, as far as the player sees it."""
    if player.debrief is not None:
        return player.debrief.episode.turns
    if isinstance(game, ReplyGame):
        return [*player.turns, *([game.awaiting] if game.awaiting else [])]
    said = "" if player.unsent is None or not player.is_waiting else player.unsent.text
    return [*player.turns, *([Turn(said, said)] if said else [])]


def _parts(player: Player, game: Game | ReplyGame) -> Sequence[SecretPart]:
    """What the player may see of the secret: nothing while they have to find it out."""
    if player.debrief is not None:
        return player.debrief.parts
    return domain_of(game.task).parts_of(game.task) if isinstance(game, ReplyGame) else ()


def page_text(player: Player, game: Game | ReplyGame | None, name: str) -> str | None:
    """A page that the player may see, for a frame in which nothing runs; None if there is none of this name."""
    if game is None:
        return None
    texts = {_name("turn", number): turn.said for number, turn in enumerate(_turns(player, game))}
    texts |= {_name("part", number): part.text for number, part in enumerate(_parts(player, game))}
    return find_page(texts.get(name, ""))


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def _framed(text: str, name: str, title: str) -> Markup | None:
    """How a page looks that was said or is wanted."""
    if find_page(text) is None:
        return None
    return element("div", framed_page(address("/page", name=name), title), class_="scaled-page")


class _Sides(NamedTuple):
    """What both sides are called on the page of a player."""

    agent: str
    collaborator: str


def _sides(game: Game | ReplyGame) -> _Sides:
    if isinstance(game, ReplyGame):
        return _Sides("agent", "you")
    return _Sides("you", domain_of(game.task).labels.collaborator)


def _awaited(player: Player, who: str, side: str) -> Markup | None:
    """The place of what the other side is saying; the page's script fills it in."""
    if not player.is_waiting:
        return None
    speaker = element("div", who, class_="who")
    bubble = element("div", player.heard, class_="bubble heard")
    return element("li", speaker, bubble, class_=side, id="awaited", aria_busy="true")


def _failure(player: Player) -> Markup:
    return element(
        "form",
        element("p", f"The other side failed: {player.failure}", class_="warning"),
        element("button", "Ask again"),
        element("span", class_="saved", role="status"),
        id="again",
    )


def _secret(parts: Iterable[SecretPart]) -> Iterator[Markup]:
    for number, part in enumerate(parts):
        title = title_of(part)
        look = _framed(part.text, _name("part", number), title) if part.language == "html" else None
        yield element("section", element("h2", title), look, code_block(part.text, part.language))


def _entry(player: Player, *, answers: bool) -> Markup:
    text = "" if player.unsent is None else player.unsent.text
    return element(
        "form",
        element("textarea", text, name="text", rows=4, required=True, aria_label="your message"),
        element("button", "Send", name="say", title="Ctrl+Enter", class_="primary"),
        element("button", "Hand in as the answer", name="answer", title="This ends the game.")
        if answers
        else None,
        element("span", class_="saved", role="status"),
        id="say",
    )


def _chat(
    turns: Sequence[Turn],
    sides: _Sides,
    credited: Sequence[TurnCredit] = (),
    awaited: Markup | None = None,
) -> Markup:
    """What both sides said."""
    credit = {each.turn: each for each in credited}
    scale = CreditScale.of(credited)
    items = []
    for number, turn in enumerate(turns):
        look = _framed(turn.said, _name("turn", number), f"the page of turn {number + 1}")
        items.append(agent_turn(number, turn, credit.get(number), scale, look, who=sides.agent))
        if turn.reply is not None:
            items.append(collaborator_reply(turn.reply, who=sides.collaborator))
    return element("ol", *items, awaited, class_="chat credited" if credit else "chat")


def _debriefing(debrief: Debrief, game: Game | ReplyGame) -> list[Markup | None]:
    missed = [element("li", fact) for fact in debrief.missed]
    return [
        element("h1", "How it ended"),
        element("p", outcome(debrief.verdict), class_="summary-line"),
        element("p", "The bars show by how much each turn changed the chance of success.", class_="note")
        if debrief.advantages
        else None,
        _chat(debrief.episode.turns, _sides(game), credit_of(debrief)),
        element("h2", "What you did not find out") if missed else None,
        element("ul", *missed) if missed else None,
        *_secret(debrief.parts),
    ]
