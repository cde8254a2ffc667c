"""Help: panels, an example and every default of each command; and options by their old names."""

import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from sweetrl.cli.commands import PANELS, app
from sweetrl.settings.words import current_words

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
help_pages = runpy.run_path(str(SCRIPTS / "cli_reference.py"))["help_pages"]


def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(command, TyperGroup):
        for name, each in command.commands.items():
            yield from leaves(each, f"{path} {name}")
    else:
        yield path, command


COMMANDS = dict(leaves(typer.main.get_command(app), "sweetrl"))


def test_the_help_lists_every_command_in_its_panel() -> None:
    page = help_pages()["sweetrl"]
    for heading, panel in PANELS.items():
        listed = page.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in listed.splitlines()] == list(panel)


@pytest.mark.parametrize(("name", "sentence"), [each for panel in PANELS.values() for each in panel.items()])
def test_the_sentence_of_a_panel_is_the_first_of_the_commands_own_help(name: str, sentence: str) -> None:
    assert help_pages()[f"sweetrl {name}"].splitlines()[2].strip() == sentence


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_an_example_that_it_would_take(path: str) -> None:
    _, _, example = help_pages()[path].partition("\nExample:\n")
    words = shlex.split(example.replace("\\\n", " "))
    assert words[: len(path.split())] == path.split()
    COMMANDS[path].make_context(path, words[len(path.split()) :])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_that_may_be_left_out_shows_its_default(path: str) -> None:
    command = COMMANDS[path]
    context = typer.Context(command, info_name=path)
    optional = [each for each in command.params if isinstance(each, TyperOption) and not each.required]
    valued = [each for each in optional if not each.is_flag and not each.hidden]
    assert [each.name for each in valued if "default: " not in each.get_help_record(context)[1]] == []
    # A flag without an opposite is off unless it is given.
    switched_on = [
        each.name for each in optional if each.is_flag and each.default and not each.secondary_opts
    ]
    assert switched_on == []


def test_an_old_option_works_and_says_its_new_name_once(sweetrl) -> None:
    finished = sweetrl("turn-pairs", "--ranked", "r", "--episodes", "e", "--spreads", "x", "-o", "o")
    assert finished.code == 2
    notice, error = finished.err.splitlines()
    assert notice == "--spreads is called --min-gap-std now; the old name will go"
    assert "--min-gap-std" in error


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("turn-pairs", "--spreads", "--min-gap-std"),
        ("candidates", "--kind", "--domain"),
        ("train rft", "--kind", "--domain"),
        ("train rft", "--floor", "--min-lr-ratio"),
        ("train dpo", "--nll", "--nll-weight"),
        ("train dpo", "--imitation", "--sft-weight"),
        ("train policy", "--kind", "--domain"),
        ("train policy", "--imitation", "--sft-weight"),
        ("train critic", "--blind", "--no-reference"),
        ("train critic", "--kind", "--kind"),  # what the critic is made of, as before
    ],
)
def test_an_option_of_the_first_edition_is_taken_by_its_command(path: str, old: str, new: str) -> None:
    known = {name for option in COMMANDS[f"sweetrl {path}"].params for name in option.opts}
    assert new in known
    assert current_words([old, "1", f"{old}=1"], known, lambda _: None) == [new, "1", f"{new}=1"]


def test_an_old_option_is_not_in_the_help() -> None:
    assert "--spreads" not in help_pages()["sweetrl turn-pairs"]
