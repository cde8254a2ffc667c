import asyncio
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence

import pytest

from conftest import CHECKOUT
from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.dialogue.blame import UNREADABLE
from sweetrl.dialogue.collaborators import ScriptedCollaborator
from sweetrl.dialogue.rollout import roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import CollaboratorError, MissingExtra, StageError, UsageError
from sweetrl.types import Ending, Episode, Failure, Message, Task, Verdict

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra `gym`")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from sweetrl.integrations.gymnasium import ENV_ID, ColBenchEnv  # noqa: E402


class LengthScorer:
    """Full reward for the answer `right`, none for others, no judgement on `broken`."""

    name = "length/1"

    async def score(self, task: Task, episode: Episode) -> Verdict:
        broken = episode.answer == "broken"
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest="-",
            reward=None if broken else float(episode.answer == "right"),
            success=episode.answer == "right",
            failure=Failure("score", "SandboxError", "the sandbox is on fire") if broken else None,
        )


def task(name: str) -> Task:
    return Task(
        id=name, domain="backend", request=f"Do {name}.", secret=BackendSecret("def f(): ...", {"t": "f()"})
    )


TASKS = [task(name) for name in ("a", "b", "c", "d")]


def answering(task: Task, history, seed: int) -> str:
    return f"{task.id} {len(history)} {seed}"


@pytest.fixture
def env() -> Iterator[ColBenchEnv]:
    env = ColBenchEnv(TASKS, ScriptedCollaborator(answering), LengthScorer(), rules=Rules(turn_limit=3))
    yield env
    env.close()


def test_gymnasiums_own_checker_has_nothing_to_complain_about() -> None:
    made = gymnasium.make(
        ENV_ID, tasks=TASKS, collaborator=ScriptedCollaborator(answering), scorer=LengthScorer()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made.unwrapped)
    made.close()


def test_the_example_needs_no_other_import_and_holds_a_dialogue() -> None:
    example = CHECKOUT / "examples/gymnasium_dialogue.py"
    ran = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    assert "assistant: What should it return?\nuser: " in ran.stdout
    assert ran.stdout.endswith("reward 0.0, success False\n")


def test_the_first_observation_is_the_request(env: ColBenchEnv) -> None:
    observation, info = env.reset(seed=1, options={"task_id": "b"})
    assert observation == "user: Do b."
    assert info["messages"] == [{"role": "user", "content": "Do b."}]


def test_a_question_gets_a_reply_and_no_reward(env: ColBenchEnv) -> None:
    env.reset(seed=1, options={"task_id": "b"})
    observation, reward, terminated, truncated, info = env.step("Hm. OUTPUT: Why?")
    reply = info["messages"][-1]["content"]
    assert reply.startswith("b 2 ")
    assert observation == f"user: Do b.\nassistant: Why?\nuser: {reply}"
    assert (reward, terminated, truncated) == (0.0, False, False)


def test_replies_are_cut_as_the_rules_say() -> None:
    env = ColBenchEnv(TASKS, ScriptedCollaborator(["x" * 500]), LengthScorer())
    env.reset(seed=1)
    *_, info = env.step("Why?")
    assert info["messages"][-1]["content"] == "x" * 400
    env.close()


def test_an_answer_terminates_with_the_scorers_reward(env: ColBenchEnv) -> None:
    env.reset(seed=1)
    _, reward, terminated, truncated, info = env.step("I WANT TO ANSWER: right")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["episode"].answer == "right"
    assert info["verdict"].success


def test_the_turn_limit_truncates_and_is_rewarded_too(env: ColBenchEnv) -> None:
    env.reset(seed=1)
    steps = [env.step(text) for text in ("one", "two", "right")]
    assert [step[1:4] for step in steps] == [(0.0, False, False), (0.0, False, False), (1.0, False, True)]
    assert steps[-1][4]["episode"].ending is Ending.TURN_LIMIT


