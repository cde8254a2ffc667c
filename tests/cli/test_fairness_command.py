import json
from pathlib import Path

import msgspec
import pytest

from sweetrl.types import Ending, Episode, Failure, Reply, Turn, Verdict

TASK = {
    "id": "parcel",
    "problem_description": "Price a parcel. The signature is: def price(weight)",
    "ground_truth": "def price(weight):\n    return 5 if weight <= 2 else 9",
    "test_cases": {"test1": "price(1)"},
}


def episode(attempt: int, reply: str, ending: Ending = Ending.ANSWERED) -> Episode:
    return Episode(
        task_id="parcel",
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=TASK["problem_description"],
        turns=(Turn("How?", "How?", Reply(reply)), Turn("I WANT TO ANSWER: x", "I WANT TO ANSWER: x")),
        ending=ending,
        answer="x",
        failure=Failure("agent", "ModelError", "dead") if ending is Ending.FAILED else None,
    )


EPISODES = [
    episode(0, "I don't know."),
    episode(1, "Write return 5 if weight <= 2 else 9."),
    episode(2, "Write return 5 if weight <= 2 else 9.", Ending.FAILED),
]


@pytest.fixture
def files(tmp_path: Path) -> list[object]:
    tasks, episodes = tmp_path / "tasks.jsonl", tmp_path / "episodes.jsonl"
    tasks.write_text(json.dumps(TASK) + "\n")
    episodes.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in EPISODES))
    return ["--tasks", tasks, "--episodes", episodes]


def test_the_figures_of_whole_dialogues_are_printed_as_json(sweetrl, files) -> None:
    done = sweetrl("fairness", *files, "--json")
    report = json.loads(done.out)
    values = {metric["name"]: metric["value"] for metric in report["metrics"]}
    assert (done.code, report["dialogues"], report["replies"]) == (0, 2, 2)
    assert values["leaking_dialogues"] == values["leaking_replies"] == values["ignorant_replies"] == 0.5
    assert "success" not in values


def test_people_get_a_table_and_the_worst_dialogue(sweetrl, files) -> None:
    done = sweetrl("fairness", *files)
    assert "2 dialogues, 2 replies" in done.out
    assert "replies with code of the reference" in done.out
    assert done.err.startswith("parcel#1: ")
    assert "first in turn 1: return 5 if weight <= 2 else 9" in done.err
    assert sweetrl("fairness", *files, "--quiet").err == ""


def test_success_stands_beside_leaks_when_there_are_verdicts(sweetrl, files, tmp_path) -> None:
    verdicts = tmp_path / "verdicts.jsonl"
    verdicts.write_bytes(
        b"".join(
            msgspec.json.encode(
                Verdict(
                    task_id="parcel",
                    episode_id=each.id,
                    scorer="s/1",
                    answer_digest="-",
                    reward=1.0,
                    success=each.attempt == 1,
                )
            )
            + b"\n"
            for each in EPISODES
        )
    )
    done = sweetrl("fairness", *files, "--verdicts", verdicts, "--json")
    values = {metric["name"]: metric["value"] for metric in json.loads(done.out)["metrics"]}
    assert (values["success"], values["success_with_leaks"], values["success_without_leaks"]) == (
        0.5,
        1.0,
        0.0,
    )


def test_details_hold_one_line_per_dialogue_and_are_not_overwritten(sweetrl, files, tmp_path) -> None:
    details = tmp_path / "details.jsonl"
    assert sweetrl("fairness", *files, "--details", details).code == 0
    lines = [json.loads(line) for line in details.read_text().splitlines()]
    assert [line["episode_id"] for line in lines] == ["parcel#0", "parcel#1"]
    assert lines[1]["replies"][0]["fragments"] == ["return 5 if weight <= 2 else 9"]
    again = sweetrl("fairness", *files, "--details", details)
    assert again.code == 2
    assert "exists already" in again.err
    assert sweetrl("fairness", *files, "--details", details, "--force").code == 0


def test_dialogues_on_other_tasks_are_refused(sweetrl, files, tmp_path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({**TASK, "id": "letter"}) + "\n")
    done = sweetrl("fairness", "--tasks", other, *files[2:])
    assert done.code == 2
    assert "episodes.jsonl:1: the task parcel is not among the tasks" in done.err
