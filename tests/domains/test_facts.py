import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains.facts import facts_of, sentences, told

REQUEST = (
    "Write a function that prices a parcel in euros. The signature is: def price(weight, region='north')"
)
SOURCE = '''def price(weight, region="north"):
    """Never under 3 euros."""
    if weight > 20:
        raise ValueError("too heavy")
    surcharge_rate = 0.05
    if region == "far south" and weight < 1500:
        return 7 * (1 + surcharge_rate)
    return 7
'''


def found(kind: str) -> set[str]:
    return {fact.text for fact in facts_of(SOURCE, REQUEST) if fact.kind == kind}


def told_by(reply: str, question: str = "") -> set[str]:
    return {fact.text for fact in told(facts_of(SOURCE, REQUEST), sentences(reply, question))}


def test_facts_are_literals_thresholds_names_and_branches() -> None:
    assert found("literal") == {"20", "'too heavy'", "0.05", "'far south'", "1500", "7"}
    assert found("threshold") == {"weight > 20", "weight < 1500"}
    assert found("name") == {"surcharge_rate"}
    assert found("branch") == {"weight > 20", "region == 'far south' and weight < 1500"}


def test_docstrings_and_what_the_request_tells_are_no_facts() -> None:
    texts = {fact.text for fact in facts_of(SOURCE, REQUEST)}
    assert "3" not in texts
    assert "'north'" not in texts
    assert "'north'" in {fact.text for fact in facts_of(SOURCE, "Price a parcel.")}


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ("It costs 7 euros.", {"7"}),
        ("It costs seven euros.", {"7"}),
        ("There are 5% on top.", {"0.05"}),
        ("There are 5 percent on top.", {"0.05"}),
        ("Up to 1,500 of them.", {"1500", "weight < 1500"}),
        ("Over 20 it is refused.", {"20", "weight > 20"}),
        ("Under 20 nothing happens.", {"20"}),
        ("It says that it is Too Heavy then.", {"'too heavy'"}),
        ("It is too much. Heavy, I mean.", set()),
        ("The surcharge rate is small.", set()),
        ("It is in surcharge_rate.", {"surcharge_rate"}),
        ("I don't know.", set()),
    ],
)
def test_a_reply_tells_what_can_be_read_from_one_of_its_sentences(reply: str, facts: set[str]) -> None:
    assert told_by(reply) == facts


def test_a_branch_is_told_by_a_sentence_with_all_its_words_and_numbers() -> None:
    branch = "region == 'far south' and weight < 1500"
    assert branch in told_by("In the region far south the weight must be below 1500.")
    assert branch not in told_by("In the region far south, yes. The weight must be below 1500.")


def test_a_reply_that_affirms_tells_what_was_asked() -> None:
    assert told_by("Yes.", "Does it cost 7?") == {"7"}
    assert told_by("That’s right!", "Does it cost 7?") == {"7"}
    assert told_by("No.", "Does it cost 7?") == set()
    assert told_by("Yesterday, maybe.", "Does it cost 7?") == set()


def test_everyday_words_are_told_only_where_they_are_quoted() -> None:
    facts = facts_of("def f(x):\n    return 'no' if x else 'a'", "Decide.")
    assert told(facts, sentences("It is a no from me.", "")) == []
    assert {fact.text for fact in told(facts, sentences('It returns "no".', ""))} == {"'no'"}


def test_a_reversed_comparison_faces_the_other_way() -> None:
    facts = [fact for fact in facts_of("def f(x):\n    return 5 < x", "Decide.") if fact.kind == "threshold"]
    assert told(facts, sentences("It must be more than 5.", ""))
    assert not told(facts, sentences("It must be less than 5.", ""))


def test_a_source_that_does_not_parse_has_no_facts() -> None:
    assert facts_of("<html></html>", "A page") == ()


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_breaks_the_reading_of_facts(reply: str, question: str) -> None:
    assert set(told(facts_of(SOURCE, REQUEST), sentences(reply, question))) <= set(facts_of(SOURCE, REQUEST))


@pytest.mark.parametrize("literal", ["10 ** 400", "1" * 400, "1e400", "3j", "b'x'", "...", "-5"])
def test_odd_literals_are_no_trouble(literal: str) -> None:
    assert all(fact.kind for fact in facts_of(f"def f(x):\n    return x < {literal}", "Decide."))
