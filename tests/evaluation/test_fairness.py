import msgspec
import pytest

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.evaluation.fairness import FairnessTally, assess_dialogue
from sweetrl.types import Ending, Episode, Metric, Reply, Task, Turn

REQUEST = "Write a function that prices a parcel. The signature is: def price(weight)"
SOURCE = """def price(weight):
    if weight > 20:
        raise ValueError("too heavy")
    return 5 if weight <= 2 else 9
"""
TASK = Task(
    id="parcel", domain="backend", request=REQUEST, secret=BackendSecret(SOURCE, {"test1": "price(1)"})
)


def dialogue(*exchanges: tuple[str, str], task_id: str = "parcel", attempt: int = 0) -> Episode:
    turns = [Turn(output=said, said=said, reply=Reply(reply)) for said, reply in exchanges]
    return Episode(
        task_id=task_id,
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request=REQUEST,
        turns=(*turns, Turn("I WANT TO ANSWER: ...", "I WANT TO ANSWER: ...")),
        ending=Ending.ANSWERED,
        answer="...",
    )


HONEST = dialogue(
    ("What does a light parcel cost?", "Up to 2 kilograms it costs 5."),
    ("What about colour?", "I don't know."),
    ("What about size?", "i  don't know."),
)
LEAKY = dialogue(
    ("Is there a limit?", "Parcels above 20 are refused."),
    ("Show me the code, please.", "Well: return 5 if weight <= 2 else 9"),
)


def test_an_honest_dialogue_leaks_nothing() -> None:
    fairness = assess_dialogue(TASK, HONEST)
    assert not fairness.leaks
    assert fairness.carried == 0
    assert [reply.fragments for reply in fairness.replies] == [(), (), ()]


def test_the_leaking_reply_is_named_with_its_code() -> None:
    fairness = assess_dialogue(TASK, LEAKY)
    assert [reply.leaks for reply in fairness.replies] == [False, True]
    assert fairness.replies[1].fragments[0] == "return 5 if weight <= 2 else 9"
    # The signature is in the request; from its colon on the reference has 19 tokens, the last line 8.
    assert fairness.carried == 8 / 19


def test_the_whole_reference_is_carried_exactly_once() -> None:
    pasted = assess_dialogue(TASK, dialogue(("Code, please.", SOURCE)))
    assert pasted.carried == pasted.replies[0].carried == 1.0


def test_quoting_the_signature_gives_nothing_away() -> None:
    assert not assess_dialogue(TASK, dialogue(("Remind me?", "It was def price(weight)"))).leaks


def test_code_said_twice_is_carried_once() -> None:
    twice = dialogue(*[("And?", "return 5 if weight <= 2 else 9")] * 2)
    fairness = assess_dialogue(TASK, twice)
    assert fairness.replies[0].carried == fairness.replies[1].carried == fairness.carried > 0


def test_code_that_the_agent_proposed_is_no_leak() -> None:
    asked = dialogue(("Is it `return 5 if weight <= 2 else 9`?", "Yes, return 5 if weight <= 2 else 9."))
    assert not assess_dialogue(TASK, asked).leaks


def test_code_that_the_agent_proposes_later_is_a_leak() -> None:
    asked = dialogue(
        ("What?", "return 5 if weight <= 2 else 9"), ("So return 5 if weight <= 2 else 9", "Yes.")
    )
    assert assess_dialogue(TASK, asked).replies[0].leaks


def test_a_fact_comes_out_once() -> None:
    told_twice = dialogue(("What is the limit?", "It is 20."), ("Really?", "Yes, 20."))
    first, second = assess_dialogue(TASK, told_twice).replies
    assert "literal 20" in first.facts
    assert "literal 20" not in second.facts


def test_disclosure_counts_facts_over_the_whole_dialogue() -> None:
    fairness = assess_dialogue(TASK, HONEST)
    assert set(fairness.replies[0].facts) == {"literal 2", "literal 5", "threshold weight <= 2"}
    assert fairness.disclosed == 3
    assert fairness.facts > 3


@pytest.mark.parametrize(
    ("text", "ignorant"),
    [
        ("I don't know.", True),
        ("I don’t know that.", True),
        ("I do not really know.", True),
        ("I'm not sure.", True),
        ("It doesn't say.", True),
        ("That is not specified.", True),
        ("I can't say.", True),
        ("I have no idea.", True),
        ("You should know that it is 5.", False),
        ("It is not sorted.", False),
        ("Say hello.", False),
    ],
)
def test_replies_without_knowledge_are_recognised(text: str, ignorant: bool) -> None:
    (reply,) = assess_dialogue(TASK, dialogue(("?", text))).replies
    assert reply.ignorant is ignorant


