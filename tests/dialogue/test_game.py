import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sweetrl.critics.scripted import critic_named
from sweetrl.dialogue.collaborators import ScriptedCollaborator
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.game import Game, choose_task, score_game, turn_limit_of
from sweetrl.domains.backend.colleague import ScriptedColleague
from sweetrl.domains.backend.mini_backend import hidden_facts, make_tasks, question_about, written_from
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import CollaboratorError, StageError, UsageError
from sweetrl.types import Ending, Message, Reply, Task, Verdict

[MINI] = make_tasks("validation", 1)
OTHER = Task(
    id="t",
    domain="backend",
    request="Price a parcel.",
    secret=BackendSecret("def price(weight):\n    return 7 * weight", {"test1": "price(1)"}),
)


def play(game: Game, *messages: str, answer: str) -> Game:
    async def say() -> None:
        for message in messages:
            assert isinstance(await game.say(message), Reply)
        await game.say(answer, answer=True)

    asyncio.run(say())
    return game


def verdict(game: Game, *, success: bool) -> Verdict:
    episode = game.episode
    return Verdict(
        task_id=episode.task_id, episode_id=episode.id, scorer="s/1", answer_digest="", reward=float(success),
        success=success,
    )  # fmt: skip


def questions() -> list[str]:
    return [question_about(fact, 0) for fact in sorted(hidden_facts(MINI))]


def test_a_game_leaves_the_episode_of_the_same_dialogue() -> None:
    game = play(Game(MINI, ScriptedColleague(), seed=3, attempt=1), "Is there a bonus?", answer="pass")
    dialogue = Dialogue(MINI, ScriptedColleague(), seed=3, attempt=1, agent="human")
    dialogue.say_sync("Is there a bonus?")
    dialogue.say_sync("I WANT TO ANSWER:\npass")
    assert game.episode == dialogue.episode
    assert game.is_over


def test_turns_are_counted_from_one_up_to_the_limit_of_the_benchmark() -> None:
    game = Game(MINI, ScriptedColleague())
    assert (game.turn, game.turn_limit, turn_limit_of(OTHER)) == (1, 8, 10)
    asyncio.run(game.say("Who will use it?"))
    assert game.turn == 2


def test_the_last_turn_ends_the_game_without_an_answer() -> None:
    game = Game(OTHER, ScriptedCollaborator(["Yes."]), turn_limit=1)
    asyncio.run(game.say("By weight?"))
    assert game.episode.ending is Ending.TURN_LIMIT


def test_advantages_are_those_of_the_oracle() -> None:
    game = play(Game(MINI, ScriptedColleague()), *questions()[:2], answer="def wrong(n): return 0")
    oracle, episode = critic_named("mini-backend"), game.episode
    expected = [
        asyncio.run(oracle.advantages(MINI, episode.history(at), [turn.output]))[0]
        for at, turn in enumerate(episode.turns)
    ]
    found = game.debrief(verdict(game, success=False)).advantages
    assert found == tuple(expected)
    assert found[0] > 0 > found[-1]


def test_a_right_answer_in_other_words_is_worth_as_much_as_the_reference(tmp_path: Path) -> None:
    asked = play(Game(MINI, ScriptedColleague()), *questions(), answer="x").episode
    code = written_from(asked.history(len(asked.turns) - 1))
    same, other = (
        play(Game(MINI, ScriptedColleague()), *questions(), answer=answer)
        for answer in (code, f"# my own\n{code}")
    )
    assert (
        other.debrief(verdict(other, success=True)).advantages
        == same.debrief(verdict(same, success=True)).advantages
    )
    scored = asyncio.run(score_game(MINI, other.episode, tmp_path, None))
    assert scored is not None
    assert scored.success


def test_no_advantages_where_nobody_knows_them() -> None:
    unknown = play(Game(OTHER, ScriptedCollaborator(["Yes."])), "By weight?", answer="x")
    assert unknown.debrief(verdict(unknown, success=False)).advantages is None
    longer = play(Game(MINI, ScriptedColleague(), turn_limit=9), answer="x")
    assert longer.debrief(verdict(longer, success=False)).advantages is None
    unscored = play(Game(MINI, ScriptedColleague()), answer="x")
    assert unscored.debrief(None).advantages is None


def test_facts_that_nobody_asked_about_are_named_with_their_question_and_reply() -> None:
    asked, *rest = questions()
    missed = play(Game(MINI, ScriptedColleague()), asked, answer="x").debrief(None).missed
    assert [any(each.startswith(question) for each in missed) for question in (asked, *rest)] == [
        False,
        *([True] * len(rest)),
    ]
    assert all(len(each) > len(question) for each, question in zip(missed, rest, strict=True))


def test_facts_of_other_tasks_are_those_that_no_reply_told() -> None:
    silent = play(Game(OTHER, ScriptedCollaborator(["No idea."])), "By weight?", answer="x")
    assert silent.debrief(None).missed == ("literal 7",)
    told = play(Game(OTHER, ScriptedCollaborator(["It is 7 a kilo."])), "By weight?", answer="x")
    assert told.debrief(None).missed == ()


def test_whoever_looks_at_the_tests_has_it_in_the_record() -> None:
    game = Game(OTHER, ScriptedCollaborator(["Yes."]))
    assert game.episode.extra == {}
    assert game.tests() == "price(1)  # test1"
    assert game.episode.extra == {"play": {"saw_tests": True}}


def test_a_message_can_be_sent_again_after_the_collaborator_failed() -> None:
    class Moody(ScriptedCollaborator):
        asleep = True

        async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
            if self.asleep:
                raise CollaboratorError("asleep")
            return Reply("Yes.")

    moody = Moody([])
    game = Game(OTHER, moody)
    with pytest.raises(StageError):
        asyncio.run(game.say("By weight?"))
    assert game.episode.ending is Ending.FAILED
    moody.asleep = False
    assert asyncio.run(game.say("By weight?")) == Reply("Yes.")


def test_the_first_task_that_was_not_played_is_next_and_then_another_attempt() -> None:
    tasks = {"a": OTHER, "t": OTHER}
    assert choose_task(tasks, None, {"a#0"}.__contains__, "x")[1] == 0
    assert choose_task({"t": OTHER}, None, {"t#0", "t#1"}.__contains__, "x") == (OTHER, 2)
    with pytest.raises(UsageError, match="no task has the id 'b'"):
        choose_task(tasks, "b", {"a#0"}.__contains__, "x")
