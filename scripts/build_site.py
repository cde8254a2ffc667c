"""Build the documentation site from docs/ and the pages at the top of the checkout: `make docs`.

Pages are plain Markdown that reads well on GitHub. They are gathered in a folder, their links made to fit, and given to
Sphinx, which fails on a link that leads nowhere. A link to a file of the checkout that is not on the site (a recipe, a
source) becomes its text.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DOCS = CHECKOUT / "docs"

ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "examples/sql_domain/README.md": "sql-domain.md",
}
"""Pages from outside docs/, and what they are called on the site."""

SECTIONS = {
    "Tutorials": {
        "quickstart": "Quickstart",
        "evaluate-your-endpoint": "Evaluate your endpoint",
        "credit-your-logs": "Credit for your chat logs",
        "your-own-domain": "Your own domain",
        "train-on-gpus": "Train on GPUs",
    },
    "Guides": {
        "dialogues": "Run dialogues",
        "credit": "Assign credit",
        "training": "Train",
        "recipes": "Recipes and studies",
        "more-machines": "More machines",
        "report": "Read a report",
        "viewer": "Browse dialogues",
        "frontend": "Frontend tasks",
        "integrations": "Other libraries",
        "reproducing": "Reproduce the study",
    },
    "Reference": {
        "commands": "Commands",
        "cli": "Command line",
        "api": "Python API",
        "data-formats": "Data formats",
        "evaluation": "Metrics and intervals",
        "domains": "Domains",
        "mini-backend": "mini-backend",
        "sql-domain": "Example: a SQL domain",
    },
    "Explanation": {
        "concepts": "Concepts",
        "fairness": "Fair collaborators",
        "security": "Untrusted code",
        "rendering": "Untrusted pages",
        "differences": "Differences from the paper",
        "results": "Results",
        "experiments": "Experiments",
        "performance": "Speed",
        "decisions/index": "Decisions",
    },
    "Project": {
        "architecture": "Architecture",
        "contributing": "Contributing",
        "changelog": "Changelog",
        "security-policy": "Security policy",
        "releasing": "Releasing",
    },
}
"""The navigation. Pages that do not exist are left out; those that are named nowhere go to the guides."""

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
DARK = "(prefers-color-scheme: dark)"


def gather(target: Path) -> None:
    """Put all pages, as Sphinx is to read them, into a new folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS / "site", target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(DOCS.rglob("*")):
        name = path.relative_to(DOCS).as_posix()
        if path.suffix in {".svg", ".png"} and not name.startswith("site/"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / name)
        elif path.suffix == ".md":
            _write(target / name, adapted(path.read_text(), f"docs/{name}", name))
    for source, name in ELSEWHERE.items():
        _write(target / name, adapted((CHECKOUT / source).read_text(), source, name))
    shutil.copytree(DOCS / "pictures", target / "static/pictures")
    _write(target / "decisions/index.md", _list_of_decisions())
    pages = {path.relative_to(target).as_posix().removesuffix(".md") for path in target.rglob("*.md")}
    with (target / "index.md").open("a") as index:
        index.write(navigation(pages))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def adapted(page: str, source: str, name: str) -> str:
    """The text of the page at `source` in the checkout, as the page `name` of the site."""
    page = PICTURE.sub(_picture, page)
    return LINK.sub(lambda link: _link(link, source, name), page)


def navigation(pages: set[str]) -> str:
    """The tables of contents, hidden on the page itself."""
    named = {name for section in SECTIONS.values() for name in section}
    forgotten = {name for name in pages - named - {"index"} if not name.startswith("decisions/")}
    # A page without a title of its own here is called what its heading says.
    sections = SECTIONS | {"Guides": SECTIONS["Guides"] | dict.fromkeys(sorted(forgotten), "")}
    return "".join(
        _table_of_contents(caption, {name: title for name, title in section.items() if name in pages})
        for caption, section in sections.items()
    )


def _table_of_contents(caption: str, section: dict[str, str]) -> str:
    entries = [f"{title} <{name}>" if title else name for name, title in section.items()]
    return "\n```{toctree}\n" + "\n".join([":hidden:", f":caption: {caption}", "", *entries]) + "\n```\n"


def _list_of_decisions() -> str:
    names = sorted(path.stem for path in (DOCS / "decisions").glob("*.md"))
    return (
        "# Decisions\n\nWhy things are as they are, one page each.\n\n```{toctree}\n"
        + "\n".join(names)
        + "\n```\n"
    )


def _picture(found: re.Match[str]) -> str:
    """One picture for each colour scheme: on the site the reader chooses, not the system."""
    lines = found[0].replace('"docs/pictures/', '"_static/pictures/').splitlines()
    plain = [line for line in lines if DARK not in line]
    dark = [re.sub(r"-light\.svg", "-dark.svg", line) for line in plain]
    return "\n\n".join(
        "\n".join(shown).replace("<picture>", f'<picture class="only-{scheme}">')
        for scheme, shown in (("light", plain), ("dark", dark))
    )


def _link(link: re.Match[str], source: str, name: str) -> str:
    """A link of the page at `source` in the checkout, which is called `name` on the site."""
    target, mark, anchor = link["target"].partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    found = _on_site(path)
    if found is not None:
        there = posixpath.relpath(found, posixpath.dirname(name) or ".")
        return f"{link['image']}[{link['text']}]({there}{mark}{anchor})"
    return link["text"] if (CHECKOUT / path).exists() else link[0]


def _on_site(path: str) -> str | None:
    """Where a path of the checkout is on the site; folders are their README, if they have one."""
    if path == "docs/decisions":
        return "decisions/index.md"
    for each in (path, f"{path}/README.md"):
        if each in ELSEWHERE:
            return ELSEWHERE[each]
    inside = path.removeprefix("docs/")
    return inside if inside != path and (CHECKOUT / path).is_file() else None


def main(output: Path, work: Path) -> int:
    """Build the whole site anew; 0 if there is nothing to complain about."""
    from sphinx.cmd.build import main as sphinx

    gather(work / "pages")
    shutil.rmtree(output, ignore_errors=True)
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--fresh-env"]
    return sphinx([*options, "-d", str(work / "doctrees"), str(work / "pages"), str(output)])


if __name__ == "__main__":
    asked = [Path(word) for word in sys.argv[1:]]
    sys.exit(main(*asked) if len(asked) == 2 else main(CHECKOUT / "site", CHECKOUT / "build/docs"))
