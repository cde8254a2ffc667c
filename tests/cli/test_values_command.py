"""`sweetrl values` and `sweetrl credit-quality`: from stored dialogues to how good a critic is."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conftest import Finished
from models.hostile_server import HostileServer, Trouble, in_thread
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.records import read_card, read_records
from sweetrl.seeds import derive_seed
from sweetrl.types import CandidateSet, Task, TurnValues

Sweetrl = Callable[..., Finished]


def task(number: int) -> Task:
    secret = BackendSecret(reference=f"def f(): return {number + 100}", tests={"test1": "f()"})
    return Task(id=f"t{number}", domain="backend", request=f"Write {number}.", secret=secret)


def play(body: dict[str, Any], sample: int) -> str:
    """A programmer who asks well, asks badly or answers, as the seed has it; and a person who knows a number."""
    messages = body["messages"]
    if messages[0]["role"] != "system":
        [number] = set(re.findall(r"return (\d+)", messages[0]["content"]))
        last = messages[0]["content"].rpartition("Programmer:")[2]
        return f"It is {number}." if "Which number?" in last else "I don't know."
    told = re.findall(r"It is (\d+)", " ".join(message["content"] for message in messages))
    choice = derive_seed(body["seed"], sample, len(messages)) % 3
    if choice == 0:
        return f"I WANT TO ANSWER: def f(): return {told[0] if told else 0}"
    return "Which number?" if choice == 1 else "What weather?"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with in_thread(HostileServer(reply=play)) as running:
        yield running


class Road:
    """The commands before and after, on one folder."""

    def __init__(self, sweetrl: Sweetrl, server: HostileServer, folder: Path) -> None:
        self._sweetrl = sweetrl
        self.folder = folder
        self.tasks = folder / "tasks.jsonl"
        self.tasks.write_bytes(b"".join(msgspec.json.encode(task(number)) + b"\n" for number in range(4)))
        self.agent = ("--agent", f"openai:fake@{server.url}", "--turn-limit", 4)
        self.players = (*self.agent, "--collaborator", f"openai:fake@{server.url}")
        self.stored = ("--tasks", self.tasks, "--episodes", folder / "episodes.jsonl")
        self.do("rollout", "--tasks", self.tasks, *self.players, "-o", folder)
        self.do("candidates", *self.stored, *self.agent, "--n", 6, "-o", folder / "candidates.jsonl")

    def do(self, *words: object) -> Finished:
        ended = self._sweetrl(*words, "--quiet")
        assert ended.code == 0, ended.err
        return ended

    def value_options(self, output: str = "values.jsonl") -> tuple[object, ...]:
        drawn = ("--candidates", self.folder / "candidates.jsonl")
        return ("values", *self.stored, *drawn, *self.players, "--replays", 8, "-o", self.folder / output)

    def values(self, name: str = "values.jsonl") -> dict[str, TurnValues]:
        return {each.id: each for each in read_records(self.folder / name, TurnValues)}


@pytest.fixture
def road(sweetrl: Sweetrl, server: HostileServer, tmp_path: Path) -> Road:
    return Road(sweetrl, server, tmp_path)


def test_asking_well_turns_out_to_be_worth_more(road: Road) -> None:
    road.do(*road.value_options())
    means: dict[str, list[float]] = {}
    for turn in road.values().values():
        assert turn.values is not None
        for output, value in zip(turn.outputs, turn.values, strict=True):
            if turn.turn == 0:
                means.setdefault(output, []).append(sum(value.rewards) / len(value.rewards))
            assert set(value.rewards) <= {0.0, 1.0}
            assert value.successes == tuple(reward == 1 for reward in value.rewards)
    mean = {output: sum(found) / len(found) for output, found in means.items()}
    assert mean["Which number?"] > mean["What weather?"] > mean["I WANT TO ANSWER: def f(): return 0"] == 0
    card = read_card(road.folder / "values.jsonl")
    assert (card.command, card.config["replays"], card.config["scorer"]) == ("values", 8, "backend-module/2")


def test_a_file_of_values_is_extended_and_the_same_whatever_came_first(road: Road, sweetrl: Sweetrl) -> None:
    road.do(*road.value_options(), "--turns", 2)
    few = road.values()
    assert len(few) == 2
    road.do(*road.value_options())
    road.do(*road.value_options("again.jsonl"), "--concurrency", 3)
    assert road.values() == road.values("again.jsonl")
    assert few.items() <= road.values().items()
    ended = sweetrl(*road.value_options(), "--seed", 5)
    assert (ended.code, "seed was 0, now 5" in ended.err) == (2, True)


def test_values_of_shards_merge_into_those_of_a_whole_run(road: Road) -> None:
    road.do(*road.value_options(), "--concurrency", 1)
    for index in (1, 2, 3):
        road.do(*road.value_options("parts.jsonl"), "--shard", f"{index}/3")
    shards = [road.folder / f"parts.{index}-of-3.jsonl" for index in (1, 2, 3)]
    road.do("merge", *shards, "-o", road.folder / "merged.jsonl")
    assert (road.folder / "merged.jsonl").read_bytes() == (road.folder / "values.jsonl").read_bytes()
    values = f"values:{road.folder / 'values.jsonl'}"
    drawn = ("--candidates", road.folder / "candidates.jsonl", "--critic", values)
    road.do("rank", *road.stored, *drawn, "-o", road.folder / "ranked.jsonl")
    for index in (1, 2):
        road.do("rank", *road.stored, *drawn, "--shard", f"{index}/2", "-o", road.folder / "by.jsonl")
    shards = [road.folder / f"by.{index}-of-2.jsonl" for index in (1, 2)]
    road.do("merge", *shards, "-o", road.folder / "oracle.jsonl")
    assert (road.folder / "oracle.jsonl").read_bytes() == (road.folder / "ranked.jsonl").read_bytes()


def test_a_turn_whose_replays_failed_is_done_again(
    road: Road, sweetrl: Sweetrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_thread(HostileServer(reply=play, script=[Trouble.BAD_REQUEST] * 2)) as failing:
        players = ("--agent", f"openai:fake@{failing.url}", "--collaborator", f"openai:fake@{failing.url}")
        options = [*road.value_options(), *players, "--turns", 3, "--concurrency", 1]
        ended = sweetrl(*options)
        assert ended.code == 1
        assert "1 failed" in ended.err
        assert [each.values is None for each in road.values().values()].count(True) == 1
        assert sweetrl(*options).code == 0
    assert all(each.values for each in road.values().values())


def write_ranked(road: Road, name: str, opinion: Callable[[str], float]) -> Path:
    ranked = [
        msgspec.structs.replace(each, advantages=tuple(map(opinion, each.outputs)), critic=name)
        for each in read_records(road.folder / "candidates.jsonl", CandidateSet)
    ]
    path = road.folder / f"{name}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in ranked))
    return path


def test_a_critic_that_knows_beats_one_that_does_not(
    road: Road, sweetrl: Sweetrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    road.do(*road.value_options())
    wise = write_ranked(road, "wise", lambda output: {"Which": 1.0, "What ": 0.5}.get(output[:5], 0.0))
    fool = write_ranked(road, "fool", lambda output: -float(output == "Which number?"))
    scripted = road.folder / "overlap.jsonl"
    rank = ("--critic", "scripted:overlap", "--candidates", road.folder / "candidates.jsonl")
    road.do("rank", *rank, *road.stored, "-o", scripted)
    command = ("credit-quality", wise, fool, scripted, "--values", road.folder / "values.jsonl")
    said = json.loads(sweetrl(*command, "--json").out)
    first, second, _, halves = said["critics"]
    assert [each["critic"] for each in said["critics"]] == [
        "wise",
        "fool",
        "scripted:overlap",
        "replays, half against half",
    ]
    assert first["spearman"]["value"] > second["spearman"]["value"]
    assert first["auc"]["value"] > 0.5 > second["auc"]["value"]
    assert first["gain"]["value"] > 0 > second["gain"]["value"]
    assert halves["spearman"]["value"] > 0
    assert first["turns"] + first["undecided"] == len(road.values())
    monkeypatch.setenv("COLUMNS", "300")
    ended = sweetrl(*command, "--outcome", "success")
    for word in ("wise", "fool", "Spearman", "AUC, clear pairs", "gain", "top 1", "half against half"):
        assert word in ended.out


def test_only_turns_with_values_count(road: Road, sweetrl: Sweetrl) -> None:
    road.do(*road.value_options(), "--turns", 2)
    wise = write_ranked(road, "wise", len)
    said = json.loads(sweetrl("credit-quality", wise, "--values", road.folder / "values.jsonl", "--json").out)
    assert said["critics"][0]["turns"] + said["critics"][0]["undecided"] == 2


def test_files_that_do_not_belong_together_are_refused(road: Road, sweetrl: Sweetrl) -> None:
    road.do(*road.value_options(), "--turns", 2)
    values = ("--values", road.folder / "values.jsonl")
    ended = sweetrl("credit-quality", road.folder / "candidates.jsonl", *values)
    assert (ended.code, "are not ranked; `sweetrl rank` does that" in ended.err) == (2, True)
    wise = write_ranked(road, "wise", len)
    elsewhere = [
        msgspec.structs.replace(each, episode_id="other#0") for each in read_records(wise, CandidateSet)
    ]
    wise.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in elsewhere))
    ended = sweetrl("credit-quality", wise, *values)
    assert (ended.code, f"{wise}: none of its turns has a value" in ended.err) == (2, True)


def test_candidates_of_unknown_dialogues_are_refused(road: Road, sweetrl: Sweetrl) -> None:
    path = road.folder / "candidates.jsonl"
    odd = CandidateSet(episode_id="x#0", task_id="t0", turn=0, outputs=("Hm?",))
    path.write_bytes(msgspec.json.encode(odd) + b"\n")
    ended = sweetrl(*road.value_options())
    assert (ended.code, "x#0@0 are on the episode x#0, which is not there" in ended.err) == (2, True)
