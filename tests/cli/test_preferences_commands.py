"""`pairs`, `candidates`, `rank`, `turn-pairs` and `credit`, alone and one after the other."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conftest import Finished
from models.hostile_server import HostileServer, Trouble, in_thread
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.preferences.turns import typical_spread
from sweetrl.records import read_card, read_records
from sweetrl.types import (
    CandidateSet,
    Ending,
    Episode,
    EpisodePair,
    Reply,
    Task,
    Turn,
    TurnCredit,
    TurnPair,
    Verdict,
    digest,
)

Sweetrl = Callable[..., Finished]


def write(path: Path, records: list[Any]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    return path


def task(number: int) -> Task:
    secret = BackendSecret(reference=f"def secret{number}(): return {number}", tests={"test1": "f()"})
    return Task(id=f"t{number}", domain="backend", request=f"Write {number}.", secret=secret)


def episode(number: int, attempt: int) -> Episode:
    return Episode(
        task_id=f"t{number}",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=f"Write {number}.",
        turns=(Turn("Why?", "Why?", Reply("So.")), Turn(f"I WANT TO ANSWER: {attempt}", f"{attempt}")),
        ending=Ending.ANSWERED,
        answer=str(attempt),
    )


def verdict(of: Episode, reward: float) -> Verdict:
    return Verdict(
        task_id=of.task_id,
        episode_id=of.id,
        scorer="s/1",
        answer_digest=digest(of.answer),
        reward=reward,
        success=reward == 1,
    )


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write(tmp_path / "tasks.jsonl", [task(number) for number in range(2)])


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    held = [episode(number, attempt) for number in range(2) for attempt in range(3)]
    write(tmp_path / "verdicts.jsonl", [verdict(each, each.attempt / 2) for each in held])
    return write(tmp_path / "episodes.jsonl", held)


def reply(body: dict[str, Any], sample: int) -> str:
    """An agent with many different things to say."""
    return f"hm OUTPUT: Question {body['seed']} {sample} secret{sample % 3}?"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with in_thread(HostileServer(reply=reply)) as running:
        yield running


# ---------------------------------------------------------------- pairs


def test_pairs_of_the_backend_rule_are_written(sweetrl: Sweetrl, episodes: Path, tmp_path: Path) -> None:
    given = ("--episodes", episodes, "--verdicts", tmp_path / "verdicts.jsonl")
    ended = sweetrl("pairs", *given, "-o", tmp_path / "pairs.jsonl", "--json", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    said = json.loads(ended.out)
    assert (said["made"], said["tasks_with_pairs"]) == (4, 2)
    pairs = list(read_records(tmp_path / "pairs.jsonl", EpisodePair))
    assert [pair.id for pair in pairs] == ["t0#2>t0#0", "t0#2>t0#1", "t1#2>t1#0", "t1#2>t1#1"]
    assert read_card(tmp_path / "pairs.jsonl").finished is not None


def test_running_pairs_again_changes_nothing(sweetrl: Sweetrl, episodes: Path, tmp_path: Path) -> None:
    given = ("--episodes", episodes, "--verdicts", tmp_path / "verdicts.jsonl", "-o", tmp_path / "p.jsonl")
    sweetrl("pairs", *given)
    first = (tmp_path / "p.jsonl").read_bytes()
    again = sweetrl("pairs", *given, "--json", "-q")
    assert json.loads(again.out)["before"] == 4
    assert (tmp_path / "p.jsonl").read_bytes() == first


def test_the_margin_decides_about_all_pairs(sweetrl: Sweetrl, episodes: Path, tmp_path: Path) -> None:
    given = ("--episodes", episodes, "--verdicts", tmp_path / "verdicts.jsonl", "--json", "-q")
    for margin, count in ((0, 6), (0.5, 2)):
        options = ("--rule", "all", "--margin", margin, "-o", tmp_path / f"{margin}.jsonl")
        assert json.loads(sweetrl("pairs", *given, *options).out)["made"] == count
    frontend = sweetrl("pairs", *given, "--rule", "frontend", "-o", tmp_path / "frontend.jsonl")
    assert json.loads(frontend.out)["made"] == 6


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--margin", 0.2), "'backend' has no margin"),
        (("--rule", "all", "--margin", 5), "no two dialogues make a pair"),
        (("--rule", "al"), "--rule"),
    ],
)
def test_pairs_that_cannot_be_made_are_one_line(
    sweetrl: Sweetrl, episodes: Path, tmp_path: Path, options: tuple[Any, ...], complaint: str
) -> None:
    given = ("--episodes", episodes, "--verdicts", tmp_path / "verdicts.jsonl", "-o", tmp_path / "p.jsonl")
    ended = sweetrl("pairs", *given, *options)
    assert ended.code == 2
    assert complaint in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "p.jsonl").exists()


def test_a_verdict_without_its_episode_is_refused(sweetrl: Sweetrl, episodes: Path, tmp_path: Path) -> None:
    stray = write(tmp_path / "stray.jsonl", [verdict(episode(7, 0), 1.0)])
    ended = sweetrl("pairs", "--episodes", episodes, "--verdicts", stray, "-o", tmp_path / "p.jsonl")
    assert (ended.code, "t7#0 has no episode" in ended.err) == (2, True)


# ---------------------------------------------------------------- the road from candidates to turn pairs


def test_candidates_become_ranked_and_ranked_ones_pairs(
    sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path, server: HostileServer
) -> None:
    agent = ("--agent", f"openai:fake@{server.url}")
    drawn, ranked, pairs = (tmp_path / name for name in ("c.jsonl", "r.jsonl", "tp.jsonl"))
    ended = sweetrl("candidates", "--episodes", episodes, *agent, "--n", 6, "-o", drawn, "--json", "-q")
    assert json.loads(ended.out)["made"] == 12
    assert all("def secret" not in json.dumps(asked.body) for asked in server.asked)
    sets = {each.id: each for each in read_records(drawn, CandidateSet)}
    assert {len(set(each.outputs)) for each in sets.values()} == {6}

    given = ("--tasks", tasks, "--episodes", episodes, "--candidates", drawn)
    assert sweetrl("rank", "--critic", "scripted:overlap", *given, "-o", ranked).code == 0
    for each in read_records(ranked, CandidateSet):
        assert each.outputs == sets[each.id].outputs
        assert each.critic == "scripted:overlap"
        assert each.advantages is not None

    options = ("--ranked", ranked, "--episodes", episodes, "--pairs", 2, "-o", pairs, "--json", "-q")
    said = json.loads(sweetrl("turn-pairs", *options).out)
    made = list(read_records(pairs, TurnPair))
    assert (said["made"], said["turns"]) == (len(made), 12)
    assert made
    stored = {each.id: each for each in read_records(episodes, Episode)}
    for pair in made:
        assert pair.margin > 0
        assert pair.history == stored[pair.episode_id].history(pair.turn)
        assert "def secret" not in str(pair.history)

    clear = tmp_path / "clear.jsonl"
    options = ("--ranked", ranked, "--episodes", episodes, "--pairs", 99, "--spreads", 1.5, "-o", clear)
    assert sweetrl("turn-pairs", *options).code == 0
    spread = typical_spread(read_records(ranked, CandidateSet))
    assert min(pair.margin for pair in read_records(clear, TurnPair)) > 1.5 * spread > 0


def test_outputs_that_the_limit_ended_are_marked_on_the_whole_road(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    secret = BackendSecret("def f(): # the list is sorted, none is zero", {"test1": "f()"})
    write(tasks, [Task(id="t", domain="backend", request="Write it.", secret=secret)])
    agent = ("--agent", "scripted:babble", "--agent-max-tokens", 16)
    held = tmp_path / "episodes.jsonl"
    options = ("--collaborator", "scripted:unsure", "--turn-limit", 3, "--attempts", 3, "-o", tmp_path)
    assert sweetrl("rollout", "--tasks", tasks, *agent, *options).code == 0
    said = [turn for each in read_records(held, Episode) for turn in each.turns]
    assert {turn.unfinished for turn in said} == {True, False}
    assert all(len(turn.output.split()) == 16 for turn in said if turn.unfinished)

    drawn, ranked, paired = (tmp_path / name for name in ("c.jsonl", "r.jsonl", "p.jsonl"))
    assert sweetrl("candidates", "--episodes", held, *agent, "-o", drawn).code == 0
    files = ("--tasks", tasks, "--episodes", held, "--candidates", drawn)
    assert sweetrl("rank", "--critic", "scripted:overlap", *files, "-o", ranked).code == 0
    marks = {}
    for each in read_records(ranked, CandidateSet):
        assert 0 < len(each.unfinished) < len(each.outputs)
        assert {len(each.outputs[index].split()) for index in each.unfinished} == {16}
        marks |= {(each.id, text): at in each.unfinished for at, text in enumerate(each.outputs)}
    sweetrl("turn-pairs", "--ranked", ranked, "--episodes", held, "-o", paired)
    pairs = list(read_records(paired, TurnPair))
    for pair in pairs:
        turn = f"{pair.episode_id}@{pair.turn}"
        assert pair.chosen_unfinished == marks[turn, pair.chosen]
        assert pair.rejected_unfinished == marks[turn, pair.rejected]
    assert pairs


def test_candidates_can_be_drawn_for_some_dialogues_of_each_task(
    sweetrl: Sweetrl, episodes: Path, tmp_path: Path, server: HostileServer
) -> None:
    agent = ("--agent", f"openai:fake@{server.url}")
    drawn = tmp_path / "c.jsonl"
    ended = sweetrl("candidates", "--episodes", episodes, *agent, "--n", 2, "--attempts", 1, "-o", drawn)
    assert ended.code == 0
    first = {each.id for each in read_records(episodes, Episode) if each.attempt == 0}
    assert {each.episode_id for each in read_records(drawn, CandidateSet)} == first


def test_candidates_can_be_drawn_for_a_fraction_of_the_dialogues(
    sweetrl: Sweetrl, episodes: Path, tmp_path: Path, server: HostileServer
) -> None:
    def drawn(*options: object) -> set[str]:
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        given = ("--episodes", episodes, "--agent", f"openai:fake@{server.url}", "--n", 2, *options)
        assert sweetrl("candidates", *given, "-o", output).code == 0
        return {each.episode_id for each in read_records(output, CandidateSet)}

    every = {each.id for each in read_records(episodes, Episode)}
    half, other = drawn("--fraction", 0.5), drawn("--fraction", 0.5, "--seed", 5)
    assert half < every
    assert drawn("--fraction", 0.5) == half != other
    assert drawn("--fraction", 1) == every


def test_a_server_that_copies_one_text_is_refused_before_hours_are_spent(
    sweetrl: Sweetrl, episodes: Path, tmp_path: Path
) -> None:
    output = tmp_path / "c.jsonl"
    with in_thread(HostileServer(reply=lambda body, _: f"OUTPUT: {len(body['messages'])}?")) as deaf:
        given = ("candidates", "--episodes", episodes, "--agent", f"openai:fake@{deaf.url}", "--n", 2)
        ended = sweetrl(*given, "-o", output, "-q")
        greedy = sweetrl(*given, "--agent-temperature", 0, "-o", tmp_path / "greedy.jsonl", "-q")
    assert (ended.code, ended.err.count("\n"), "the server does not sample" in ended.err) == (2, 1, True)
    assert greedy.code == 0


def test_failed_candidates_are_recorded_and_done_again(
    sweetrl: Sweetrl, episodes: Path, tmp_path: Path, server: HostileServer
) -> None:
    output = tmp_path / "c.jsonl"
    given = ("candidates", "--episodes", episodes, "--agent", f"openai:fake@{server.url}", "--n", 2)
    server.rate, server.troubles = 1.0, (Trouble.BAD_REQUEST,)
    ended = sweetrl(*given, "-o", output, "--json", "-q")
    said = json.loads(ended.out)
    assert (ended.code, said["made"], said["failed"]) == (1, 0, 12)
    assert all(each.failure is not None for each in read_records(output, CandidateSet))
    assert read_card(output).finished is None
    server.rate = 0.0
    assert sweetrl(*given, "-o", output).code == 0
    assert [each.failure for each in read_records(output, CandidateSet)] == [None] * 12
    assert read_card(output).finished is not None


def test_the_domain_of_the_prompt_must_be_that_of_the_dialogues(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    page = Task(id="p", domain="frontend", request="A page.", secret=FrontendSecret("<html></html>"))
    write(tasks, [page])
    roles = ("--agent", "scripted:curious", "--collaborator", "scripted:unsure")
    assert sweetrl("rollout", "--tasks", tasks, *roles, "-o", tmp_path).code == 0
    given = ("candidates", "--episodes", tmp_path / "episodes.jsonl", "--agent", "scripted:curious")
    ended = sweetrl(*given, "-o", tmp_path / "c.jsonl")
    assert (ended.code, "give --domain frontend" in ended.err) == (2, True)
    assert sweetrl(*given, "--domain", "frontend", "-o", tmp_path / "c.jsonl").code == 0
    assert sweetrl(*given, "--kind", "frontend", "-o", tmp_path / "c.jsonl").code == 0


def test_another_configuration_is_refused(sweetrl: Sweetrl, episodes: Path, tmp_path: Path) -> None:
    given = ("candidates", "--episodes", episodes, "--agent", "scripted:curious", "-o", tmp_path / "c.jsonl")
    assert sweetrl(*given, "--n", 2).code == 0
    ended = sweetrl(*given, "--n", 3)
    assert (ended.code, "n was 2, now 3" in ended.err) == (2, True)


def test_an_interrupted_file_is_completed_with_the_same_records(
    sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path
) -> None:
    given = ("candidates", "--episodes", episodes, "--agent", "scripted:babble", "--n", 4, "-o")
    sweetrl(*given, tmp_path / "whole.jsonl")
    sweetrl(*given, tmp_path / "cut.jsonl")
    lines = (tmp_path / "cut.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:20])
    ended = sweetrl(*given, tmp_path / "cut.jsonl", "--json")
    assert json.loads(ended.out)["before"] == 5
    whole, cut = (
        {each.id: each for each in read_records(tmp_path / name, CandidateSet)}
        for name in ("whole.jsonl", "cut.jsonl")
    )
    assert cut == whole


# ---------------------------------------------------------------- critics


def test_a_judge_behind_an_endpoint_ranks(
    sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path
) -> None:
    def judge(body: dict[str, Any], sample: int) -> str:
        prompt = body["messages"][0]["content"]
        assert "def secret" in prompt
        first, second = (
            prompt.split(f"<message {name}>\n")[1].split("\n</message")[0] for name in ("FIRST", "SECOND")
        )
        return "BETTER: FIRST" if first > second else "BETTER: SECOND"

    sweetrl(
        "candidates",
        "--episodes",
        episodes,
        "--agent",
        "scripted:babble",
        "--n",
        4,
        "-o",
        tmp_path / "c.jsonl",
    )
    with in_thread(HostileServer(reply=judge)) as running:
        critic = ("--critic", f"judge:openai:fake@{running.url}")
        given = ("--tasks", tasks, "--episodes", episodes, "--candidates", tmp_path / "c.jsonl")
        ended = sweetrl("rank", *critic, *given, "-o", tmp_path / "r.jsonl", "--json", "-q")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["requests"] == 12 * 12
    for each in read_records(tmp_path / "r.jsonl", CandidateSet):
        assert each.advantages is not None
        order = sorted(range(4), key=lambda index: each.outputs[index])
        assert [each.advantages[index] for index in order] == pytest.approx([-1, -1 / 3, 1 / 3, 1])


def test_a_judge_is_asked_as_often_and_in_such_words_as_one_likes(
    sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path
) -> None:
    drawn, prompt = tmp_path / "c.jsonl", tmp_path / "prompt.txt"
    agent = ("--agent", "scripted:babble", "--n", 8)
    assert sweetrl("candidates", "--episodes", episodes, *agent, "-o", drawn).code == 0
    files = ("--tasks", tasks, "--episodes", episodes, "--candidates", drawn)
    prompt.write_text("Is {first} better than {second}? Say BETTER: and which.")
    with in_thread(HostileServer(reply=lambda body, sample: "BETTER: SAME")) as running:
        judge = ("--critic", f"judge:openai:fake@{running.url}", "--judge-prompt", prompt)
        options = ("--judge-rounds", 1, "-o", tmp_path / "r.jsonl", "--json", "-q")
        ended = sweetrl("rank", *judge, *files, *options)
        assert ended.code == 0, ended.err
        assert all(asked.body["messages"][0]["content"].startswith("Is ") for asked in running.asked)
        graded = ("--dialogues", episodes, "--tasks", tasks, "-o", tmp_path / "credit.jsonl")
        refused = sweetrl("credit", *judge, *graded)
    # Each of 8 candidates meets two others, in both places, at each of 12 turns.
    assert json.loads(ended.out)["requests"] == 8 * 2 * 12
    assert (refused.code, "nothing fills the field {first}" in refused.err) == (2, True)
    [name] = {each.critic for each in read_records(tmp_path / "r.jsonl", CandidateSet)}
    assert " in 1 rounds by prompt.txt " in name


def test_only_a_judge_is_asked(sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Grade {output}")
    given = ("--dialogues", episodes, "--tasks", tasks, "--judge-prompt", tmp_path / "prompt.txt")
    ended = sweetrl("credit", "--critic", "scripted:overlap", *given, "-o", tmp_path / "credit.jsonl")
    assert (ended.code, "'scripted:overlap' asks no language model" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("critic", "complaint"),
    [
        ("nowhere", "no such folder of a critic"),
        ("juge:openai:x", "did you mean judge:MODEL"),
        ("judge:", "lacks its second half"),
        ("scripted:overlop", "did you mean 'overlap'"),
        ("zero:openai:gpt", "write zero:hf:PATH"),
        ("value:nowhere", "no such folder"),
    ],
)
def test_a_critic_that_there_is_not_is_one_line(
    sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path, critic: str, complaint: str
) -> None:
    given = ("--dialogues", episodes, "--tasks", tasks, "--critic", critic, "-o", tmp_path / "x.jsonl")
    ended = sweetrl("credit", *given)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert complaint in ended.err


# ---------------------------------------------------------------- credit


def test_every_turn_gets_credit_and_is_shown(
    sweetrl: Sweetrl, tasks: Path, episodes: Path, tmp_path: Path
) -> None:
    given = ("--dialogues", episodes, "--tasks", tasks, "--critic", "scripted:overlap")
    ended = sweetrl("credit", *given, "-o", tmp_path / "credit.jsonl", "--show", 1)
    assert ended.code == 0, ended.err
    assert "t0#0" in ended.out
    assert "t0#1" not in ended.out
    assert "mean advantage" in ended.out
    credited = list(read_records(tmp_path / "credit.jsonl", TurnCredit))
    assert {each.id for each in credited} == {
        f"t{number}#{attempt}@{turn}" for number in range(2) for attempt in range(3) for turn in range(2)
    }
    again = sweetrl("credit", *given, "-o", tmp_path / "credit.jsonl", "--json", "-q")
    assert json.loads(again.out)["before"] == 12


def test_published_dialogues_bring_their_tasks(sweetrl: Sweetrl, tmp_path: Path) -> None:
    line = {
        "task": {
            "problem_description": "Sum.",
            "ground_truth": "def add(): pass",
            "test_cases": {"test1": "add()"},
        },
        "dialogue_history": [
            {"role": "user", "content": "Sum."},
            {"role": "assistant", "content": "What to add?", "input": "", "output": "What to add?"},
        ],
        "answer": "x",
    }
    (tmp_path / "mine.jsonl").write_text(json.dumps(line) + "\n")
    given = ("--dialogues", tmp_path / "mine.jsonl", "--critic", "scripted:overlap")
    assert sweetrl("credit", *given, "-o", tmp_path / "credit.jsonl").code == 0
    [credited] = read_records(tmp_path / "credit.jsonl", TurnCredit)
    assert credited.advantage == pytest.approx(1 / 2)


def test_episodes_of_ours_need_their_tasks(sweetrl: Sweetrl, episodes: Path, tmp_path: Path) -> None:
    ended = sweetrl("credit", "--dialogues", episodes, "--critic", "scripted:overlap", "-o", tmp_path / "c")
    assert (ended.code, "has no reference, which the critic scripted:overlap needs" in ended.err) == (2, True)
    assert "--tasks for episodes of ours" in ended.err


# ---------------------------------------------------------------- best of n


def test_of_several_drafts_the_critics_choice_is_said(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, server: HostileServer
) -> None:
    def agent(body: dict[str, Any], sample: int) -> str:
        return ("none of it", "perhaps secret0 and secret1", "no idea")[sample]

    server.reply = agent
    given = ("--tasks", tasks, "--agent", f"openai:fake@{server.url}", "--single-turn")
    options = ("--best-of", 3, "--critic", "scripted:overlap", "-o", tmp_path / "run")
    ended = sweetrl("rollout", *given, *options)
    assert ended.code == 0, ended.err
    for episode in read_records(tmp_path / "run" / "episodes.jsonl", Episode):
        assert episode.turns[0].output == "perhaps secret0 and secret1"
        assert episode.agent.endswith("best of 3 by scripted:overlap")
    assert all("def secret" not in json.dumps(asked.body) for asked in server.asked)


@pytest.mark.parametrize("options", [("--best-of", 3), ("--critic", "scripted:overlap")])
def test_drafts_need_a_critic_and_a_critic_drafts(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, options: tuple[Any, ...]
) -> None:
    given = ("--tasks", tasks, "--agent", "scripted:babble", "--single-turn", "-o", tmp_path / "run")
    ended = sweetrl("rollout", *given, *options)
    assert (ended.code, "give --best-of and --critic" in ended.err) == (2, True)
