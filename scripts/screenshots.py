"""Pictures of a report for the documentation: the opening of RUN/report.html on a desktop, on a phone and in the dark.

    .venv/bin/python scripts/screenshots.py quickstart

writes `docs/pictures/report-desktop.png`, `report-phone.png` and `report-dark.png`. Needs the extra `browser`.
"""

import argparse
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright

from sweetrl.browser import find_browser

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
SHAPES: dict[str, tuple[int, int, Literal["light", "dark"]]] = {
    "desktop": (1200, 1150, "light"),
    "phone": (390, 844, "light"),
    "dark": (1200, 1150, "dark"),
}
"""Width and height in pixels, and the colour scheme."""
LARGEST = 200_000
"""Bytes of a picture that is kept in the repository."""


def main() -> None:
    """Take the pictures of the run that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of a run, with its report.html")
    parser.add_argument("-o", "--output", type=Path, default=PICTURES, help="the folder for the pictures")
    options = parser.parse_args()
    report = options.run / "report.html"
    if not report.is_file():
        sys.exit(f"{report}: no such file; `sweetrl quickstart -o {options.run}` makes one")
    take(report, options.output)


def take(report: Path, folder: Path) -> None:
    """Write a picture of each shape."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        for name, (width, height, scheme) in SHAPES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(report.resolve().as_uri())
            path = folder / f"report-{name}.png"
            page.screenshot(path=path)
            page.close()
            if path.stat().st_size > LARGEST:
                sys.exit(f"{path}: {path.stat().st_size:,} bytes, more than {LARGEST:,}")
        browser.close()


if __name__ == "__main__":
    main()
