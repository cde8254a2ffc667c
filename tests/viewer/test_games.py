"""Games survive whatever the process does not: every state of the journal is one to go on from."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from sweetrl.domains.registry import reference_text
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import ModelError, UsageError
from sweetrl.records import read_records
from sweetrl.types import Episode, Message, Reply, Task, Verdict
from sweetrl.viewer.games import JOURNAL, Event, Games, Player, PlaySettings

TASKS = load_tasks("mini-backend:validation:2")
TASK = next(iter(TASKS.values()))


class Colleague:
    """Says yes, unless it is told to fail."""

    name = "yes"
    broken = False

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        if self.broken:
            raise ModelError("gone")
        return Reply("Yes.")


def opened(folder: Path, colleague: Colleague | None = None, **settings: object) -> tuple[Games, Player]:
    other = colleague or Colleague()
    seat = {} if "agent" in settings else {"collaborator": lambda _: other}
    made = PlaySettings(TASKS, "mini", folder, {"seed": 0}, **seat, **settings)  # type: ignore[arg-type]
    games = Games(made)
    return games, next(iter(games.players.values()))


def say(games: Games, player: Player, text: str, *, answer: bool = False) -> None:
    games.say(player, text, answer=answer)
    asyncio.run(games.resume(player))


def test_a_message_whose_reply_a_crash_cut_off_is_answered_after_it(tmp_path: Path) -> None:
    games, player = opened(tmp_path)
    asyncio.run(games.start(player, "", consents=False))
    games.close()
    line = msgspec.json.encode(Event(player.token, "said", text="Is it so?")) + b"\n"
    journal = tmp_path / JOURNAL
    journal.write_bytes(journal.read_bytes() + line + b'{"player": "torn')
    games, player = opened(tmp_path)
    asyncio.run(games.resume(player))
    assert [(turn.said, turn.reply and turn.reply.text) for turn in player.turns] == [("Is it so?", "Yes.")]
    games.close()


def test_a_failed_reply_can_be_asked_for_again(tmp_path: Path) -> None:
    colleague = Colleague()
    games, player = opened(tmp_path, colleague)
    asyncio.run(games.start(player, "", consents=False))
    colleague.broken = True
    say(games, player, "Is it so?", answer=False)
    assert "gone" in player.failure
    colleague.broken = False
    asyncio.run(games.resume(player))
    assert (len(player.turns), player.failure) == (1, "")
    games.close()


def test_a_finished_game_is_recorded_once_however_often_the_server_starts(tmp_path: Path) -> None:
    games, player = opened(tmp_path)
    asyncio.run(games.start(player, "", consents=False))
    say(games, player, reference_text(TASK), answer=True)
    assert player.debrief is not None
    for _ in range(2):
        games.close()
        games, player = opened(tmp_path)
        asyncio.run(games.resume(player))
        assert player.debrief is not None
        assert player.debrief.advantages is not None
    games.close()
    assert len(list(read_records(tmp_path / "episodes.jsonl", Episode))) == 1
    assert [each.success for each in read_records(tmp_path / "verdicts.jsonl", Verdict)] == [True]


def test_nobody_plays_without_consent_or_name_where_they_are_asked_for(tmp_path: Path) -> None:
    games, player = opened(tmp_path, consent="Everything is kept.", ask_name=True)
    with pytest.raises(UsageError, match="agree"):
        asyncio.run(games.start(player, "Ada", consents=False))
    with pytest.raises(UsageError, match="name"):
        asyncio.run(games.start(player, " ", consents=True))
    assert games.game_of(player) is None
    games.close()


def test_more_players_are_invited_and_the_old_links_stay(tmp_path: Path) -> None:
    games, player = opened(tmp_path)
    games.close()
    games, _ = opened(tmp_path, players=3)
    assert len(games.players) == 3
    assert next(iter(games.players)) == player.token
    games.close()


class Asker:
    """Asks, and answers with the reference once it was told."""

    name = "asker"

    def __init__(self) -> None:
        self.asked = 0

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        self.asked += 1
        told = any(message.text == "It is so." for message in history)
        return [f"I WANT TO ANSWER:\n{reference_text(TASK)}" if told else f"Is it so? ({self.asked})"]


def test_a_person_replies_to_an_agent_through_a_crash(tmp_path: Path) -> None:
    asker = Asker()
    games, player = opened(tmp_path, agent=lambda _: asker)
    asyncio.run(games.start(player, "", consents=False))
    asyncio.run(games.resume(player))
    games.close()
    games, player = opened(tmp_path, agent=lambda _: asker)
    asyncio.run(games.resume(player))
    assert (player.output, asker.asked) == ("Is it so? (1)", 1)  # it is not asked a second time
    say(games, player, "It is so.", answer=False)
    assert player.debrief is not None
    games.close()
    [episode] = read_records(tmp_path / "episodes.jsonl", Episode)
    assert (episode.agent, episode.collaborator) == ("asker", "human")
    assert [turn.reply and turn.reply.text for turn in episode.turns] == ["It is so.", None]
    assert [each.success for each in read_records(tmp_path / "verdicts.jsonl", Verdict)] == [True]


def test_a_second_message_waits_for_the_reply_to_the_first(tmp_path: Path) -> None:
    async def play() -> None:
        games, player = opened(tmp_path)
        await games.start(player, "", consents=False)
        games.say(player, "Is it so?", answer=False)
        games.proceed(player)
        with pytest.raises(UsageError, match="wait"):
            games.say(player, "And?", answer=False)
        assert player.work is not None
        await player.work
        assert len(player.turns) == 1
        games.close()

    asyncio.run(play())
