"""What a release must agree on: version, changelog, packages, the files that people look for."""

import re
import tomllib
from pathlib import Path

import pytest

from conftest import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]


def test_citation_and_package_have_one_version() -> None:
    [cited] = re.findall(r"^version: (\S+)$", (CHECKOUT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == PROJECT["version"]


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    headings = re.findall(r"^## (\S+?),? ", (CHECKOUT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == PROJECT["version"]


def test_every_extra_that_the_makefile_installs_exists() -> None:
    installed = re.findall(r"'\.\[([\w,-]+)\]'", (CHECKOUT / "Makefile").read_text())
    names = {name for extras in installed for name in extras.split(",")}
    assert names <= PROJECT["optional-dependencies"].keys()


def test_every_extra_that_the_documents_name_exists() -> None:
    pages = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")]
    named = {
        name
        for page in pages
        for extras in re.findall(r"(?:sweetrl|'\.)\[([a-z,-]+)\]", page.read_text())
        for name in extras.split(",")
    }
    assert {"serve", "train"} <= named <= PROJECT["optional-dependencies"].keys()


OWN_ENVIRONMENT = {"inspect", "openenv", "ray", "verifiers"}
"""Extras that are installed apart from the others (`make test-integrations`), or not at all yet."""


def test_every_direct_dependency_is_pinned() -> None:
    pins = {
        re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        for line in (CHECKOUT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    extras = PROJECT["optional-dependencies"]
    asked = [
        *PROJECT["dependencies"],
        *(each for name, extra in extras.items() if name not in OWN_ENVIRONMENT for each in extra),
    ]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", each)[0]).lower() for each in asked}  # type: ignore[index]
    assert names - {"sweetrl"} - pins == set()


def test_the_checklist_names_the_script_that_checks_a_package() -> None:
    script = CHECKOUT / "scripts/check_release"
    assert script.stat().st_mode & 0o111
    for page in ("CONTRIBUTING.md", "docs/releasing.md"):
        assert "scripts/check_release" in (CHECKOUT / page).read_text()


@pytest.mark.parametrize(
    "path", sorted((CHECKOUT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_an_issue_template_is_a_form_with_distinct_questions(path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="comes with the extra `docs`")
    form = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        assert form.keys() == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= form.keys()
    questions = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(questions) == len(set(questions)) >= 2
