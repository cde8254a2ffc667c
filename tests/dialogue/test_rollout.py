import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.dialogue.budget import Budget
from sweetrl.dialogue.collaborators import ReplayedCollaborator, ScriptedCollaborator
from sweetrl.dialogue.rollout import Progress, roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import CollaboratorError, ConfigError, ModelError
from sweetrl.models.meter import Meter
from sweetrl.seeds import derive_seed
from sweetrl.types import Ending, Episode, Message, Reply, Task, Turn


def backend_task(name: str) -> Task:
    secret = BackendSecret(reference="def f(): return 'SECRET'", tests={"test1": "f()"})
    return Task(id=name, domain="backend", request=f"Write {name}.", secret=secret)


TASKS = [backend_task(f"t{number}") for number in range(5)]
ANSWER = "I WANT TO ANSWER: def f(): pass"


def chatty(history: Sequence[Message], seed: int) -> str:
    """Asks a seeded question three times, then answers."""
    return f"hm OUTPUT: question {seed}?" if len(history) < 6 else f"I WANT TO ANSWER: {seed}"


def seeded(task: Task, history: Sequence[Message], seed: int) -> str:
    return f"{task.id} {len(history)} {seed}"


async def collect(episodes: AsyncIterator[Episode]) -> list[Episode]:
    return [episode async for episode in episodes]


def rolled(*arguments: object, **options: object) -> list[Episode]:
    return asyncio.run(collect(roll_out(*arguments, **options)))  # type: ignore[arg-type]


