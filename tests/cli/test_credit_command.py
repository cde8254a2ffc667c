"""`sweetrl credit` on logs of one's own."""

import json
import random
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import CHECKOUT, Finished
from models.hostile_server import HostileServer, in_thread
from report.reading import read
from sweetrl.records import read_records
from sweetrl.types import TurnCredit

Sweetrl = Callable[..., Finished]
EXAMPLE = CHECKOUT / "examples/chats.jsonl"
TUTORIAL = CHECKOUT / "docs/credit-your-logs.md"
CHATS = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
FAST = ("--learn", "--model", "words")


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def credit_of(path: Path) -> list[TurnCredit]:
    return list(read_records(path, TurnCredit))


# ---------------------------------------------------------------- learning


def test_the_example_is_credited_as_it_stands_by_the_shipped_model(sweetrl: Sweetrl, tmp_path: Path) -> None:
    output = tmp_path / "credit.jsonl"
    ended = sweetrl("credit", EXAMPLE, "--learn", "-o", output, "--json", "-q")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["critic"].startswith("learned:mini@")
    assert told["better_than_chance"] is True
    assert told["auc"]["low"] > 0.5
    rows = re.findall(r"^\| (ticket-\d+) \| (\d) of \d \|", TUTORIAL.read_text(), re.MULTILINE)
    assert rows == [(each["dialogue"], str(each["number"])) for each in told["worst_turns"][:3]]
    spoken = sum(sum(message["role"] == "assistant" for message in chat["messages"]) for chat in CHATS)
    assert told["made"] == spoken == len(credit_of(output))


def test_the_closing_of_the_ticket_is_what_hurts_in_most_failed_chats(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    ended = sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "c.jsonl", "--json", "-q")
    worst = json.loads(ended.out)["worst_turns"]
    closing = [each for each in worst if "ticket" in each["said"]]
    # 13 of the 15 failed chats have such a turn.
    assert len(closing) >= 8
    assert all(each["lower_than"] > 0.5 for each in closing)
    phrases = {each["phrase"]: each for each in json.loads(ended.out)["habits"]}
    assert phrases["ticket"]["failures"] > 0.8 > 0.2 > phrases["ticket"]["successes"]


def test_turns_have_the_same_numbers_on_screen_on_the_page_and_in_the_file(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    ended = sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "c.jsonl", "--show", 0)
    assert ended.code == 0, ended.err
    lowest = min(
        (each for each in credit_of(tmp_path / "c.jsonl") if not success_of(str(each.dialogue))),
        key=lambda each: each.advantage or 0.0,
    )
    row = next(line for line in ended.out.splitlines() if str(lowest.dialogue) in line)
    assert f" {lowest.number} of " in row
    page = read((tmp_path / "c.html").read_text())
    first = page.all("tbody")[0].all("tr")[0]
    assert [cell.text for cell in first.all("td")][:2] == [
        lowest.dialogue,
        f"{lowest.number} of {turns_of(str(lowest.dialogue))}",
    ]


def success_of(dialogue: str) -> bool:
    return next(bool(chat["success"]) for chat in CHATS if chat["id"] == dialogue)


def turns_of(dialogue: str) -> int:
    [chat] = [chat for chat in CHATS if chat["id"] == dialogue]
    return sum(message["role"] == "assistant" for message in chat["messages"])


def test_the_page_has_the_failed_dialogues_first_with_their_credit(sweetrl: Sweetrl, tmp_path: Path) -> None:
    sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "c.jsonl", "-q")
    page = read((tmp_path / "c.html").read_text())
    assert page.one("h1").text == "Which turn broke the conversation"
    shown = [node.text for node in page.all("details", "dialogue")]
    assert len(shown) == 30
    assert "success" not in shown[0]
    assert len(page.all("div", "credit")) == len(credit_of(tmp_path / "c.jsonl"))


def test_the_same_command_finds_everything_done(sweetrl: Sweetrl, tmp_path: Path) -> None:
    first = sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "c.jsonl", "--json", "-q")
    kept = (tmp_path / "c.jsonl").read_bytes()
    lines = kept.splitlines(keepends=True)
    (tmp_path / "c.jsonl").write_bytes(b"".join(lines[:50]))
    (tmp_path / "c.html").unlink()
    again = sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "c.jsonl", "--json", "-q")
    assert (json.loads(again.out)["before"], json.loads(again.out)["made"]) == (50, len(lines) - 50)
    assert (tmp_path / "c.jsonl").read_bytes() == kept
    assert json.loads(again.out)["auc"] == json.loads(first.out)["auc"]
    assert (tmp_path / "c.html").exists()


