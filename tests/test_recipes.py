"""The page about recipes names every section, key and stage that there is."""

import re
from pathlib import Path

from msgspec.structs import fields

from sweetrl.experiments.pipeline import stage_names
from sweetrl.settings import Recipe, TrainSettings

PAGE = (Path(__file__).parent.parent / "docs/recipes.md").read_text()


def sections() -> dict[str, set[str]]:
    """The keys of each section, as the page lists them."""
    rows = re.findall(r"^\| (`\[.*?|\(top\)) \| (.*) \|$", PAGE, re.MULTILINE)
    return {
        name: set(re.findall(r"`(\w+)`", keys.replace("`sweet`, `kto`, `dpo`, `rft`, `none`", "")))
        for names, keys in rows
        for name in (re.findall(r"\w+", names))
    }


def test_every_section_is_described() -> None:
    plain = {field.name for field in fields(Recipe) if field.name in sections()["top"]}
    assert plain | sections().keys() - {"top"} == {field.name for field in fields(Recipe)}


def test_every_key_of_a_section_is_described() -> None:
    listed = sections()
    for field in fields(Recipe):
        section = getattr(field.type, "__struct_fields__", None)
        if section is not None and field.name != "estimate":
            assert set(section) == listed[field.name], field.name
    assert listed["critic"] <= set(TrainSettings.__struct_fields__)


def test_every_stage_is_described() -> None:
    assert {name for name in stage_names() if f"`{name}`" not in PAGE} == set()
