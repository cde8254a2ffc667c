import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from sweetrl.cli.play import _result
from sweetrl.domains.registry import find_domain
from sweetrl.domains.sources import parse_task
from sweetrl.types import Ending, Episode, Verdict

PAGE = {
    "id": "page",
    "problem_description": "A page with a heading",
    "ground_truth": "<html><h1>Hi</h1></html>",
}
FUNCTION = {
    "id": "double",
    "problem_description": "Double it. The signature is: def double(x)",
    "ground_truth": "def double(x):\n    return 2 * x",
    "test_cases": {"test1": "double(1)", "test2": "double(0)"},
}


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps({**PAGE, "id": f"page-{number}"}) + "\n" for number in range(2)))
    return path


def stored(folder: Path) -> list[Episode]:
    lines = (folder / "episodes.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Episode) for line in lines]


@pytest.fixture
def play(sweetrl, monkeypatch, tmp_path):
    """Plays with the given keystrokes into `tmp_path / "run"`."""

    def call(typed: str, *arguments: object):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        return sweetrl("play", "-o", tmp_path / "run", *arguments)

    return call


# ---------------------------------------------------------------- both seats


def test_a_person_plays_the_agent(play, pages, tmp_path) -> None:
    typed = "Which colour?\n\n/answer\n<html>done</html>\n\n"
    done = play(typed, "--tasks", pages, "--as", "agent", "--collaborator", "scripted:unsure")
    assert done.code == 0
    (episode,) = stored(tmp_path / "run")
    assert (episode.agent, episode.collaborator) == ("human", "scripted:unsure")
    assert episode.turns[0].output == "Which colour?"
    assert episode.turns[0].reply.text == "I don't know."
    assert (episode.ending, episode.answer) == (Ending.ANSWERED, "<html>done</html>")


def test_a_person_plays_the_collaborator(play, pages, tmp_path) -> None:
    done = play("Blue.\n\nBig.\n\n", "--tasks", pages, "--as", "collaborator", "--agent", "scripted:curious")
    assert done.code == 0
    (episode,) = stored(tmp_path / "run")
    assert (episode.agent, episode.collaborator) == ("scripted:curious", "human")
    assert [turn.reply and turn.reply.text for turn in episode.turns] == ["Blue.", "Big.", None]


def test_each_game_is_another_task_and_then_another_attempt(play, pages, tmp_path) -> None:
    for _ in range(3):
        play("/answer x\n\n", "--tasks", pages, "--as", "agent", "--collaborator", "scripted:unsure")
    assert [episode.id for episode in stored(tmp_path / "run")] == ["page-0#0", "page-1#0", "page-0#1"]


def test_a_task_can_be_chosen(play, pages, tmp_path) -> None:
    seat = ("--tasks", pages, "--as", "agent", "--collaborator", "scripted:unsure")
    play("/answer x\n\n", *seat, "--task", "page-1")
    assert [episode.id for episode in stored(tmp_path / "run")] == ["page-1#0"]
    done = play("", *seat, "--task", "page-7")
    assert done.code == 2
    assert "no task has the id 'page-7'" in done.err


@pytest.mark.parametrize("typed", ["/quit\n", "", "Which colour?\n\n/quit\n"])
def test_leaving_records_nothing(play, pages, tmp_path, typed: str) -> None:
    done = play(typed, "--tasks", pages, "--as", "agent", "--collaborator", "scripted:unsure")
    assert done.code == 0
    assert done.err.endswith("you left; nothing was recorded\n")
    assert stored(tmp_path / "run") == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--as", "agent"), "who is the collaborator? name a model with --collaborator"),
        (("--as", "collaborator"), "who is the agent? name a model with --agent"),
        (("--as", "agent", "--agent", "scripted:echo"), "you are the agent yourself; leave out --agent"),
        (("--as", "agent", "--collaborator", "scripted:nobody"), "there is no script 'nobody'"),
        (("--as", "cook"), "'cook' is not one of"),
    ],
)
def test_an_impossible_seating_is_one_line(play, pages, arguments, complaint: str) -> None:
    done = play("", "--tasks", pages, *arguments)
    assert done.code == 2
    assert complaint in done.err


def test_a_breakdown_of_the_model_is_told_and_done_again_next_time(play, pages, tmp_path) -> None:
    seat = ("--tasks", pages, "--as", "agent", "--collaborator", "replay:" + str(tmp_path / "old.jsonl"))
    old = Episode(
        task_id="page-0", attempt=0, seed=0, agent="a", collaborator="c", request="another request", turns=(),
        ending=Ending.TURN_LIMIT, answer=None,
    )  # fmt: skip
    (tmp_path / "old.jsonl").write_bytes(msgspec.json.encode(old) + b"\n")
    done = play("Which colour?\n\n", *seat)
    assert done.code == 1
    assert "page-0#0 broke down: CollaboratorError" in done.err
    assert play("/answer x\n\n", *seat).code == 0
    assert [episode.id for episode in stored(tmp_path / "run")] == ["page-0#0"]


