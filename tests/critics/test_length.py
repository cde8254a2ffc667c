import asyncio
from collections.abc import Callable
from pathlib import Path

from candidates.stored import task
from conftest import CHECKOUT, Finished
from sweetrl.critics import open_critic
from sweetrl.records import read_records
from sweetrl.types import Episode, TurnCredit


def test_the_shorter_of_two_turns_scores_higher_and_a_thousand_characters_cost_one() -> None:
    critic = open_critic("length")
    short, long = asyncio.run(critic.advantages(task(), (), ["Why?", "x" * 1000]))
    assert (critic.name, short, long) == ("length", -0.004, -1.0)


def test_commands_take_it_by_its_name(sweetrl: Callable[..., Finished], tmp_path: Path) -> None:
    episodes, tasks = CHECKOUT / "examples/episodes.jsonl", CHECKOUT / "examples/tasks.jsonl"
    credit = tmp_path / "credit.jsonl"
    given = ("--dialogues", episodes, "--tasks", tasks, "--critic", "length", "-o", credit)
    assert sweetrl("credit", *given).code == 0
    stored = {each.id: each for each in read_records(episodes, Episode)}
    found = list(read_records(credit, TurnCredit))
    assert found
    for each in found:
        assert each.advantage == -len(stored[each.episode_id].turns[each.turn].output) / 1000
