"""Which critic a name opens, and what is said about names that open none."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sweetrl import critics
from sweetrl.critics import load_critic, open_critic
from sweetrl.critics.critic_type import CriticTools, CriticType
from sweetrl.critics.scripted import ScriptedCritic
from sweetrl.errors import DataError, UsageError
from sweetrl.learning.critic_cards import CriticCard, write_critic_card
from sweetrl.prompts import Prompt


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("jugde:mini", "there is no kind of critic 'jugde'; did you mean judge:MODEL"),
        ("nowhere", "nowhere: there is no such folder of a critic; give one, or write"),
        ("judge:", "'judge:' lacks its second half; write judge:MODEL"),
        ("scripted:overlaps", "did you mean 'overlap'"),
        ("value:nowhere", "nowhere: there is no such folder; write value:DIR"),
        ("zero:openai:m@http://h/v1", "need the model itself; write zero:hf:PATH"),
    ],
)
def test_a_name_that_opens_nothing_is_explained(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_critic(spec)
    assert said in str(caught.value)


def test_every_kind_that_can_be_named_is_offered() -> None:
    with pytest.raises(UsageError) as caught:
        open_critic("nowhere")
    for name in ("judge:MODEL", "zero:hf:PATH", "value:DIR", "scripted:NAME", "length"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "name", "needs_reference"),
    [
        ("judge:mini", "judge", False),
        ("length", "length", False),
        ("scripted:overlap", "scripted", True),
        ("zero:mini", "zero", True),
        ("run/critic", "folder", True),
        ("hf:run/critic", "folder", True),
        ("judge", "folder", True),  # without a colon, it is a folder of that name
    ],
)
def test_a_kind_says_whether_it_needs_a_reference(spec: str, name: str, *, needs_reference: bool) -> None:
    kind = critics.type_of(spec)
    assert (kind.name, kind.needs_reference) == (name, needs_reference)


def test_what_a_critic_has_no_use_for_is_refused() -> None:
    with pytest.raises(UsageError, match="asks no language model; leave out --judge-prompt"):
        open_critic("length", CriticTools(judge_rounds=3))
    with pytest.raises(UsageError, match="leave out --critic-prompt"):
        open_critic("length", CriticTools(prompt=Prompt("x", source="x")))


def test_an_installed_package_adds_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(folder: Path, card: CriticCard, _: CriticTools) -> ScriptedCritic:
        return ScriptedCritic(lambda *_: card.beta, name=folder.name)

    theirs = CriticType(name="ours", cards=("ours",), load=load)
    announced = [SimpleNamespace(load=lambda: theirs)]
    monkeypatch.setattr(critics, "entry_points", lambda group: announced if group == critics.GROUP else [])
    found = critics.critic_types.__wrapped__()
    assert found["ours"] is theirs
    assert "length" in found


def test_a_trained_critic_of_a_kind_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    write_critic_card(tmp_path, CriticCard(kind="ours", max_tokens=10))
    with pytest.raises(DataError, match="a critic of the kind 'ours', which is not installed"):
        load_critic(tmp_path)
