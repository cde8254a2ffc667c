"""Games of several people at once, each with a token: everything that is said is on the disk before it is answered.

`games.jsonl` in the output folder has one line for each thing that happens. After a crash the games are rebuilt from
it: a player reloads the page and goes on. A finished game is an episode, a verdict and credit, like any other run.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sweetrl.browser.session import BrowserSession
from sweetrl.dialogue.game import Debrief, Game, choose_task, score_game
from sweetrl.dialogue.rules import cut_reply
from sweetrl.domains.registry import domain_of
from sweetrl.domains.transcripts import spoken_reply
from sweetrl.errors import SandboxError, StageError, SweetError, UsageError
from sweetrl.experiments.layout import CREDIT, EPISODES, SCREENSHOTS, VERDICTS
from sweetrl.models.streaming import heard_by
from sweetrl.outputs import spoken
from sweetrl.protocols import Agent, Collaborator
from sweetrl.records import RecordLog, decode_json, open_log, read_lines, unwritable
from sweetrl.types import Episode, Task, Turn, TurnCredit, Unfinished, Verdict, episode_id
from sweetrl.types.dialogues import as_given
from sweetrl.viewer.annotations import append_line
from sweetrl.viewer.reply_game import ReplyGame
from sweetrl.viewer.speech import Speech

T = TypeVar("T", bound=Struct)

JOURNAL = "games.jsonl"
NAME_CHARACTERS, MESSAGE_CHARACTERS = 100, 100_000
CRITIC = "oracle"
"""How the credit of games is called: the exact change in the chance of success."""


class Event(Struct, frozen=True, omit_defaults=True):
    """A line of the journal."""

    player: str
    """Token."""
    what: str
    """`invited`, `started`, `spoke` (the agent, to a player who replies), `said` (the player) or `replied` (the turn
    with its reply)."""
    name: str = ""
    consented: str = ""
    task: str = ""
    attempt: int = 0
    text: str = ""
    answer: bool = False
    unfinished: bool = False
    """Whether the limit of tokens ended what the agent said."""
    turn: Turn | None = None


@dataclass
class Player:
    """One person and the game that they are in, as the journal has it."""

    token: str
    name: str = ""
    consented: str = ""
    task: str = ""
    """Id of the task; empty before the first game."""
    attempt: int = 0
    turns: list[Turn] = field(default_factory=list)
    """Those with a reply."""
    unsent: Event | None = None
    """A message that has no reply yet."""
    failure: str = ""
    """Why it has none."""
    heard: str = ""
    """The beginning of a reply that is still coming."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by another, when more was heard or the work is done."""
    work: asyncio.Task[None] | None = None
    """Gets the reply, or scores the answer."""
    output: str | None = None
    """What an agent said that has no reply yet."""
    game: Game | ReplyGame | None = None
    debrief: Debrief | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_waiting(self) -> bool:
        """Whether the other side is speaking, or the answer is being scored."""
        return self.work is not None and not self.work.done()

    def hear(self, text: str) -> None:
        """Show the beginning of a reply."""
        self.heard = text
        self.changed.set()
        self.changed = asyncio.Event()

    def note(self, event: Event) -> None:
        """Take in what happened."""
        if event.what == "started":
            self.name, self.consented = event.name, event.consented
            self.task, self.attempt = event.task, event.attempt
            self.turns, self.output, self.game, self.debrief = [], None, None, None
        elif event.what == "spoke":
            self.output = as_given(event.text, unfinished=event.unfinished)
        elif event.what == "replied" and event.turn is not None:
            self.turns.append(event.turn)
            self.output = None
        self.unsent = event if event.what == "said" else None


@dataclass(frozen=True)
class PlaySettings:
    """What people play, and what they are told before."""

    tasks: Mapping[str, Task]
    source: str
    """Where the tasks are from, for messages."""
    output: Path
    config: Mapping[str, Any]
    """For the run card."""
    collaborator: Callable[[Task], Collaborator] | None = None
    """Who replies to people who play the agent."""
    agent: Callable[[Task], Agent] | None = None
    """Who speaks to people who play the collaborator; one of both is given."""
    players: int = 1
    consent: str = ""
    """Text that a player agrees to before the first game; empty for none."""
    ask_name: bool = False
    turn_limit: int | None = None
    seed: int = 0
    session: BrowserSession | None = None


