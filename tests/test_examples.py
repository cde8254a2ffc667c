"""The examples are worth what they are meant to be: six right, three mistaken, three that try to cheat."""

from pathlib import Path

import pytest
from msgspec import Struct

from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.sources import load_tasks
from sweetrl.records import read_records
from sweetrl.sandbox import Sandbox
from sweetrl.types import Outcome

EXAMPLES = Path(__file__).parent.parent / "examples"
PASSED = {
    "shipping-fee": [10, 6],
    "initials": [10, 0],
    "seat-label": [10, 6],
    "opening-hours": [10, 7],
    "late-fee": [10, 0],
    "tally": [10, 0],
}
"""Hidden tests out of ten that the answers to each task pass, in the order of the file."""


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    task_id: str
    answer: str


def test_each_example_task_has_two_answers() -> None:
    answers = list(read_records(EXAMPLES / "answers.jsonl", Answer))
    assert [each.task_id for each in answers] == [task_id for task_id in PASSED for _ in range(2)]
    assert load_tasks(EXAMPLES / "tasks.jsonl").keys() == PASSED.keys()


@pytest.mark.parametrize("task_id", PASSED)
def test_example_answers_earn_what_they_deserve(task_id: str) -> None:
    task = load_tasks(EXAMPLES / "tasks.jsonl")[task_id]
    answers = [each for each in read_records(EXAMPLES / "answers.jsonl", Answer) if each.task_id == task_id]
    with Sandbox() as sandbox:
        scorer = BackendScorer(sandbox)
        outcomes = [[check.outcome for check in scorer.checks(task, each.answer)] for each in answers]
        scorer.close()
    assert [each.count(Outcome.PASSED) for each in outcomes] == PASSED[task_id]
