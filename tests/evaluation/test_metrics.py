"""The figures of a run against sums done by hand, with a benchmark that asks about letters."""

import pytest
from msgspec.structs import replace

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.errors import DataError
from sweetrl.evaluation.metrics import (
    Asking,
    FactTracker,
    assess_asking,
    figures_by_task,
    measure,
    useful_by_turn,
    useful_turns,
)
from sweetrl.types import Ending, Episode, Failure, Metric, Reply, Task, Turn, Verdict

TRACKER = FactTracker(
    facts=lambda task: frozenset(task.extra["facts"]),
    asked=lambda text: text.removesuffix("?") if text.endswith("?") else None,
)


def task(name: str, facts: str = "") -> Task:
    secret = BackendSecret(reference="def f(): ...", tests={"t": "f()"})
    return Task(id=name, domain="backend", request=name, secret=secret, extra={"facts": list(facts)})


def episode(name: str, questions: str, *, attempt: int = 0, ending: Ending = Ending.ANSWERED) -> Episode:
    """Asks about each letter; a `.` is small talk. The last turn is the answer."""
    said = ["Hm." if letter == "." else f"{letter}?" for letter in questions]
    asked = [Turn(text, text, Reply("So.")) for text in said]
    return Episode(
        task_id=name,
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=name,
        turns=(*asked, Turn("answer", "answer")),
        ending=ending,
        answer="answer",
        failure=Failure("agent", "ModelError", "gone") if ending is Ending.FAILED else None,
    )


def verdict(of: Episode, reward: float | None) -> Verdict:
    return Verdict(
        task_id=of.task_id,
        episode_id=of.id,
        scorer="s/1",
        answer_digest="-",
        reward=reward,
        success=reward == 1,
        failure=Failure("score", "SandboxError", "gone") if reward is None else None,
    )


# ---------------------------------------------------------------- turn by turn


@pytest.mark.parametrize(
    ("facts", "questions", "useful"),
    [("ab", "ab", {0, 1}), ("ab", "xa.ab", {1, 4}), ("ab", "", set()), ("", "ab", set())],
)
def test_a_turn_is_useful_that_asks_what_matters_for_the_first_time(
    facts: str, questions: str, useful: set[int]
) -> None:
    assert useful_turns(task("t", facts), episode("t", questions), TRACKER) == useful


def test_useful_turns_are_shares_of_the_dialogues_on_a_task() -> None:
    tasks = {name: task(name, "ab") for name in ("t", "u")}
    held = [
        episode("t", "ab"),
        episode("t", "xa", attempt=1),
        episode("t", "ab", attempt=2, ending=Ending.FAILED),
        episode("u", ""),
    ]
    assert useful_by_turn(tasks, held, TRACKER, 3) == [
        {"t": 0.5, "u": 0.0},
        {"t": 1.0, "u": 0.0},
        {"t": 0.0, "u": 0.0},
    ]


# ---------------------------------------------------------------- one dialogue


@pytest.mark.parametrize(
    ("facts", "questions", "found", "repeats", "premature"),
    [
        ("ab", "ab", 2, 0, False),
        ("ab", "", 0, 0, True),
        ("ab", "ax.x", 1, 1, True),
        ("ab", "aabab", 2, 3, False),
        ("", "", 0, 0, False),
        ("", "xx", 0, 1, False),
    ],
)
def test_what_was_asked_is_counted(facts, questions, found, repeats, premature):
    asking = assess_asking(task("t", facts), episode("t", questions), TRACKER)
    assert asking == Asking(facts=len(facts), found=found, repeats=repeats, premature=premature)


def test_who_runs_out_of_turns_did_not_answer_too_early():
    asking = assess_asking(task("t", "ab"), episode("t", "a", ending=Ending.TURN_LIMIT), TRACKER)
    assert (asking.found, asking.premature) == (1, False)


def test_a_last_question_that_nobody_replies_to_finds_nothing():
    asked = episode("t", "a", ending=Ending.TURN_LIMIT)
    unheard = Episode(
        task_id="t",
        attempt=0,
        seed=0,
        agent="a",
        collaborator="c",
        request="t",
        turns=(*asked.turns[:1], Turn("b?", "b?")),
        ending=Ending.TURN_LIMIT,
        answer="b?",
    )
    assert assess_asking(task("t", "ab"), unheard, TRACKER).found == 1


def test_a_question_that_the_collaborator_could_not_read_finds_nothing():
    whole = episode("t", "ab")
    excused = replace(whole.turns[1], reply=Reply("I could not read that.", excuse="context_length"))
    asked = replace(whole, turns=(whole.turns[0], excused, whole.turns[2]))
    assert assess_asking(task("t", "ab"), asked, TRACKER).found == 1
    assert useful_turns(task("t", "ab"), asked, TRACKER) == {0}


# ---------------------------------------------------------------- a run

