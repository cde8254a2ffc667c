"""The documentation site is built from the pages as they are, and a link that leads nowhere fails it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import CHECKOUT
from sweetrl.browser import find_browser
from sweetrl.errors import UsageError

sys.path.insert(0, str(CHECKOUT / "scripts"))

import build_site
import draw_pictures


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, CHECKOUT / "scripts/build_site.py", folder / "html", folder / "work"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return folder / "html"


def html_pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_of_the_documentation_is_on_the_site(site: Path) -> None:
    names = {path.relative_to(site).with_suffix("").as_posix() for path in html_pages(site)}
    written = {
        path.relative_to(CHECKOUT / "docs").with_suffix("").as_posix()
        for path in (CHECKOUT / "docs").rglob("*.md")
    }
    assert written | {"index", "architecture", "changelog", "contributing", "security-policy"} <= names


def test_every_page_can_be_reached_from_the_navigation_of_the_first(site: Path) -> None:
    linked = set(re.findall(r'class="reference internal" href="([^"#]+)"', (site / "index.html").read_text()))
    expected = {path.relative_to(site).as_posix() for path in html_pages(site)}
    assert expected - linked - {"index.html", "genindex.html", "search.html"} == set()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loading = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    found = [found[0] for path in html_pages(site) for found in loading.finditer(path.read_text())]
    assert found == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", styles) == []


def test_search_finds_pages_without_a_server(site: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")
    try:
        program = find_browser()
    except UsageError as missing:
        pytest.skip(str(missing))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0)
        page = browser.new_page()
        page.goto((site / "search.html").as_uri() + "?q=endpoint")
        found = page.locator("#search-results li a", has_text="Evaluate your endpoint")
        found.wait_for(timeout=60_000)
        browser.close()


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[a](quickstart.md)", "[a](quickstart.md)"),
        ("[a](decisions/warm-workers.md#x)", "[a](decisions/warm-workers.md#x)"),
        ("[a](../ARCHITECTURE.md#layers)", "[a](architecture.md#layers)"),
        ("[a](../examples/sql_domain)", "[a](sql-domain.md)"),
        ("[a](../recipes/laptop.toml)", "a"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("[a](#here)", "[a](#here)"),
        ("[a](nowhere.md)", "[a](nowhere.md)"),
    ],
)
def test_links_are_made_to_fit_the_site(link: str, becomes: str) -> None:
    assert build_site.adapted(link, "docs/page.md", "page.md") == becomes


def test_links_of_a_page_from_elsewhere_are_made_to_fit_too() -> None:
    assert build_site.adapted("[a](docs/api.md)", "README.md", "index.md") == "[a](api.md)"
    assert build_site.adapted("[a](domains.md)", "docs/decisions/x.md", "decisions/x.md") == "[a](domains.md)"


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # between Sphinx and its own extensions
@pytest.mark.parametrize(
    ("link", "fails"),
    [
        ("[a](docs/quickstart.md#results)", False),
        ("[a](docs/quickstart.md#nowhere)", True),
        ("[a](docs/nowhere.md)", True),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str, *, fails: bool
) -> None:
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    (tmp_path / "docs/pictures").mkdir(parents=True)
    (tmp_path / "docs/decisions").mkdir()
    (tmp_path / "docs/decisions/one.md").write_text("# One\n")
    (tmp_path / "docs/site").symlink_to(CHECKOUT / "docs/site")
    (tmp_path / "docs/quickstart.md").write_text("# Quickstart\n\n## Results\n")
    (tmp_path / "README.md").write_text(f"# Title\n\n{link}\n")
    monkeypatch.setattr(build_site, "CHECKOUT", tmp_path)
    monkeypatch.setattr(build_site, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(build_site, "ELSEWHERE", {"README.md": "index.md"})
    assert bool(build_site.main(tmp_path / "html", tmp_path / "work")) is fails


def test_pages_that_the_navigation_forgot_are_among_the_guides() -> None:
    shown = build_site.navigation({"index", "quickstart", "new-page", "decisions/index", "decisions/one"})
    assert "Quickstart <quickstart>" in shown
    guides = shown.partition(":caption: Guides")[2].partition("```")[0]
    assert guides.split() == ["new-page"]
    assert "decisions/one" not in shown


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("path", draw_pictures.pictures(), ids=lambda path: path.name)
def test_a_picture_is_what_the_script_draws(path: Path) -> None:
    assert path.read_text() == draw_pictures.pictures()[path], "run: make docs"


def test_the_picture_of_the_layers_has_every_part_of_the_package() -> None:
    parts = {name for row in draw_pictures.layers() for name in row}
    package = CHECKOUT / "src/sweetrl"
    folders = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    assert folders <= parts


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_pictures_of_a_page_exist(page: str) -> None:
    found = re.findall(r'(?:srcset|src)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)', (CHECKOUT / page).read_text())
    assert found
    assert [name for pair in found for name in pair if name and not (CHECKOUT / name).exists()] == []
