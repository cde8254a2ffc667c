import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.dialogue.rules import ANSWER_MARKER, OUTPUT_MARKER
from sweetrl.errors import ConfigError
from sweetrl.prompts import Prompt, agent_prompt, collaborator_prompt, load, render, shipped
from sweetrl.types import Kind


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


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'agent-backed'; there are: agent-backend"):
        load("agent-backed")


def test_there_is_a_prompt_for_every_player_and_kind_and_no_other() -> None:
    wanted = [agent_prompt(kind, single_turn=single) for kind in Kind for single in (False, True)]
    wanted += [collaborator_prompt(kind) for kind in Kind]
    wanted.append(collaborator_prompt(Kind.FRONTEND, pictures=True))
    players = [name for name in shipped() if name.startswith(("agent-", "collaborator-"))]
    assert sorted(prompt.source for prompt in wanted) == players


@pytest.mark.parametrize("kind", Kind)
def test_agents_are_told_the_protocol_and_the_turn_limit_and_nothing_else(kind: Kind) -> None:
    prompt = agent_prompt(kind)
    assert prompt.fields == {"turn_limit"}
    assert ANSWER_MARKER in prompt.text
    assert OUTPUT_MARKER in prompt.text


@pytest.mark.parametrize("kind", Kind)
def test_single_turn_agents_are_not_told_to_ask(kind: Kind) -> None:
    prompt = agent_prompt(kind, single_turn=True)
    assert prompt.fields == frozenset()
    assert "cannot ask" in prompt.text


@pytest.mark.parametrize("kind", Kind)
def test_collaborators_are_given_the_reference_and_told_to_write_no_code(kind: Kind) -> None:
    prompt = collaborator_prompt(kind)
    assert {"problem_description", "hidden_information", "dialogue_history"} <= prompt.fields
    assert "don't know" in prompt.text
    assert "without code" in prompt.text


def test_a_shipped_prompt_is_rendered_by_name() -> None:
    text = render(
        "collaborator-backend",
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