TASKS = {each.id: each for each in (task("one", "ab"), task("two", "c"), task("three"))}
EPISODES = [episode("one", "ax"), episode("two", "cc"), episode("three", "")]
VERDICTS = [verdict(one, reward) for one, reward in zip(EPISODES, (0.5, 1.0, 0.0), strict=True)]


def test_the_figures_by_hand():
    run = measure(TASKS, EPISODES, VERDICTS, tracker=TRACKER)
    assert (run.tasks, run.dialogues, run.failed, run.unscored) == (3, 3, 0, 0)
    values = {name: (metric.value, metric.count) for name, metric in run.metrics.items()}
    assert values == {
        "success": (pytest.approx(1 / 3), 3),
        "success_failures_as_zero": (pytest.approx(1 / 3), 3),
        "reward": (0.5, 3),
        "turns": (pytest.approx((3 + 3 + 1) / 3), 3),
        "coverage": (pytest.approx((1 / 2 + 1) / 2), 2),  # the third task has nothing to ask about
        "repeats": (pytest.approx(1 / 3), 3),
        "premature": (pytest.approx(1 / 3), 3),
    }
    assert all(metric.name == name for name, metric in run.metrics.items())
    assert all(metric.low <= metric.value <= metric.high for metric in run.metrics.values())


def test_without_known_facts_asking_is_not_judged():
    assert measure(TASKS, EPISODES, VERDICTS).metrics.keys() == {
        "success",
        "success_failures_as_zero",
        "reward",
        "turns",
    }


def test_failed_dialogues_and_unscored_answers_are_counted_apart():
    broken = episode("two", "", ending=Ending.FAILED)
    unjudged = episode("three", "", attempt=1)
    verdicts = [verdict(EPISODES[0], 1.0), verdict(broken, None), verdict(EPISODES[2], None)]
    run = measure(TASKS, [EPISODES[0], broken, EPISODES[2], unjudged], verdicts, tracker=TRACKER)
    assert (run.dialogues, run.failed, run.unscored, run.tasks) == (3, 1, 2, 2)
    assert (run.metrics["success"].value, run.metrics["success"].count) == (1.0, 1)
    assert run.metrics["success"].unscored == run.metrics["reward"].unscored == 2
    assert run.metrics["turns"].count == 3


def test_success_with_failures_as_zero_counts_every_dialogue():
    broken = episode("two", "", ending=Ending.FAILED)
    unjudged = episode("three", "", attempt=1)
    held = [EPISODES[0], broken, EPISODES[2], unjudged]
    verdicts = [verdict(EPISODES[0], 1.0), verdict(broken, None), verdict(EPISODES[2], None)]
    strict = measure(TASKS, held, verdicts).metrics["success_failures_as_zero"]
    assert (strict.value, strict.count) == (0.25, 4)
    assert strict.low < 0.25 < strict.high
    by_task = figures_by_task(TASKS, held, verdicts)
    assert by_task["success"] == {"one": 1.0}
    assert by_task["success_failures_as_zero"] == {"one": 1.0, "two": 0.0, "three": 0.0}


def test_what_the_agent_broke_is_scored_and_counted():
    last = Turn("", "", unfinished=True, trouble="agent: context_length")
    excused = Turn("b?", "b?", Reply("I could not read that.", excuse="content_filter"))
    cut = replace(episode("one", ""), turns=(excused, excused, last), ending=Ending.BROKE_OFF)
    run = measure(TASKS, [cut, EPISODES[1]], [verdict(cut, 0.0), verdict(EPISODES[1], 1.0)])
    assert (run.dialogues, run.failed, run.broke_off, run.unanswered) == (2, 0, 1, 2)
    assert run.metrics["success"].value == run.metrics["success_failures_as_zero"].value == 0.5


def test_a_run_in_which_everything_failed_has_figures_of_nothing():
    broken = episode("two", "", ending=Ending.FAILED)
    run = measure(TASKS, [broken], [verdict(broken, None)])
    assert run.metrics["success"] == Metric("success", None, None, None, 0)
    assert run.metrics["turns"].value is None


def test_several_attempts_at_a_task_are_one_cluster():
    attempts = [episode(name, "", attempt=attempt) for name in ("one", "three") for attempt in range(40)]
    run = measure(TASKS, attempts, [verdict(each, float(each.task_id == "one")) for each in attempts])
    assert (run.metrics["success"].value, run.metrics["success"].count) == (0.5, 80)
    assert run.metrics["success"].high - run.metrics["success"].low > 0.9


def test_verdicts_on_other_dialogues_are_refused():
    with pytest.raises(DataError, match="a verdict is on two#0, which is not among the episodes"):
        measure(TASKS, EPISODES[:1], VERDICTS)


def test_facts_of_a_task_that_is_not_there_are_not_made_up():
    with pytest.raises(DataError, match="one#0 is on a task that is not there"):
        measure({}, EPISODES, VERDICTS, tracker=TRACKER)