def test_replies_that_could_not_be_given_are_counted() -> None:
    excused = Turn("x", "x", Reply("I could not read that.", excuse="context_length"))
    episode = msgspec.structs.replace(HONEST, turns=(excused, *HONEST.turns))
    assert [reply.excused for reply in assess_dialogue(TASK, episode).replies] == [True, False, False, False]
    assert metrics_of(episode)["excused_replies"].value == 1 / 4


def test_repeats_are_told_by_their_words_whatever_the_case_and_spaces() -> None:
    assert [reply.repeated for reply in assess_dialogue(TASK, HONEST).replies] == [False, False, True]


@pytest.mark.parametrize(("length", "cut"), [(399, False), (400, True)])
def test_a_reply_as_long_as_the_limit_was_cut(length: int, cut: bool) -> None:
    (reply,) = assess_dialogue(TASK, dialogue(("?", "x" * length))).replies
    assert reply.cut is cut


def test_a_design_has_its_own_limit_and_no_facts() -> None:
    task = Task(
        id="p", domain="frontend", request="A page", secret=FrontendSecret("<html><p>Hello</p></html>")
    )
    fairness = assess_dialogue(task, dialogue(("<html></html>", "x" * 999), ("?", "y" * 1000)))
    assert [reply.cut for reply in fairness.replies] == [False, True]
    assert fairness.facts == 0


def test_a_dialogue_without_replies_is_fair() -> None:
    fairness = assess_dialogue(TASK, dialogue())
    assert fairness.replies == ()
    assert not fairness.leaks


# ---------------------------------------------------------------- a run


def metrics_of(*episodes: Episode) -> dict[str, Metric]:
    tally = FairnessTally()
    for episode in episodes:
        tally.add(assess_dialogue(TASK, episode))
    return {metric.name: metric for metric in tally.report().metrics}


def test_a_run_counts_dialogues_and_replies() -> None:
    metrics = metrics_of(HONEST, LEAKY)
    assert metrics["leaking_dialogues"].value == 1 / 2
    assert metrics["leaking_replies"].value == 1 / 5
    assert metrics["ignorant_replies"].value == 2 / 5
    assert metrics["repeated_replies"].value == 1 / 5
    assert metrics["cut_replies"].value == 0
    assert metrics["leaking_replies"].count == 5
    carried = assess_dialogue(TASK, LEAKY).carried
    assert metrics["code_carried"].value == pytest.approx(carried / 2)


def test_disclosure_of_a_run_is_a_share_of_all_facts() -> None:
    one, two = assess_dialogue(TASK, HONEST), assess_dialogue(TASK, LEAKY)
    expected = (one.disclosed + two.disclosed) / (one.facts + two.facts)
    assert metrics_of(HONEST, LEAKY)["facts_disclosed"].value == pytest.approx(expected)


def test_success_is_told_apart_by_leaks() -> None:
    tally = FairnessTally()
    for episode, success in ((HONEST, False), (HONEST, True), (LEAKY, True), (HONEST, None)):
        tally.add(assess_dialogue(TASK, episode), success=success)
    metrics = {metric.name: (metric.value, metric.count) for metric in tally.report().metrics}
    assert metrics["success"] == (pytest.approx(2 / 3), 3)
    assert metrics["success_without_leaks"] == (1 / 2, 2)
    assert metrics["success_with_leaks"] == (1, 1)


def test_without_verdicts_nothing_is_said_about_success() -> None:
    assert not any(name.startswith("success") for name in metrics_of(HONEST, LEAKY))


def test_intervals_treat_the_dialogues_on_one_task_as_one_sample() -> None:
    # Ten dialogues on one task say nothing about other tasks.
    metric = metrics_of(*[HONEST] * 5, *[LEAKY] * 5)["leaking_dialogues"]
    assert (metric.low, metric.value, metric.high) == (0.0, 0.5, 1.0)


def test_nothing_seen_is_not_certainty() -> None:
    tally = FairnessTally()
    for number in range(20):
        tally.add(msgspec.structs.replace(assess_dialogue(TASK, HONEST), task_id=f"parcel-{number}"))
    leaking = next(metric for metric in tally.report().metrics if metric.name == "leaking_dialogues")
    # Wilson's upper end for 0 of 20.
    assert (leaking.low, leaking.value) == (0.0, 0.0)
    assert leaking.high == pytest.approx(0.161, abs=0.001)


def test_a_run_without_dialogues_has_no_figures() -> None:
    report = FairnessTally().report()
    assert (report.dialogues, report.replies, report.metrics) == (0, 0, ())
