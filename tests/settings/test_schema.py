"""Settings classes that describe themselves: fields of nested sections, values by option, run cards."""

from typing import Annotated

import msgspec
import pytest
from msgspec import NODEFAULT

from sweetrl.prompts import TURN_LIMIT
from sweetrl.settings import DialogueSettings, PlaySettings, SamplingSettings, recorded, settings_fields
from sweetrl.settings.schema import PREFIXED, NotNegative, Positive, Record, Section, Setting, build
from sweetrl.settings.words import STAGES


class Side(Section, frozen=True, kw_only=True):
    model: Annotated[str, Setting("Who it is.", option="")]
    heat: Annotated[NotNegative, Setting("How wild.")] = 1.0


class Whole(Section, frozen=True, kw_only=True):
    left: Annotated[Side, PREFIXED]
    right: Annotated[Side | None, PREFIXED] = None
    count: Annotated[Positive | None, Setting("How many.", Record.UNLESS_DEFAULT, card="number")] = None
    speed: Annotated[int, Setting("How fast.", Record.NOTHING)] = 3
    unlisted: int = 5


def test_fields_of_nested_sections_are_options_with_the_name_of_the_section_in_front() -> None:
    options = [field.option for field in settings_fields(Whole)]
    assert options == ["--left", "--left-heat", "--right", "--right-heat", "--count", "--speed"]


def test_types_and_bounds_are_told_apart() -> None:
    count = {field.name: field for field in settings_fields(Whole)}["count"]
    assert (count.type, count.low, count.high, count.default) == (int | None, 1, None, None)


def test_what_an_optional_section_must_have_is_optional_itself() -> None:
    found = {field.name: field for field in settings_fields(Whole)}
    assert found["left"].default is NODEFAULT
    assert (found["right"].default, found["right"].type) == (None, str | None)


def test_settings_are_built_from_values_by_option() -> None:
    built = build(Whole, {"left": "a", "right": "b", "right_heat": 0.5, "count": 2, "json": True})
    assert built == Whole(left=Side(model="a"), right=Side(model="b", heat=0.5), count=2)


def test_an_optional_section_without_what_it_must_have_is_not_there() -> None:
    assert build(Whole, {"left": "a", "right": None, "right_heat": 0.5}).right is None


def test_a_card_keeps_what_changes_results_under_its_old_name_and_omits_late_defaults() -> None:
    settings = Whole(left=Side(model="a"), speed=9)
    assert recorded(settings) == {"left": "a", "left_heat": 1.0, "right": None, "right_heat": None}
    assert recorded(msgspec.structs.replace(settings, count=2))["number"] == 2


@pytest.mark.parametrize("command", STAGES)
def test_every_field_of_a_stage_is_a_setting_with_a_sentence(command: str) -> None:
    for section in STAGES[command]:
        for field in settings_fields(section):
            assert field.setting.help.endswith("."), field
            if field.default is None and field.name != "collaborator":
                assert field.setting.default, f"{field.option} does not say what happens without it"


def test_the_turn_limit_of_all_stages_is_the_papers() -> None:
    assert PlaySettings().turn_limit == TURN_LIMIT
    for section in (DialogueSettings, SamplingSettings):
        [limit] = [field for field in settings_fields(section) if field.name == "turn_limit"]
        assert limit.default == TURN_LIMIT
