from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.duplicates import KnownTasks
from sweetrl.types import Task

SOURCE = """def score(words, limit):
    total = 0
    for word in words:
        if len(word) > limit:
            total += len(word) - limit
        elif word.isupper():
            total += 2
    return total"""


def task(name: str, source: str) -> Task:
    secret = BackendSecret(reference=source, tests={"test1": "score([], 1)"})
    return Task(id=name, domain="backend", request=f"Please write {name}.", secret=secret)


def test_other_layout_and_other_names_are_the_same_task() -> None:
    known = KnownTasks(BACKEND, [task("first", SOURCE)])

    assert known.same_as(task("second", SOURCE.replace("    ", "  "))) == "exactly first"
    assert (
        known.same_as(task("third", SOURCE.replace("word", "item").replace("score", "rate")))
        == "exactly first"
    )


def test_a_task_with_one_line_changed_is_nearly_the_same() -> None:
    known = KnownTasks(BACKEND, [task("first", SOURCE)])

    assert known.same_as(task("second", SOURCE.replace("total += 2", "total += 3"))) == "nearly first"


def test_another_task_is_new_until_it_is_known() -> None:
    known = KnownTasks(BACKEND, [task("first", SOURCE)])
    other = task(
        "other", "def score(rows, key):\n    return sorted(rows, key=lambda row: (row[key], row['id']))"
    )

    assert known.same_as(other) is None
    known.add(other)
    assert known.same_as(other) == "exactly other"
