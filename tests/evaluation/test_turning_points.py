"""What credit says about a log."""

import pytest

from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.logged import LoggedDialogue
from sweetrl.evaluation.habits import find_habits
from sweetrl.evaluation.turning_points import CreditReport
from sweetrl.types import Ending, Episode, Metric, Reply, Task, Turn, TurnCredit, Verdict


def logged(number: int, *said: str, success: bool | None = None) -> LoggedDialogue:
    task = Task(id=f"t{number}", domain="chat", request="Help!", secret=ChatSecret())
    episode = Episode(
        task_id=task.id, attempt=0, seed=0, agent="chat", collaborator="chat", request="Help!",
        turns=tuple(Turn(text, text, Reply("ok")) for text in said), ending=Ending.ANSWERED, answer=None,
    )  # fmt: skip
    verdict = None if success is None else Verdict(
        task_id=task.id, episode_id=episode.id, scorer="chat-outcome", answer_digest="", reward=float(success),
        success=success,
    )  # fmt: skip
    return LoggedDialogue(task, episode, verdict, f"#{number}")


def credit(dialogue: LoggedDialogue, *advantages: float | None) -> list[TurnCredit]:
    return [
        TurnCredit(
            episode_id=dialogue.episode.id, task_id=dialogue.task.id, turn=turn, critic="c", advantage=each
        )
        for turn, each in enumerate(advantages)
    ]


GOOD, BAD, WORSE = (
    logged(1, "a", "b", success=True),
    logged(2, "c", "d", success=False),
    logged(3, "e", "f", "g", success=False),
)
CREDIT = [*credit(GOOD, -0.9, 0.1), *credit(BAD, 0.2, -0.3), *credit(WORSE, -0.1, -0.5, None)]


def test_the_worst_turn_of_each_failed_dialogue_is_named_the_worst_first() -> None:
    worst = CreditReport([GOOD, BAD, WORSE], CREDIT, "c").worst_turns
    assert [(each.dialogue, each.number, each.turns, each.said) for each in worst] == [
        ("#3", 2, 3, "f"),
        ("#2", 2, 2, "d"),
    ]


def test_a_worst_turn_is_placed_among_all_turns_of_the_log() -> None:
    first, second = CreditReport([GOOD, BAD, WORSE], CREDIT, "c").worst_turns
    assert (first.rank, first.lower_than) == (2, pytest.approx(0.8))
    assert (second.rank, second.lower_than) == (3, pytest.approx(0.6))


def test_without_outcomes_all_dialogues_are_looked_at() -> None:
    dialogues = [logged(1, "a", "b"), logged(2, "c", "d")]
    given = [*credit(dialogues[0], -0.9, 0.1), *credit(dialogues[1], 0.2, 0.3)]
    report = CreditReport(dialogues, given, "c")
    assert [each.dialogue for each in report.worst_turns] == ["#1"]
    assert report.is_better_than_chance is None


@pytest.mark.parametrize(("low", "better"), [(0.49, False), (0.5, False), (0.51, True)])
def test_a_critic_that_may_be_guessing_is_called_that(low: float, better: bool) -> None:
    report = CreditReport([GOOD, BAD], CREDIT, "c", Metric("auc", 0.7, low, 0.9, 2), "the words")
    assert report.is_better_than_chance is better
    assert ("not better than chance" in " ".join(report.summary)) is not better
    assert "AUC 0.70" in " ".join(report.summary)


def test_a_phrase_that_goes_with_success_is_a_habit() -> None:
    dialogues = [
        logged(
            at,
            f"Hello {'abcdefgh'[at % 8]}",
            "Does that help you?" if at % 2 else "Bye.",
            success=bool(at % 2),
        )
        for at in range(24)
    ]
    [helps, bye, *_] = sorted(find_habits(dialogues), key=lambda each: -each.successes)
    assert (helps.phrase, helps.successes, helps.failures) == ("does that help", 1.0, 0.0)
    assert (bye.phrase, bye.successes, bye.failures) == ("bye", 0.0, 1.0)
    assert helps.p < 0.001


def test_phrases_that_go_with_nothing_are_no_habits() -> None:
    dialogues = [logged(at, f"word{chr(97 + at % 3)} and more", success=at % 2 == 0) for at in range(24)]
    assert find_habits(dialogues) == []
    assert find_habits([logged(1, "a", success=True)]) == []