class Waiting:
    """An agent and a collaborator in one that take their time before they speak; counts who is inside."""

    name = "waiting"

    def __init__(self, delay: Callable[[], float] = lambda: 0.0) -> None:
        self.delay = delay
        self.inside = 0
        self.most = 0

    async def _wait(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(self.delay())
        finally:
            self.inside -= 1

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        await self._wait()
        return [chatty(history, seed)]

    async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
        await self._wait()
        return Reply(seeded(task, history, seed))


class Breaking:
    """An agent that raises on the tasks whose request holds a word, and answers the others at once."""

    name = "breaking"

    def __init__(self, word: str, error: BaseException) -> None:
        self.word = word
        self.error = error

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        await asyncio.sleep(0)
        if self.word in history[0].text:
            raise self.error
        return [ANSWER]


# ---------------------------------------------------------------- one dialogue


def test_an_episode_records_outputs_what_was_said_and_the_replies() -> None:
    agent = ScriptedAgent(["thought OUTPUT: Which?", ANSWER], name="agent x")
    collaborator = ScriptedCollaborator(["This."], name="collaborator y")
    [episode] = rolled(TASKS[:1], agent, collaborator, seed=3)
    assert episode == Episode(
        task_id="t0",
        attempt=0,
        seed=3,
        agent="agent x",
        collaborator="collaborator y",
        request="Write t0.",
        turns=(Turn("thought OUTPUT: Which?", "Which?", Reply("This.")), Turn(ANSWER, ANSWER)),
        ending=Ending.ANSWERED,
        answer="def f(): pass",
    )


def test_the_agent_sees_replies_but_neither_thoughts_nor_the_secret() -> None:
    seen: list[list[str]] = []

    def agent(history: Sequence[Message], seed: int) -> str:
        seen.append([message.text for message in history])
        return "thought OUTPUT: Which?" if len(history) == 1 else ANSWER

    rolled(TASKS[:1], ScriptedAgent(agent), ScriptedCollaborator(["This."]))
    assert seen == [["Write t0."], ["Write t0.", "Which?", "This."]]


def test_the_stored_history_is_what_the_agent_saw() -> None:
    seen: list[tuple[Message, ...]] = []

    def agent(history: Sequence[Message], seed: int) -> str:
        seen.append(tuple(history))
        return chatty(history, seed)

    [episode] = rolled(TASKS[:1], ScriptedAgent(agent), ScriptedCollaborator(seeded))
    assert [episode.history(turn) for turn in range(len(episode.turns))] == seen


def test_replies_are_cut_before_anyone_sees_them() -> None:
    agent = ScriptedAgent(lambda history, seed: ANSWER if len(history) > 1 else "Which?")
    [episode] = rolled(TASKS[:1], agent, ScriptedCollaborator(["x" * 5000]))
    assert episode.turns[0].reply == Reply("x" * 400)
    page = Task(id="p", domain="frontend", request="A page.", secret=FrontendSecret(page="<html>"))
    [episode] = rolled([page], agent, ScriptedCollaborator(["x" * 5000]))
    assert episode.turns[0].reply == Reply("x" * 1000)


def test_the_tenth_turn_ends_a_dialogue_without_a_last_reply() -> None:
    [episode] = rolled(TASKS[:1], ScriptedAgent(["Why?"] * 10), ScriptedCollaborator(["So."] * 10))
    assert episode.ending is Ending.TURN_LIMIT
    assert [turn.reply for turn in episode.turns] == [Reply("So.")] * 9 + [None]
    assert episode.answer == "Why?"


def test_in_single_turn_mode_the_collaborator_is_never_asked() -> None:
    rules = Rules(single_turn=True)
    [episode] = rolled(TASKS[:1], ScriptedAgent(["def f(): pass"]), ScriptedCollaborator([]), rules=rules)
    assert (episode.ending, episode.answer) == (Ending.ANSWERED, "def f(): pass")
    assert len(episode.turns) == 1


def test_the_screenshot_that_a_reply_refers_to_is_kept() -> None:
    class Client(Waiting):
        async def reply(self, task: Task, history: Sequence[Message], *, seed: int) -> Reply:
            return Reply("Wider.", screenshot="abc")

    [episode] = rolled(TASKS[:1], ScriptedAgent(["Which?", ANSWER]), Client())
    assert episode.turns[0].reply == Reply("Wider.", "abc")


def test_half_a_character_from_a_model_does_not_make_a_record_that_cannot_be_written() -> None:
    agent = ScriptedAgent(["\ud800?", ANSWER])
    [episode] = rolled(TASKS[:1], agent, ScriptedCollaborator(["\udfff!"]))
    assert msgspec.json.decode(msgspec.json.encode(episode), type=Episode) == episode
    assert episode.turns[0].output == "\ufffd?"


def test_stored_dialogues_can_be_replayed_to_the_letter() -> None:
    stored = rolled(TASKS, ScriptedAgent(chatty), ScriptedCollaborator(seeded), attempts=2)
    collaborator = ReplayedCollaborator(stored, name="scripted")
    again = rolled(TASKS, ScriptedAgent(chatty), collaborator, attempts=2)
    assert sorted(again, key=lambda each: each.id) == sorted(stored, key=lambda each: each.id)


# ---------------------------------------------------------------- many dialogues


def test_every_attempt_on_every_task_is_held_once() -> None:
    episodes = rolled(TASKS, ScriptedAgent([ANSWER]), ScriptedCollaborator([]), attempts=3, concurrency=2)
    wanted = sorted(f"t{number}#{attempt}" for number in range(5) for attempt in range(3))
    assert sorted(episode.id for episode in episodes) == wanted


def test_all_tasks_are_attempted_once_before_any_is_attempted_twice() -> None:
    episodes = rolled(TASKS, ScriptedAgent([ANSWER]), ScriptedCollaborator([]), attempts=2, concurrency=1)
    assert [episode.attempt for episode in episodes] == [0] * 5 + [1] * 5


def test_episodes_that_exist_are_skipped() -> None:
    done = {"t0#0", "t3#1"}
    agent = ScriptedAgent([ANSWER])
    episodes = rolled(TASKS, agent, ScriptedCollaborator([]), attempts=2, skip=done.__contains__)
    assert len(episodes) == 8
    assert not done & {episode.id for episode in episodes}


def test_no_more_dialogues_are_open_than_allowed_and_no_fewer_if_there_are_some() -> None:
    both = Waiting(lambda: 0.001)
    progress = Progress()
    rolled(TASKS * 4, both, both, concurrency=7, progress=progress)
    assert both.most == 7
    assert (progress.open, progress.finished, progress.turns) == (0, 20, 80)


def test_a_slow_dialogue_does_not_hold_up_the_others() -> None:
    released = asyncio.Event()

    class SlowOnFirst(Waiting):
        async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
            if "t0" in history[0].text:
                await released.wait()
            return [ANSWER]

    async def go() -> list[str]:
        order = []
        async for episode in roll_out(TASKS, SlowOnFirst(), Waiting(), concurrency=2):
            order.append(episode.task_id)
            if len(order) == 4:
                released.set()
        return order

    assert asyncio.run(go()) == ["t1", "t2", "t3", "t4", "t0"]


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_dialogues_under_any_scheduling(concurrency: int, chaos: int) -> None:
    delays = random.Random(chaos)
    both = Waiting(lambda: delays.choice([0, 0, 0.0005]))
    options = {"attempts": 2, "seed": 11}
    in_order = rolled(TASKS, Waiting(), Waiting(), concurrency=1, **options)
    shuffled = rolled(TASKS, both, both, concurrency=concurrency, **options)
    assert sorted(shuffled, key=lambda each: each.id) == sorted(in_order, key=lambda each: each.id)


def test_every_utterance_has_a_seed_of_its_own_and_another_run_seed_changes_them_all() -> None:
    def seeds(run_seed: int) -> set[int]:
        given: list[int] = []

        def agent(history: Sequence[Message], seed: int) -> str:
            given.append(seed)
            return chatty(history, seed)

        def collaborator(task: Task, history: Sequence[Message], seed: int) -> str:
            given.append(seed)
            return "Yes."

        rolled(TASKS, ScriptedAgent(agent), ScriptedCollaborator(collaborator), attempts=2, seed=run_seed)
        assert len(given) == 10 * (4 + 3)
        return set(given)

    first, second = seeds(1), seeds(2)
    assert len(first) == len(second) == 70
    assert not first & second


def test_a_turns_seed_can_be_derived_from_the_record() -> None:
    class Telling(Waiting):
        async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
            return [f"I WANT TO ANSWER: {seed}" if len(history) > 1 else f"{seed}"]

    [episode] = rolled(TASKS[:1], Telling(), Waiting(), seed=5)
    assert [turn.output.removeprefix("I WANT TO ANSWER: ") for turn in episode.turns] == [
        str(derive_seed(episode.seed, episode.task_id, episode.attempt, turn, "agent")) for turn in (0, 1)
    ]


# ---------------------------------------------------------------- breakdowns


def test_a_breakdown_ends_its_own_dialogue_only_and_says_why() -> None:
    progress = Progress()
    agent = Breaking("t2", ModelError("the endpoint\n is gone", kind="dead"))
    episodes = {each.task_id: each for each in rolled(TASKS, agent, Waiting(), progress=progress)}
    broken = episodes.pop("t2")
    assert (broken.ending, broken.answer) == (Ending.FAILED, None)
    assert broken.failure is not None
    assert msgspec.structs.astuple(broken.failure) == ("agent", "dead", "the endpoint is gone")
    assert {each.ending for each in episodes.values()} == {Ending.ANSWERED}
    assert (progress.finished, progress.failed, progress.dropped) == (4, 1, 0)


def test_a_breakdown_of_the_collaborator_is_told_apart_and_keeps_the_turns_so_far() -> None:
    replies = iter(["Yes."])

    def script(task: Task, history: Sequence[Message], seed: int) -> str:
        for reply in replies:
            return reply
        raise CollaboratorError("gone home")

    [episode] = rolled(TASKS[:1], ScriptedAgent(["One?", "Two?"]), ScriptedCollaborator(script))
    assert episode.failure is not None
    assert (episode.failure.stage, episode.failure.kind) == ("collaborator", "CollaboratorError")
    assert episode.turns == (Turn("One?", "One?", Reply("Yes.")), Turn("Two?", "Two?"))


def test_a_bug_becomes_a_failed_dialogue_and_its_traceback_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        episodes = rolled(TASKS, Breaking("t1", ZeroDivisionError("oops")), Waiting())
    [broken] = [each for each in episodes if each.ending is Ending.FAILED]
    assert broken.failure is not None
    assert (broken.failure.kind, broken.failure.message) == ("ZeroDivisionError", "oops")
    assert "dialogue t1#0 broke down" in caplog.text
    assert "Traceback" in caplog.text


def test_a_cancelled_request_inside_a_dialogue_is_a_breakdown_of_that_dialogue() -> None:
    episodes = rolled(TASKS, Breaking("t1", asyncio.CancelledError("engine closed")), Waiting())
    [broken] = [each for each in episodes if each.ending is Ending.FAILED]
    assert broken.failure is not None
    assert broken.failure.kind == "CancelledError"
    assert len(episodes) == 5


def test_what_the_caller_must_mend_ends_the_whole_run() -> None:
    both = Waiting(lambda: 60)

    class Mixed(Breaking):
        async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
            if self.word not in history[0].text:
                return await both.sample(history, n=n, seed=seed)
            return await super().sample(history, n=n, seed=seed)

    with pytest.raises(ConfigError, match="no such model"):
        rolled(TASKS, Mixed("t4", ConfigError("no such model")), both)
    assert both.inside == 0


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"attempts": 0}])
def test_a_run_that_could_do_nothing_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be at least 1"):
        rolled(TASKS, ScriptedAgent([ANSWER]), ScriptedCollaborator([]), **options)


