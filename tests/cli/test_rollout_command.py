import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conftest import Finished
from models.hostile_server import HostileServer, Trouble, in_thread
from sweetrl.dialogue.building import parse_price
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import UsageError
from sweetrl.experiments.stages.rollout import parse_time
from sweetrl.models import Price
from sweetrl.records import read_card, read_records
from sweetrl.seeds import derive_seed
from sweetrl.types import Ending, Episode, Task

Sweetrl = Callable[..., Finished]
SCRIPTED = ("--agent", "scripted:curious", "--collaborator", "scripted:babble")


def backend_task(number: int) -> Task:
    secret = BackendSecret(reference=f"def f(): return {number}", tests={"test1": "f()"})
    return Task(id=f"t{number}", domain="backend", request=f"Write function {number}.", secret=secret)


def write_tasks(path: Path, tasks: list[Task]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    return path


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path / "tasks.jsonl", [backend_task(number) for number in range(6)])


def episodes_in(folder: Path) -> dict[str, Episode]:
    episodes = list(read_records(folder / "episodes.jsonl", Episode))
    assert len({episode.id for episode in episodes}) == len(episodes)
    return {episode.id: episode for episode in episodes}


def reply(body: dict[str, Any], sample: int) -> str:
    """Both sides of a dialogue of three or four turns, fixed by what was said and the seed."""
    messages = body["messages"]
    mark = derive_seed(msgspec.json.encode(messages), body["seed"])
    if messages[0]["role"] != "system":
        return f"Reply {mark}."
    asks = len(messages) // 2 - 1 < 2 + mark % 2
    return f"hm OUTPUT: Question {mark}?" if asks else f"I WANT TO ANSWER: {mark}"


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with in_thread(HostileServer(reply=reply)) as running:
        yield running


def model_on(server: HostileServer) -> tuple[str, ...]:
    return ("--agent", f"openai:fake@{server.url}", "--collaborator", f"openai:fake@{server.url}")


# ---------------------------------------------------------------- what it writes


