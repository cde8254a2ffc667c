"""Finding a browser."""

from pathlib import Path

import pytest

from sweetrl.browser import find_browser
from sweetrl.browser.chromium import write_font_configuration
from sweetrl.errors import UsageError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no programs but those put into this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SWEETRL_BROWSER", raising=False)
    return tmp_path


def install(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_headless_shell_is_preferred(programs: Path) -> None:
    install(programs / "chromium")
    shell = install(programs / "chromium-headless-shell")
    assert find_browser() == shell


def test_a_named_browser_wins_over_the_environment_and_that_over_the_system(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(programs / "chromium")
    mine, other = install(programs / "mine"), install(programs / "other")
    monkeypatch.setenv("SWEETRL_BROWSER", str(other))
    assert find_browser() == other
    assert find_browser(mine) == mine


def test_a_missing_browser_is_a_usage_error_that_says_what_to_install(programs: Path) -> None:
    with pytest.raises(UsageError, match="chromium-headless-shell"):
        find_browser()
    with pytest.raises(UsageError, match="no browser at /nowhere"):
        find_browser("/nowhere")


def test_the_font_configuration_names_the_folder_as_xml(tmp_path: Path) -> None:
    text = write_font_configuration(tmp_path, Path("/fonts & more")).read_text()
    assert "<dir>/fonts &amp; more</dir>" in text