def test_a_very_long_error_is_kept_short_in_the_record() -> None:
    [episode] = rolled(TASKS[:1], Breaking("t0", ModelError("x" * 10_000_000)), Waiting())
    assert episode.failure is not None
    assert episode.failure.message == "x" * 500


# ---------------------------------------------------------------- stopping


def test_a_run_that_is_asked_to_stop_finishes_what_is_open() -> None:
    progress = Progress()
    both = Waiting(lambda: 0.001)

    async def go() -> list[Episode]:
        stop = asyncio.Event()
        episodes = []
        async for episode in roll_out(TASKS * 10, both, both, concurrency=4, stop=stop, progress=progress):
            episodes.append(episode)
            stop.set()
        return episodes

    episodes = asyncio.run(go())
    # Those that end together with the first one are replaced before the first one is handed out.
    assert 4 < len(episodes) <= 8
    assert {episode.ending for episode in episodes} == {Ending.ANSWERED}
    assert (progress.open, progress.dropped, progress.stopped) == (0, 0, "it was asked to stop")


def test_a_run_that_did_everything_was_not_stopped() -> None:
    progress = Progress()
    budget = Budget(Meter(), max_tokens=10**9, max_cost=10**9, time_limit=10**6)
    rolled(TASKS, ScriptedAgent([ANSWER]), ScriptedCollaborator([]), budget=budget, progress=progress)
    assert progress.stopped is None