def test_the_same_seed_gives_the_same_task_and_the_same_replies(env: ColBenchEnv) -> None:
    def play(seed: int) -> list[object]:
        first, _ = env.reset(seed=seed)
        return [first, env.step("x")[0], env.reset()[0]]

    assert play(5) == play(5)
    assert len({str(play(seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize("attempt", [0, 2])
def test_the_same_seed_and_messages_give_the_episode_that_rollout_records(attempt: int) -> None:
    lines = ["Hm. OUTPUT: Why?", "How?", "I WANT TO ANSWER: right"]

    async def rolled() -> list[Episode]:
        agent, collaborator = ScriptedAgent(lines, name="me"), ScriptedCollaborator(answering)
        return [each async for each in roll_out(TASKS, agent, collaborator, attempts=3, seed=11)]

    env = ColBenchEnv(TASKS, ScriptedCollaborator(answering), LengthScorer(), agent_name="me")
    env.reset(seed=11, options={"task_id": "c", "attempt": attempt})
    *_, last = [env.step(line) for line in lines]
    [wanted] = [each for each in asyncio.run(rolled()) if each.id == f"c#{attempt}"]
    assert last[4]["episode"] == wanted
    env.close()


def test_resets_without_a_seed_visit_other_tasks(env: ColBenchEnv) -> None:
    env.reset(seed=0)
    assert {env.reset()[1]["task_id"] for _ in range(60)} == {"a", "b", "c", "d"}


def test_stepping_on_after_the_end_is_refused(env: ColBenchEnv) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("too early")
    env.reset(seed=1)
    env.step("I WANT TO ANSWER: x")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("too late")


def test_an_answer_that_could_not_be_scored_is_an_error_and_may_be_tried_again(env: ColBenchEnv) -> None:
    env.reset(seed=1)
    with pytest.raises(StageError, match="could not be scored: the sandbox is on fire"):
        env.step("I WANT TO ANSWER: broken")
    assert env.step("I WANT TO ANSWER: right")[1] == 1.0


def test_a_collaborator_that_breaks_down_leaves_the_dialogue_as_it_was() -> None:
    replies = iter(["only one line"])

    def script(task: Task, history: Sequence[Message], seed: int) -> str:
        for reply in replies:
            return reply
        raise CollaboratorError("gone home")

    env = ColBenchEnv(TASKS, ScriptedCollaborator(script), LengthScorer())
    env.reset(seed=1)
    before, *_ = env.step("one")
    with pytest.raises(CollaboratorError):
        env.step("two")
    env.render_mode = "ansi"
    assert env.render() == before
    env.close()


def test_a_message_that_breaks_the_collaborator_is_the_agents_and_the_dialogue_goes_on() -> None:
    def script(task: Task, history: Sequence[Message], seed: int) -> str:
        if "\0" in history[-1].text:
            raise CollaboratorError("cannot read that")
        return "Yes."

    env = ColBenchEnv(TASKS, ScriptedCollaborator(script), LengthScorer())
    env.reset(seed=1)
    observation, reward, terminated, truncated, _ = env.step("\0")
    assert observation.endswith(UNREADABLE)
    assert (reward, terminated, truncated) == (0.0, False, False)
    env.close()


def test_it_works_inside_a_running_event_loop(env: ColBenchEnv) -> None:
    async def notebook() -> float:
        env.reset(seed=1)
        return env.step("I WANT TO ANSWER: right")[1]

    assert asyncio.run(notebook()) == 1.0


def test_texts_of_any_script_are_actions_and_only_texts_are(env: ColBenchEnv) -> None:
    assert env.action_space.contains("größer als 3 → 大\n")
    assert not env.action_space.contains(b"bytes")
    assert not env.action_space.contains("x" * (1 + (1 << 16)))


def test_an_unknown_task_id_names_one_that_exists(env: ColBenchEnv) -> None:
    with pytest.raises(UsageError, match="no task has the id 'z'; the first one is 'a'"):
        env.reset(options={"task_id": "z"})


def test_no_tasks_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one task"):
        ColBenchEnv([], ScriptedCollaborator([]), LengthScorer())


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "sweetrl.integrations.gymnasium")
    with pytest.raises(MissingExtra, match=r"pip install .*\[gym\]'"):
        import sweetrl.integrations.gymnasium  # noqa: F401
