from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sweetrl
from sweetrl.dialogue.rules import ANSWER_MARKER, OUTPUT_MARKER
from sweetrl.domains.domain import Domain
from sweetrl.domains.registry import BUILT_IN, find_domain
from sweetrl.errors import ConfigError
from sweetrl.prompts import Prompt, load

PACKAGE = Path(sweetrl.__file__).parent
NAMES = sorted(BUILT_IN)
DOMAINS = [find_domain(name) for name in NAMES]


def test_a_field_is_filled_with_its_text() -> None:
    assert Prompt("Say {word}, then {word}.", source="p").render(word="yes") == "Say yes, then yes."


def test_other_braces_are_literal_and_doubled_ones_become_single() -> None:
    prompt = Prompt("{ 'a': 1 } {{kept}} {0} {}", source="p")
    assert prompt.fields == frozenset()
    assert prompt.render() == "{ 'a': 1 } {kept} {0} {}"


def test_a_field_without_a_value_is_an_error_that_suggests_the_nearest_name() -> None:
    prompt = Prompt("{dialog_history}", source="mine.txt")
    with pytest.raises(
        ConfigError, match=r"mine.txt: nothing fills .*dialog_history.*did you mean .dialogue_"
    ):
        prompt.render(dialogue_history="x")


def test_a_value_without_a_field_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"no field \{reference\}"):
        Prompt("Hello", source="p").render(reference="secret")


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"mine.txt: the prompt is empty"):
        Prompt(" \n", source="mine.txt")


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"sweetrl.prompts has no prompt 'judge-pears'"):
        load("judge-pears")


def test_every_text_of_a_domain_is_a_prompt_of_it() -> None:
    folders = {path.parent.parent.name: path.parent for path in PACKAGE.glob("domains/*/prompts/*.txt")}
    for domain in DOMAINS:
        used = {prompt.source for prompt in domain.prompts}
        if domain.pictures is not None:
            used |= {domain.pictures.collaborator_prompt.source, domain.pictures.privileged_prompt.source}
        if domain.writer is not None:
            used.add(domain.writer.prompt.source)
        assert used == {path.stem for path in folders[domain.name].iterdir()}


@pytest.mark.parametrize("domain", DOMAINS, ids=NAMES)
def test_agents_are_told_the_protocol_and_the_turn_limit_and_nothing_else(domain: Domain) -> None:
    prompt = domain.prompts.agent
    assert prompt.fields == {"turn_limit"}
    assert ANSWER_MARKER in prompt.text
    assert OUTPUT_MARKER in prompt.text


@pytest.mark.parametrize("domain", DOMAINS, ids=NAMES)
def test_single_turn_agents_are_not_told_to_ask(domain: Domain) -> None:
    prompt = domain.prompts.single_turn
    assert prompt.fields == frozenset()
    assert "cannot ask" in prompt.text


@pytest.mark.parametrize("domain", DOMAINS, ids=NAMES)
def test_collaborators_are_given_the_reference_and_told_to_write_no_code(domain: Domain) -> None:
    prompt = domain.prompts.collaborator
    assert {"problem_description", "hidden_information", "dialogue_history"} <= prompt.fields
    assert "don't know" in prompt.text
    assert "without code" in prompt.text


def test_a_shipped_prompt_is_rendered_by_name() -> None:
    text = load("collaborator-backend", "sweetrl.domains.backend").render(
        problem_description="REQUEST",
        hidden_information="def f(): return {'a': {1}}",
        dialogue_history="Programmer: hello",
    )
    assert "REQUEST" in text
    assert "return {'a': {1}}" in text
    assert "Programmer: hello" in text
    assert "{dialogue_history}" not in text


@given(st.text(), st.text())
def test_values_are_put_in_as_they_are_whatever_they_hold(first: str, second: str) -> None:
    rendered = Prompt("<{a}|{b}>", source="p").render(a=first, b=second)
    assert rendered == f"<{first}|{second}>"
