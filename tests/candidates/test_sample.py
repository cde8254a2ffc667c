import asyncio
from collections.abc import Sequence

import msgspec

from candidates.stored import SECRET, episode
from sweetrl.candidates.sample import sample_candidates, stored_turns
from sweetrl.dialogue.agents import ScriptedAgent
from sweetrl.errors import ModelError
from sweetrl.types import CandidateSet, Episode, Message


def sampled(episodes: list[Episode], agent, **options) -> dict[str, CandidateSet]:
    async def collect() -> list[CandidateSet]:
        return [each async for each in sample_candidates(episodes, agent, **options)]

    drawn = asyncio.run(collect())
    assert len({each.id for each in drawn}) == len(drawn)
    return {each.id: each for each in drawn}


def echo(history: Sequence[Message], seed: int) -> str:
    return f"{history[-1].text} {seed}"


def test_each_turn_of_each_dialogue_gets_sixteen_candidates():
    drawn = sampled([episode("t", turns=3), episode("u", turns=1)], ScriptedAgent(echo))
    assert drawn.keys() == {"t#0@0", "t#0@1", "t#0@2", "u#0@0"}
    assert {len(set(each.outputs)) for each in drawn.values()} == {16}
    assert {each.advantages for each in drawn.values()} == {None}


def test_the_agent_sees_what_it_saw_at_that_turn_and_nothing_else():
    seen: list[list[Message]] = []

    def watching(history: Sequence[Message], seed: int) -> str:
        seen.append(list(history))
        return "x"

    sampled([episode("t")], ScriptedAgent(watching), n=1, concurrency=1)
    assert [len(history) for history in seen] == [1, 3, 5]
    assert [message.text for message in seen[1]] == ["Write t.", "Question 0?", "Reply 0."]
    assert SECRET.encode() not in msgspec.json.encode(seen)
    assert "thought" not in str(seen)


def test_failed_dialogues_get_no_candidates():
    assert [stored.id for stored in stored_turns([episode("t", failed=True), episode("u", turns=1)])] == [
        "u#0@0"
    ]


def test_what_is_drawn_depends_on_the_seed_and_the_turn_alone():
    episodes = [episode("t"), episode("u")]
    alone = sampled(episodes, ScriptedAgent(echo), concurrency=1)
    assert sampled(episodes[::-1], ScriptedAgent(echo), concurrency=5) == alone
    assert sampled(episodes, ScriptedAgent(echo), seed=1) != alone


def test_turns_that_are_done_are_skipped():
    drawn = sampled([episode("t")], ScriptedAgent(echo), skip=lambda done: done == "t#0@1")
    assert drawn.keys() == {"t#0@0", "t#0@2"}


def test_a_turn_at_which_the_agent_breaks_down_is_recorded_and_the_others_go_on():
    def fragile(history: Sequence[Message], seed: int) -> str:
        if len(history) == 3:
            raise ModelError("too long", kind="context_length")
        return "x"

    drawn = sampled([episode("t")], ScriptedAgent(fragile), n=2)
    assert [drawn[f"t#0@{turn}"].outputs for turn in range(3)] == [("x", "x"), (), ("x", "x")]
    failed = drawn["t#0@1"].failure
    assert failed is not None
    assert (failed.stage, failed.kind) == ("agent", "context_length")