def test_other_outcomes_are_another_run(sweetrl: Sweetrl, tmp_path: Path) -> None:
    log = write(tmp_path / "chats.jsonl", *CHATS)
    assert sweetrl("credit", log, *FAST, "-o", tmp_path / "c.jsonl", "-q").code == 0
    write(log, *({**chat, "success": not chat["success"]} for chat in CHATS))
    ended = sweetrl("credit", log, *FAST, "-o", tmp_path / "c.jsonl", "-q")
    assert (ended.code, "belongs to another run" in ended.err) == (2, True)


def test_outcomes_that_mean_nothing_are_a_warning(sweetrl: Sweetrl, tmp_path: Path) -> None:
    drawn = [number % 2 == 0 for number in range(30)]
    random.Random(5).shuffle(drawn)
    log = write(tmp_path / "chats.jsonl", *({**chat, "success": drawn[at]} for at, chat in enumerate(CHATS)))
    ended = sweetrl("credit", log, *FAST, "-o", tmp_path / "c.jsonl", "--show", 0)
    assert ended.code == 0
    assert "not better than chance" in " ".join(ended.out.split())


def test_without_a_critic_the_outcomes_teach_one_and_the_output_has_a_name(
    sweetrl: Sweetrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sweetrl("credit", EXAMPLE, "--model", "words", "-q").code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "chats.credit.jsonl",
        "chats.credit.run.json",
        "chats.credit.html",
    }


def test_ratings_are_outcomes_from_a_number_on(sweetrl: Sweetrl, tmp_path: Path) -> None:
    rated = [
        {"messages": chat["messages"], "metadata": {"stars": 4 + chat["success"]}, "id": chat["id"]}
        for chat in CHATS
    ]
    log = write(tmp_path / "chats.jsonl", *rated)
    named = ("--outcome-field", "metadata.stars")
    refused = sweetrl("credit", log, *FAST, *named, "-o", tmp_path / "c.jsonl")
    assert (refused.code, "30 successes and 0 failures" in refused.err) == (2, True)
    ended = sweetrl(
        "credit", log, *FAST, *named, "--success-at", 5, "-o", tmp_path / "c.jsonl", "--json", "-q"
    )
    plain = sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "d.jsonl", "--json", "-q")
    assert json.loads(ended.out)["worst_turns"] == json.loads(plain.out)["worst_turns"]


def test_chats_in_one_array_without_ids_are_called_by_their_place(sweetrl: Sweetrl, tmp_path: Path) -> None:
    log = tmp_path / "chats.json"
    log.write_text(
        json.dumps([{"messages": c["messages"], "outcome": c["success"]} for c in CHATS], indent=1)
    )
    assert sweetrl("credit", log, *FAST, "-o", tmp_path / "c.jsonl", "-q").code == 0
    assert list(dict.fromkeys(each.dialogue for each in credit_of(tmp_path / "c.jsonl"))) == [
        f"#{number}" for number in range(1, 31)
    ]


def test_chats_in_which_the_assistant_says_nothing_are_left_out_and_counted(
    sweetrl: Sweetrl, tmp_path: Path
) -> None:
    silent = [{"messages": []}, {"messages": CHATS[0]["messages"][:1], "success": False}]
    bare = [{key: chat[key] for key in chat if key != "id"} for chat in CHATS]
    log = write(tmp_path / "chats.jsonl", *silent, *bare)
    ended = sweetrl("credit", log, *FAST, "-o", tmp_path / "c.jsonl", "--json", "-q")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["left_out"] == 2
    # Their places in the file still count.
    places = {each["dialogue"] for each in told["worst_turns"]}
    failed = [f"#{place}" for place, chat in enumerate(CHATS, start=3) if not chat["success"]]
    assert places <= set(failed)
    shown = sweetrl("credit", log, *FAST, "-o", tmp_path / "again.jsonl")
    assert "2 more dialogues are left out: the agent says nothing there" in " ".join(shown.out.split())


def test_a_log_in_which_no_assistant_speaks_is_one_line(sweetrl: Sweetrl, tmp_path: Path) -> None:
    ended = sweetrl("credit", write(tmp_path / "chats.jsonl", {"messages": []}), *FAST)
    assert ended.code == 2
    assert "has no dialogue in which the agent speaks" in ended.err