class Games:
    """All players and their games."""

    def __init__(self, settings: PlaySettings) -> None:
        self.settings = settings
        self.players: dict[str, Player] = {}
        self._path = settings.output / JOURNAL
        try:
            settings.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(settings.output, error) from error
        # The locks of these files keep a second server away from the journal too.
        self._episodes = self._open(EPISODES, Episode, lambda each: each.id)
        self._verdicts = self._open(VERDICTS, Verdict, lambda each: each.episode_id)
        self._credit = self._open(CREDIT, TurnCredit, lambda each: each.id)
        self._journal = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._speech = Speech(spoken_reply if settings.agent is None else spoken)
        self._restore()
        while len(self.players) < settings.players:
            self._note(Event(secrets.token_urlsafe(12), "invited"))

    def _open(self, name: str, kind: type[T], identity: Callable[[T], str]) -> RecordLog[T]:
        path, config, source = self.settings.output / name, self.settings.config, self.settings.source
        return open_log(path, kind, command="play", config=config, source=source, identity=identity)

    def close(self) -> None:
        """Release the files; what was said stays."""
        for player in self.players.values():
            if player.work is not None:
                player.work.cancel()
        for log in (self._episodes, self._verdicts, self._credit):
            log.finish()
            log.close()
        os.close(self._journal)

    # -------- the journal

    def _restore(self) -> None:
        decoder = msgspec.json.Decoder(Event)
        for _, line in read_lines(self._path):
            try:
                event = decode_json(decoder, line)
            except msgspec.DecodeError:
                continue  # torn by a crash, before anybody was told that it was sent
            self._player(event.player).note(event)

    def _player(self, token: str) -> Player:
        return self.players.setdefault(token, Player(token))

    def _note(self, event: Event) -> None:
        """Write an event to the disk, and only then let it happen."""
        line = msgspec.json.encode(event) + b"\n"
        try:
            append_line(self._journal, line)
        except OSError as error:
            raise unwritable(self._path, error) from error
        self._player(event.player).note(event)

    # -------- playing

    async def start(self, player: Player, name: str, *, consents: bool) -> None:
        """Begin a game on a task that nobody has played or plays."""
        settings = self.settings
        if settings.consent and not (consents or player.consented):
            raise UsageError("agree to the text first")
        if settings.ask_name and not (name.strip() or player.name):
            raise UsageError("give a name first")
        async with player.lock:
            if player.task and player.debrief is None:
                return  # there is a game already; a second click changes nothing
            playing = {episode_id(each.task, each.attempt) for each in self.players.values() if each.task}
            task, attempt = choose_task(
                settings.tasks,
                None,
                lambda each: each in playing or self._episodes.has(each),
                settings.source,
            )
            agreed = player.consented or (now() if settings.consent else "")
            self._note(
                Event(
                    player.token,
                    "started",
                    name=name.strip()[:NAME_CHARACTERS] or player.name,
                    consented=agreed,
                    task=task.id,
                    attempt=attempt,
                )
            )

    def game_of(self, player: Player) -> Game | ReplyGame | None:
        """The game that a player is in, rebuilt after a restart; None before the first one."""
        task = self.settings.tasks.get(player.task)
        if player.game is None and task is not None:
            player.game = self._rebuilt(player, task)
        return player.game

    def _rebuilt(self, player: Player, task: Task) -> Game | ReplyGame:
        settings = self.settings
        about: dict[str, Any] = {
            "seed": settings.seed,
            "attempt": player.attempt,
            "turn_limit": settings.turn_limit,
            "past": player.turns,
        }
        if settings.agent is not None:
            return ReplyGame(task, settings.agent(task), **about, output=player.output)
        assert settings.collaborator is not None
        return Game(task, settings.collaborator(task), **about)

    def say(self, player: Player, text: str, *, answer: bool) -> None:
        """Keep a message; `proceed` gets the reply."""
        if self.game_of(player) is None or player.debrief is not None:
            raise UsageError("there is no game; start one")
        if player.is_waiting or (player.unsent is not None and not player.failure):
            raise UsageError("wait for the reply to your last message; reload the page")
        if not text.strip():
            raise UsageError("write something first")
        if len(text) > MESSAGE_CHARACTERS:
            raise UsageError(f"the message is too long: {len(text):,} characters of {MESSAGE_CHARACTERS:,}")
        self._note(Event(player.token, "said", text=text, answer=answer))
        player.failure = ""

    def proceed(self, player: Player) -> None:
        """Have the other side speak if it is its turn, while others go on playing."""
        if not player.is_waiting and not player.failure:
            player.work = asyncio.create_task(self._work(player))

    async def _work(self, player: Player) -> None:
        whole = ""

        def hear(text: str) -> None:
            nonlocal whole
            whole = text
            player.hear(self._shown(player, text))

        try:
            with heard_by(hear):
                await self.resume(player)
            if whole and not player.failure:
                self._speech.learn(whole)
        except SweetError as error:
            player.failure = str(error)
        finally:
            player.work = None
            player.hear("")

    def _shown(self, player: Player, text: str) -> str:
        said = self._speech.so_far(text)
        is_reply = self.settings.agent is None
        return cut_reply(said, domain_of(self.settings.tasks[player.task])) if is_reply else said

    async def resume(self, player: Player) -> None:
        """Go on where a message, a crash or a failure of the other side has left a game."""
        async with player.lock:
            game = self.game_of(player)
            if game is None or player.debrief is not None:
                return
            if player.unsent is not None:
                await self._send(player, game)
            elif isinstance(game, ReplyGame):
                await self._listen(player, game)

    async def _send(self, player: Player, game: Game | ReplyGame) -> None:
        message = player.unsent
        assert message is not None
        try:
            await game.say(message.text, answer=message.answer)
            player.failure = ""
        except StageError as error:
            player.failure = str(error)
            return
        if not game.is_over:
            self._note(Event(player.token, "replied", turn=game.episode.turns[-1]))
        if isinstance(game, ReplyGame):
            await self._listen(player, game)
        elif game.is_over:
            await self._finish(player, game)

    async def _listen(self, player: Player, game: ReplyGame) -> None:
        """Have the agent speak, and keep what it says before the player sees it."""
        try:
            await game.listen()
            player.failure = ""
        except StageError as error:
            player.failure = str(error)
            return
        if player.output is None and game.output is not None:
            cut = isinstance(game.output, Unfinished)
            self._note(Event(player.token, "spoke", text=game.output, unfinished=cut))
        if game.is_over:
            await self._finish(player, game)

    # -------- the end

    async def _finish(self, player: Player, game: Game | ReplyGame) -> None:
        """Keep the episode, its verdict and the credit of its turns, each once."""
        about = {"player": player.name, "consented": player.consented}
        played = game.episode.extra.get("play", {})
        episode = replace(game.episode, extra={"play": {**played, **about}})
        if not self._episodes.has(episode.id):
            self._episodes.append(episode.id, episode)
        try:
            verdict = await score_game(
                game.task, episode, self.settings.output / SCREENSHOTS, self.settings.session
            )
        except SandboxError:
            verdict = None  # `sweetrl score` does it later, where there is a sandbox
        if verdict is not None and not self._verdicts.has(episode.id):
            self._verdicts.append(episode.id, verdict)
        player.debrief = game.debrief(verdict)
        for credit in credit_of(player.debrief):
            if not self._credit.has(credit.id):
                self._credit.append(credit.id, credit)


def credit_of(debrief: Debrief) -> list[TurnCredit]:
    """The exact advantages as records; none where nobody knows them."""
    episode = debrief.episode
    return [
        TurnCredit(
            episode_id=episode.id, task_id=episode.task_id, turn=turn, critic=CRITIC, advantage=advantage
        )
        for turn, advantage in enumerate(debrief.advantages or ())
    ]


def now() -> str:
    """The time as records have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