def test_closing_the_iterator_drops_what_is_open_and_leaves_nothing_running() -> None:
    both = Waiting(lambda: 60)

    async def go() -> set[asyncio.Task[object]]:
        class FirstAtOnce(Waiting):
            async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
                return [ANSWER] if "t0" in history[0].text else await both.sample(history, n=n, seed=seed)

        async with contextlib.aclosing(roll_out(TASKS, FirstAtOnce(), both)) as episodes:
            assert (await anext(episodes)).task_id == "t0"
            assert both.inside == 4
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(go()) == set()
    assert both.inside == 0


def test_cancelling_the_reader_ends_every_dialogue() -> None:
    both = Waiting(lambda: 60)

    async def go() -> set[asyncio.Task[object]]:
        reader = asyncio.create_task(collect(roll_out(TASKS, both, both)))
        await asyncio.sleep(0.01)
        assert both.inside == 5
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(go()) == set()
    assert both.inside == 0


class Spending(Waiting):
    """Each utterance of the agent costs ten tokens."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        self.meter.prompt_tokens += 10
        return await super().sample(history, n=n, seed=seed)


@pytest.mark.parametrize("concurrency", [1, 3, 10])
def test_a_token_budget_is_kept_and_nearly_used_up(concurrency: int) -> None:
    meter, progress = Meter(), Progress()
    budget = Budget(meter, max_tokens=1000)
    both = Spending(meter)
    tasks = [backend_task(f"task {number}") for number in range(100)]
    episodes = rolled(tasks, both, both, concurrency=concurrency, budget=budget, progress=progress)
    # A dialogue takes forty tokens, so 25 fit.
    assert meter.tokens <= 1000
    assert 23 <= len(episodes) <= 25
    assert len(episodes) == progress.finished
    assert progress.open == 0
    assert "budget" in (progress.stopped or "")


def test_a_budget_that_is_spent_midway_drops_open_dialogues_without_a_record() -> None:
    meter, progress = Meter(), Progress()
    both = Spending(meter)
    budget = Budget(meter, max_tokens=50)
    episodes = rolled(TASKS, both, both, budget=budget, progress=progress)
    assert episodes == []
    assert progress.dropped == 5
    assert meter.tokens == 50
    assert progress.stopped == "the budget of 50 tokens is spent"


def test_a_time_limit_ends_even_dialogues_that_hang() -> None:
    both = Waiting(lambda: 60)
    progress = Progress()
    budget = Budget(Meter(), time_limit=0.05)
    assert rolled(TASKS, both, both, concurrency=2, budget=budget, progress=progress) == []
    assert (both.inside, progress.open, progress.dropped) == (0, 0, 2)
    assert progress.stopped == "the time limit is reached"


def test_a_dialogue_that_ends_as_the_time_runs_out_is_not_lost() -> None:
    progress = Progress()

    class Late(Waiting):
        async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                # Its reply had come when it was told to stop.
                return [ANSWER]
            raise AssertionError

    budget = Budget(Meter(), time_limit=0.02)
    episodes = rolled(TASKS, Late(), Late(), budget=budget, progress=progress)
    assert len(episodes) == progress.finished == 5