def test_episodes_of_ours_are_learned_from_with_their_verdicts(sweetrl: Sweetrl, tmp_path: Path) -> None:
    assert sweetrl("episodes", "import", EXAMPLE, "-o", tmp_path / "run").code == 0
    stored = (tmp_path / "run/episodes.jsonl").read_text()
    (tmp_path / "run/episodes.jsonl").write_text(stored.replace('"outcome"', '"gone"'))
    given = (tmp_path / "run/episodes.jsonl", *FAST, "-o", tmp_path / "c.jsonl", "--json", "-q")
    refused = sweetrl("credit", *given)
    assert (refused.code, "no dialogue has an outcome" in refused.err) == (2, True)
    ended = sweetrl("credit", *given, "--verdicts", tmp_path / "run/verdicts.jsonl")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["auc"]["count"] == 30


# ---------------------------------------------------------------- judges


def test_a_judge_needs_no_reference_and_no_outcome(sweetrl: Sweetrl, tmp_path: Path) -> None:
    def judge(body: dict[str, Any], sample: int) -> str:
        prompt = body["messages"][0]["content"]
        assert "Nobody wrote down what a good result looks like" in prompt
        return "GRADE: -2" if "ticket" in prompt.split("<message>")[1] else "GRADE: +1"

    log = write(tmp_path / "chats.jsonl", *({"messages": chat["messages"]} for chat in CHATS[:6]))
    with in_thread(HostileServer(reply=judge)) as running:
        critic = ("--critic", f"judge:openai:fake@{running.url}")
        ended = sweetrl("credit", log, *critic, "-o", tmp_path / "c.jsonl", "--json", "-q")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["auc"] is None
    assert {each["advantage"] for each in told["worst_turns"]} == {-1.0}
    assert all("ticket" in each["said"] for each in told["worst_turns"])


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "which dialogues? name one file"),
        ((EXAMPLE, "--dialogues", EXAMPLE), "which dialogues? name one file"),
        (("nowhere.jsonl",), "nowhere.jsonl: no such file"),
        ((CHECKOUT,), "is a folder"),
        ((CHECKOUT / "README.md",), "not a file of JSON; expected lines such as"),
        ((EXAMPLE, "--learn", "--critic", "length"), "leave out --learn or --critic length"),
        ((EXAMPLE, "--critic", "zero:mini"), "has no reference, which the critic zero:mini needs"),
        ((EXAMPLE, "--learn", "--outcome-field", "csat"), 'no dialogue has an outcome (a field "csat"'),
        ((EXAMPLE, "--learn", "--success-at", "2"), "0 successes and 30 failures; learning needs 5 of each"),
        ((EXAMPLE, "--learn", "--model", "openai:gpt"), "hidden states need the model itself"),
        ((EXAMPLE, "--learn", "--model", "hf:./no/such/folder"), "./no/such/folder: no such folder"),
        ((EXAMPLE, "--learn", "--outcome-field", "messages"), "messages must be true, false or a number"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    sweetrl: Sweetrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    ended = sweetrl("credit", *arguments, "-o", tmp_path / "c.jsonl")
    assert ended.code == 2
    [line] = ended.err.strip().splitlines()
    assert complaint in line
    assert not (tmp_path / "c.jsonl").exists()


def test_a_page_of_somebody_else_is_not_replaced(sweetrl: Sweetrl, tmp_path: Path) -> None:
    (tmp_path / "c.html").write_text("<html>mine</html>")
    ended = sweetrl("credit", EXAMPLE, *FAST, "-o", tmp_path / "c.jsonl")
    assert (ended.code, "is not a page of sweetrl" in ended.err) == (2, True)
    assert (tmp_path / "c.html").read_text() == "<html>mine</html>"


# ---------------------------------------------------------------- the example


def test_the_python_of_the_tutorial_runs_as_it_stands(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("sql_domain"))
    [code] = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    quick = code.replace('chats.jsonl")', 'chats.jsonl", model="words")')
    done = subprocess.run(
        [sys.executable, "-c", quick], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "ticket" in done.stdout
    assert "Which turn broke the conversation" in (tmp_path / "credit.html").read_text()


def test_the_example_is_what_its_script_writes() -> None:
    made = runpy.run_path(str(CHECKOUT / "examples/make_chats.py"))["make_chats"]()
    assert made == CHATS