def test_an_answer_in_python_is_scored_at_once(play, tmp_path) -> None:
    pytest.importorskip("sweetrl.domains.backend.scorer")
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps(FUNCTION) + "\n")
    typed = "/answer\ndef double(x):\n    return 2 * x if x else 1\n\n"
    done = play(typed, "--tasks", tasks, "--as", "agent", "--collaborator", "scripted:unsure")
    assert done.code == 0
    assert "reward 0.50: 1 of 2 hidden tests passed" in done.err


def test_a_score_without_checks_is_the_reward_and_whether_it_is_a_success() -> None:
    task = parse_task({"id": "t", "domain": "chat", "request": "?", "secret": {}})
    verdict = Verdict(
        task_id="t", episode_id="t#0", scorer="chat-mine/1", answer_digest="-", reward=0.944, success=False
    )
    said = _result(task, verdict, Path("episodes.jsonl"), "tasks.jsonl")
    assert said == f"reward 0.94 ({find_domain('chat').labels.reward}), no success"


# ---------------------------------------------------------------- a game that teaches


def test_play_alone_is_a_small_task_with_a_colleague(sweetrl, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Who will use it?\n/answer def f(n): return n\n"))
    done = sweetrl("play")
    assert done.code == 0
    (episode,) = stored(tmp_path / "played")
    assert (episode.agent, episode.collaborator) == ("human", "colleague")
    for shown in ("Turn 2 of 8", "reference", "You did not find out:", "of 10 hidden tests passed"):
        assert shown in done.err
    assert re.search(r"turn 1 +[+-]\d+\.\d points  Who will use it\?", done.err)


def test_a_game_of_another_length_is_another_run(play, tmp_path) -> None:
    assert play("/answer x\n").code == 0
    done = play("/answer x\n", "--turn-limit", 3)
    assert done.code == 2
    assert "turn_limit was 8, now 3" in done.err


# ---------------------------------------------------------------- a real terminal


class Pty:
    """`sweetrl play` in a pseudo-terminal."""

    def __init__(self, *arguments: object) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sweetrl", "play", *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(theirs)
        self.screen = ""

    def expect(self, text: str) -> None:
        """Wait until `text` is on the part of the screen that was not looked at yet."""
        limit = time.monotonic() + 120
        while text not in self.screen:
            assert time.monotonic() < limit, f"{text!r} did not appear in {self.screen!r}"
            if select.select([self._ours], [], [], 1)[0]:
                self.screen += os.read(self._ours, 4096).decode()
        self.screen = self.screen.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(pages: Path, tmp_path: Path) -> Iterator[Pty]:
    seat = ("--as", "collaborator", "--agent", "scripted:curious")
    terminal = Pty("--tasks", pages, *seat, "-o", tmp_path / "run")
    yield terminal
    terminal.close()


def test_a_dialogue_is_held_at_a_real_terminal(terminal: Pty, tmp_path: Path) -> None:
    terminal.expect("A page with a heading")
    terminal.expect("for your eyes only")
    terminal.expect("What should happen")
    terminal.expect("> ")
    terminal.type("Bleu\x7f\x7flue,\rif possible.\r")
    terminal.expect("What should happen")
    terminal.expect("> ")
    terminal.type("I don't know.\r")
    terminal.expect("recorded in")
    assert terminal.process.wait(120) == 0
    (episode,) = stored(tmp_path / "run")
    assert [turn.reply.text for turn in episode.turns[:2]] == ["Bllue,\nif possible.", "I don't know."]


def test_ctrl_c_at_the_prompt_ends_the_command_at_once_and_without_a_traceback(
    terminal: Pty, tmp_path: Path
) -> None:
    terminal.expect("> ")
    terminal.type("half a mess")
    terminal.expect("half a mess")
    terminal.process.send_signal(signal.SIGINT)
    terminal.expect("interrupted")
    assert terminal.process.wait(120) == 130
    assert "Traceback" not in terminal.screen
    assert stored(tmp_path / "run") == []


def test_ctrl_d_leaves(terminal: Pty, tmp_path: Path) -> None:
    terminal.expect("> ")
    terminal.type("\x04")
    terminal.expect("you left; nothing was recorded")
    assert terminal.process.wait(120) == 0
    assert stored(tmp_path / "run") == []


def test_a_game_is_played_at_a_real_terminal_with_one_enter_a_message(tmp_path: Path) -> None:
    terminal = Pty("-o", tmp_path / "run")
    try:
        terminal.expect("Your goal: Ask about what the request leaves open")
        terminal.expect("Turn 1 of 8 >")
        terminal.type("/tests\r")
        terminal.expect("# test10")
        terminal.expect("Turn 1 of 8 >")
        terminal.type("Who will use it?\r")
        terminal.expect("Turn 2 of 8 >")
        terminal.type("/answer\r")
        terminal.type("def f(n):\r    return n\r\r")
        terminal.expect("hidden tests passed")
        terminal.expect("What each turn did to the chance of success")
        assert terminal.process.wait(120) == 0
    finally:
        terminal.close()
    (episode,) = stored(tmp_path / "run")
    assert [turn.output for turn in episode.turns] == [
        "Who will use it?",
        "I WANT TO ANSWER:\ndef f(n):\n    return n",
    ]
    assert episode.extra == {"play": {"saw_tests": True}}