def test_every_attempt_on_every_task_becomes_an_episode(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    ended = sweetrl("rollout", "--tasks", tasks, *SCRIPTED, "--attempts", 2, "-o", tmp_path / "new" / "run")
    assert ended.code == 0, ended.err
    episodes = episodes_in(tmp_path / "new" / "run")
    assert episodes.keys() == {f"t{number}#{attempt}" for number in range(6) for attempt in range(2)}
    assert {each.agent for each in episodes.values()} == {"scripted:curious"}
    assert {each.ending for each in episodes.values()} == {Ending.ANSWERED}
    card = read_card(tmp_path / "new" / "run" / "episodes.jsonl")
    assert (card.command, card.records) == ("rollout", 12)
    assert card.finished is not None


def test_json_tells_what_happened(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    prices = ("--price-agent", "1000/0", "--price-collaborator", "0/1000")
    ended = sweetrl("rollout", "--tasks", tasks, *SCRIPTED, *prices, "-o", tmp_path, "--json", "--quiet")
    said = json.loads(ended.out)
    assert ended.err == ""
    assert (said["dialogues"], said["answered"], said["failed"], said["left"]) == (6, 6, 0, 0)
    assert said["turns"] == 18
    assert said["cost"] > 0
    assert said["prompt_tokens"] > said["completion_tokens"] > 0
    assert said["output"] == str(tmp_path / "episodes.jsonl")


def test_a_single_turn_needs_no_collaborator(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    agent = ("--agent", "scripted:babble", "--single-turn")
    assert sweetrl("rollout", "--tasks", tasks, *agent, "-o", tmp_path).code == 0
    for episode in episodes_in(tmp_path).values():
        assert len(episode.turns) == 1
        assert episode.collaborator == "none"
        assert (episode.ending, episode.answer) == (Ending.ANSWERED, episode.turns[0].said)


def test_the_turn_limit_is_obeyed(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    roles = ("--agent", "scripted:babble", "--collaborator", "scripted:unsure")
    assert sweetrl("rollout", "--tasks", tasks, *roles, "--turn-limit", 3, "-o", tmp_path).code == 0
    assert {(len(each.turns), each.ending) for each in episodes_in(tmp_path).values()} == {
        (3, Ending.TURN_LIMIT)
    }


def test_prompts_of_ones_own_and_sampling_reach_the_models(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, server: HostileServer
) -> None:
    (tmp_path / "agent.txt").write_text("Say {turn_limit} things.")
    (tmp_path / "person.txt").write_text("You have {hidden_information} after {dialogue_history}")
    prompts = ("--agent-prompt", tmp_path / "agent.txt", "--collaborator-prompt", tmp_path / "person.txt")
    sampling = ("--agent-temperature", 0.5, "--agent-max-tokens", 99, "--collaborator-max-tokens", 77)
    options = (*model_on(server), *prompts, *sampling, "--turn-limit", 7, "-o", tmp_path / "run")
    assert sweetrl("rollout", "--tasks", tasks, *options).code == 0
    bodies = [asked.body for asked in server.asked]
    agents = [body for body in bodies if body["messages"][0]["role"] == "system"]
    people = [body for body in bodies if body["messages"][0]["role"] == "user"]
    assert {body["messages"][0]["content"] for body in agents} == {"Say 7 things."}
    assert {(body["temperature"], body["max_tokens"]) for body in agents} == {(0.5, 99)}
    assert {(body["temperature"], body["max_tokens"]) for body in people} == {(0.0, 77)}
    assert all("You have def f(): return" in body["messages"][0]["content"] for body in people)
    assert not any("def f()" in json.dumps(body) for body in agents)


def test_a_guard_keeps_code_out_of_the_replies(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, server: HostileServer
) -> None:
    def blabbing(body: dict[str, Any], sample: int) -> str:
        if body["messages"][0]["role"] == "system":
            return "What does it do?" if len(body["messages"]) == 2 else "I WANT TO ANSWER: x"
        return "It is simply: for item in sorted(items): total += item * 17"

    code = (
        "def f(items):\n    total = 0\n    for item in sorted(items): total += item * 17\n    return total\n"
    )
    task = Task(id="t", domain="backend", request="Add up.", secret=BackendSecret(code, {"test1": "f([1])"}))
    write_tasks(tasks, [task])
    server.reply = blabbing
    command = ("rollout", "--tasks", tasks, *model_on(server))
    assert sweetrl(*command, "-o", tmp_path / "open").code == 0
    assert "total +=" in str(episodes_in(tmp_path / "open")["t#0"].turns[0].reply)
    assert sweetrl(*command, "--guard", "-o", tmp_path / "guarded").code == 0
    guarded = episodes_in(tmp_path / "guarded")["t#0"]
    assert "total +=" not in str(guarded.turns[0].reply)
    assert guarded.collaborator.endswith("+guard")
    assert "belongs to another run" in sweetrl(*command, "--guard", "-o", tmp_path / "open").err


def test_stored_episodes_can_play_the_collaborator(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert sweetrl("rollout", "--tasks", tasks, *SCRIPTED, "-o", first).code == 0
    replay = ("--agent", "scripted:curious", "--collaborator", f"replay:{first / 'episodes.jsonl'}")
    assert sweetrl("rollout", "--tasks", tasks, *replay, "-o", second).code == 0
    again = episodes_in(second)
    assert {key: each.turns for key, each in episodes_in(first).items()} == {
        key: each.turns for key, each in again.items()
    }


@pytest.mark.parametrize("kind", ["backend", "frontend"])
def test_real_tasks_of_both_kinds_are_rolled_out(
    sweetrl: Sweetrl, tmp_path: Path, colbench_dir: Path, server: HostileServer, kind: str
) -> None:
    lines = (colbench_dir / f"{kind}_dev.jsonl").read_bytes().splitlines(keepends=True)[:20]
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(lines))
    command = ("rollout", "--tasks", tmp_path / "tasks.jsonl", *model_on(server), "-o", tmp_path / "run")
    ended = sweetrl(*command, "--show", "source")
    assert ended.code == 0, ended.err
    references = [json.loads(line)["ground_truth"] for line in lines]
    people = [
        body for body in (asked.body for asked in server.asked) if body["messages"][0]["role"] == "user"
    ]
    assert all(any(each.strip() in body["messages"][0]["content"] for each in references) for body in people)
    stored = (tmp_path / "run" / "episodes.jsonl").read_text()
    assert not any(json.dumps(each)[1:-1] in stored for each in references)


# ---------------------------------------------------------------- resuming


def test_a_finished_run_is_not_done_again(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    command = ("rollout", "--tasks", tasks, *SCRIPTED, "-o", tmp_path, "--json")
    sweetrl(*command)
    before = (tmp_path / "episodes.jsonl").read_bytes()
    said = json.loads(sweetrl(*command).out)
    assert (said["before"], said["turns"], said["left"]) == (6, 0, 0)
    assert (tmp_path / "episodes.jsonl").read_bytes() == before


def test_more_attempts_can_be_added(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    command = ("rollout", "--tasks", tasks, *SCRIPTED, "-o", tmp_path, "--json")
    sweetrl(*command)
    said = json.loads(sweetrl(*command, "--attempts", 3, "--concurrency", 2).out)
    assert (said["before"], said["answered"]) == (6, 12)
    assert len(episodes_in(tmp_path)) == 18


@pytest.mark.parametrize(
    "change",
    [
        ("--seed", 1),
        ("--turn-limit", 3),
        ("--agent-temperature", 0),
        ("--collaborator-max-tokens", 5),
        ("--agent", "scripted:babble"),
    ],
)
def test_another_setting_is_refused(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, change: tuple[object, ...]
) -> None:
    command = ("rollout", "--tasks", tasks, *SCRIPTED, "-o", tmp_path)
    assert sweetrl(*command).code == 0
    ended = sweetrl(*command, *change)
    assert ended.code == 2
    assert "belongs to another run" in ended.err


def test_changed_tasks_and_changed_prompts_are_refused(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "agent.txt"
    prompt.write_text("Be brief.")
    command = ("rollout", "--tasks", tasks, *SCRIPTED, "--agent-prompt", prompt, "-o", tmp_path / "run")
    assert sweetrl(*command).code == 0
    prompt.write_text("Be kind.")
    assert "agent_prompt was" in sweetrl(*command).err
    prompt.write_text("Be brief.")
    write_tasks(tasks, [backend_task(number) for number in range(1, 7)])
    ended = sweetrl(*command)
    assert ended.code == 2
    assert "tasks was" in ended.err


def test_an_endpoint_that_is_down_fails_each_dialogue_and_a_later_run_completes_them(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, server: HostileServer
) -> None:
    server.rate, server.troubles = 1.0, [Trouble.UNAVAILABLE]
    command = (
        "rollout",
        "--tasks",
        tasks,
        *model_on(server),
        "--request-attempts",
        2,
        "-o",
        tmp_path / "run",
    )
    down = sweetrl(*command, "--json")
    assert down.code == 1
    assert "rerun the same command to retry the failed ones" in down.err
    failed = episodes_in(tmp_path / "run")
    assert len(failed) == 6
    for episode in failed.values():
        assert episode.ending is Ending.FAILED
        assert episode.failure is not None
        assert episode.failure.stage == "agent"
        assert "503" in episode.failure.message
    assert read_card(tmp_path / "run" / "episodes.jsonl").finished is None

    server.rate = 0.0
    up = sweetrl(*command)
    assert up.code == 0, up.err
    assert "doing 6 failed records again" in up.err
    assert sweetrl("rollout", "--tasks", tasks, *model_on(server), "-o", tmp_path / "calm").code == 0
    assert episodes_in(tmp_path / "run") == episodes_in(tmp_path / "calm")


def test_a_server_that_dies_stops_the_run_which_resumes_with_the_same_dialogues(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path
) -> None:
    """What had ended is kept, the open dialogue has failed, the others have not begun."""

    def dying(body: dict[str, Any], sample: int) -> str:
        if len(mortal.asked) > 12:
            mortal._server.close()
            raise ConnectionError
        return reply(body, sample)

    rollout = ("rollout", "--tasks", tasks, "--concurrency", 1, "--patience", 0.2, "-o")
    with in_thread(HostileServer(reply=dying)) as mortal:
        players = model_on(mortal)
        down = sweetrl(*rollout, tmp_path / "run", *players)
    assert down.code == 2
    assert "no connection" in down.err
    assert down.err.rstrip().endswith("start the server and rerun the same command to resume")
    endings = [each.ending for each in episodes_in(tmp_path / "run").values()]
    assert endings.count(Ending.FAILED) == 1
    assert 1 < len(endings) < 6

    with in_thread(HostileServer(reply=reply, listen=mortal.port)):
        assert sweetrl(*rollout, tmp_path / "run", *players).code == 0
        assert sweetrl(*rollout, tmp_path / "calm", *players).code == 0
    assert episodes_in(tmp_path / "run") == episodes_in(tmp_path / "calm")


def test_a_port_where_nobody_listens_is_named(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        roles = ("--agent", f"openai:fake@{url}", "--collaborator", "scripted:unsure")
        ended = sweetrl("rollout", "--tasks", tasks, *roles, "--request-attempts", 1, "-o", tmp_path)
    assert ended.code == 1
    assert "6 x agent: connection" in ended.err
    assert url in ended.err


# ---------------------------------------------------------------- budgets


def test_a_token_budget_stops_the_run_and_says_so(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    command = ("rollout", "--tasks", tasks, *SCRIPTED, "--concurrency", 1, "-o", tmp_path, "--json")
    ended = sweetrl(*command, "--max-tokens-total", 6000)
    said = json.loads(ended.out)
    assert ended.code == 1
    assert 0 < said["answered"] < 6
    assert said["left"] == 6 - said["answered"]
    assert said["prompt_tokens"] + said["completion_tokens"] <= 6000
    assert "budget" in said["stopped"]
    assert f"stopped with {said['left']} dialogues left: " in ended.err
    assert sweetrl(*command).code == 0
    assert len(episodes_in(tmp_path)) == 6


def test_a_cost_budget_stops_the_run(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    budget = ("--price-agent", "1000/1000", "--max-cost", 2, "--concurrency", 1)
    ended = sweetrl("rollout", "--tasks", tasks, *SCRIPTED, *budget, "-o", tmp_path, "--json")
    said = json.loads(ended.out)
    assert ended.code == 1
    assert 0 < said["cost"] <= 2
    assert said["left"] > 0


def test_a_time_limit_ends_a_run_against_an_endpoint_that_hangs(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, server: HostileServer
) -> None:
    server.rate, server.troubles = 1.0, [Trouble.HANG]
    options = (*model_on(server), "--time-limit", "0.3s", "-o", tmp_path, "--json")
    ended = sweetrl("rollout", "--tasks", tasks, *options)
    said = json.loads(ended.out)
    assert ended.code == 1
    assert (said["left"], said["failed"], said["stopped"]) == (6, 0, "the time limit is reached")


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--agent", "scripted:curious"), "give a --collaborator, or --single-turn"),
        ((*SCRIPTED, "--single-turn"), "leave out --collaborator or --single-turn"),
        (("--agent", "scripted:echo", "--single-turn", "--guard"), "leave out --guard or --single-turn"),
        ((*SCRIPTED, "--max-cost", 1), "--max-cost needs prices"),
        ((*SCRIPTED, "--price-agent", "cheap"), "'cheap' is not a price"),
        ((*SCRIPTED, "--time-limit", "soon"), "'soon' is not a time"),
        ((*SCRIPTED, "--concurrency", 0), "--concurrency"),
        (("--agent", "scripted:curios", "--single-turn"), "did you mean 'curious'?"),
        (("--agent", "opnai:x", "--single-turn"), "did you mean openai:"),
        (("--agent", "scripted:echo", "--collaborator", "replay:none.jsonl"), "none.jsonl: no such file"),
        ((*SCRIPTED, "--agent-prompt", "none.txt"), "none.txt: no such file"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line_and_leaves_nothing(
    sweetrl: Sweetrl, tasks: Path, tmp_path: Path, options: tuple[object, ...], complaint: str
) -> None:
    ended = sweetrl("rollout", "--tasks", tasks, *options, "-o", tmp_path / "run")
    assert ended.code == 2
    assert complaint in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_prompt_that_lacks_the_reference_is_refused(sweetrl: Sweetrl, tasks: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "person.txt"
    prompt.write_text("Answer: {dialogue_history}")
    options = (*SCRIPTED, "--collaborator-prompt", prompt, "-o", tmp_path / "run")
    ended = sweetrl("rollout", "--tasks", tasks, *options)
    assert ended.code == 2
    assert "person.txt: the prompt has no field {hidden_information}" in ended.err


def test_tasks_of_both_kinds_are_refused(sweetrl: Sweetrl, tmp_path: Path) -> None:
    page = Task(id="p", domain="frontend", request="A page.", secret=FrontendSecret(page="<html>"))
    tasks = write_tasks(tmp_path / "tasks.jsonl", [backend_task(1), page])
    ended = sweetrl("rollout", "--tasks", tasks, *SCRIPTED, "-o", tmp_path / "run")
    assert ended.code == 2
    assert "has backend and frontend tasks" in ended.err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("45m", 2700), ("2h", 7200)])
def test_times_are_read_with_their_unit(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1", "1d", "1h30m", "inf"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_time(text)


def test_prices_are_read_in_and_out() -> None:
    assert parse_price("0.5/1.5") == Price(0.5, 1.5)
    assert parse_price(None) == Price(0.0, 0.0)


@pytest.mark.parametrize("text", ["", "1", "1/", "-1/2", "nan/1", "1/inf", "1/2/3"])
def test_other_prices_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a price"):
        parse_price(text)


# ---------------------------------------------------------------- interruptions of a real process


class Run:
    """`sweetrl rollout` in a process of its own, against a server in this one."""

    def __init__(self, tasks: Path, server: HostileServer, output: Path) -> None:
        self.file = output / "episodes.jsonl"
        command = [
            "rollout",
            "--tasks",
            tasks,
            *model_on(server),
            "--concurrency",
            4,
            "--quiet",
            "-o",
            output,
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sweetrl", *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_growth(self) -> None:
        """Until it has written something, or has ended."""
        size = self.size()
        while self.size() <= size and self.process.poll() is None:
            time.sleep(0.005)

    def size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0

    def interrupt(self) -> None:
        """Press Ctrl-C once; it has reacted then."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        assert self.process.stderr.readline().startswith("finishing the open dialogues")

    def ended(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=120)
        return self.process.returncode, err


MANY_REQUESTS = 30
"""More than four dialogues side by side take until one of them is over."""


def check_kills(tmp_path: Path, *, kills: int, dialogues: int) -> None:
    tasks = write_tasks(tmp_path / "tasks.jsonl", [backend_task(number) for number in range(dialogues)])
    moment = random.Random(5)
    with in_thread(HostileServer(reply=reply, latency=lambda draw: draw.uniform(0.005, 0.03))) as server:
        for _ in range(kills):
            # Enough for one dialogue at least, and too few for all of them.
            server.allowed = len(server.asked) + MANY_REQUESTS
            run = Run(tasks, server, tmp_path / "killed")
            run.wait_for_growth()
            time.sleep(moment.uniform(0.0, 0.15))
            run.process.send_signal(signal.SIGKILL)
            assert run.ended()[0] == -signal.SIGKILL, "it was killed before its end"
        server.allowed = None
        assert Run(tasks, server, tmp_path / "killed").ended() == (0, "")
        assert Run(tasks, server, tmp_path / "calm").ended() == (0, "")
    calm = episodes_in(tmp_path / "calm")
    assert len(calm) == dialogues
    assert episodes_in(tmp_path / "killed") == calm
    assert read_card(tmp_path / "killed" / "episodes.jsonl").records == dialogues


def test_a_run_that_is_killed_and_resumed_has_the_episodes_of_one_that_was_not(tmp_path: Path) -> None:
    check_kills(tmp_path, kills=2, dialogues=24)


@pytest.mark.slow
def test_a_run_that_is_killed_twenty_times_has_the_episodes_of_one_that_was_not(tmp_path: Path) -> None:
    check_kills(tmp_path, kills=20, dialogues=400)


def test_one_interrupt_finishes_open_dialogues_and_the_next_run_does_the_rest(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "tasks.jsonl", [backend_task(number) for number in range(24)])
    with in_thread(HostileServer(reply=reply, allowed=MANY_REQUESTS)) as server:
        run = Run(tasks, server, tmp_path / "run")
        run.wait_for_growth()
        run.interrupt()
        server.allowed = None
        code, err = run.ended()
        assert code == 130
        assert "dialogues are left; rerun the same command to resume" in err
        some = episodes_in(tmp_path / "run")
        assert 0 < len(some) < 24
        assert {each.ending for each in some.values()} == {Ending.ANSWERED}
        assert Run(tasks, server, tmp_path / "run").ended() == (0, "")
        assert Run(tasks, server, tmp_path / "calm").ended() == (0, "")
    assert episodes_in(tmp_path / "run") == episodes_in(tmp_path / "calm")


def test_two_interrupts_drop_even_dialogues_that_hang(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "tasks.jsonl", [backend_task(number) for number in range(24)])
    troubles = [None] * 30 + [Trouble.HANG] * 1000
    with in_thread(HostileServer(reply=reply, script=troubles)) as server:
        run = Run(tasks, server, tmp_path / "run")
        run.wait_for_growth()
        while server.met[Trouble.HANG] < 4:
            time.sleep(0.01)
        run.interrupt()
        assert run.process.poll() is None, "one interrupt waits for the open dialogues"
        run.process.send_signal(signal.SIGINT)
        code, err = run.ended()
    assert code == 130
    assert "Traceback" not in err
    assert {each.ending for each in episodes_in(tmp_path / "run").values()} == {Ending.ANSWERED}


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_terminal_shows_how_the_run_is_getting_on(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "tasks.jsonl", [backend_task(number) for number in range(12)])
    ours, theirs = os.openpty()
    with in_thread(HostileServer(reply=reply, latency=lambda _: 0.05)) as server:
        command = ["rollout", "--tasks", tasks, *model_on(server), "--concurrency", 4, "-o", tmp_path / "run"]
        process = subprocess.Popen(
            [sys.executable, "-m", "sweetrl", *map(str, command)],
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(theirs)
        shown = b""
        # Linux reports the end of a terminal as an error.
        with contextlib.suppress(OSError):
            while chunk := os.read(ours, 65536):
                shown += chunk
        assert process.wait(60) == 0
    os.close(ours)
    text = shown.decode()
    for part in ("/12 finished", " open", "0 failed", "turns/s", "tokens/s", "left"):
        assert part in text


def test_the_designer_plays_for_pages_only(sweetrl, tmp_path):
    task = Task(id="b", domain="backend", request="Add.", secret=BackendSecret("def f(): ...", {"t": "f()"}))
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_bytes(msgspec.json.encode(task) + b"\n")
    players = ("--agent", "scripted:curious", "--collaborator", "designer")
    ended = sweetrl("rollout", "--tasks", tasks, *players, "-o", tmp_path / "run")
    assert ended.code == 2
    assert "the collaborator designer is for frontend tasks only" in ended.err
