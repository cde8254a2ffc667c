"""The third-party files that pages need, from npm packages in a folder of this machine.

`scripts/install-web-assets` fills the `node_modules` of a checkout. Elsewhere `npm install` does the same:
SWEETRL_WEB_ASSETS names the folder that holds the packages.
"""

import functools
import json
import os
from collections.abc import Collection
from pathlib import Path

from sweetrl.browser.stylesheets import Stylesheet
from sweetrl.errors import RenderError

TAILWIND = "2.2.19"
PACKAGES = (
    f"tailwindcss@{TAILWIND}",
    "@tailwindcss/browser@4.3.3",
    "tailwindcss-cdn@3.4.10",
    "dejavu-fonts-ttf@2.37.3",
)
STYLESHEETS = frozenset(
    {"base", "components", "tailwind", "tailwind-dark", "tailwind-experimental", "utilities"}
)
PLUGINS = frozenset({"aspect-ratio", "container-queries", "forms", "typography"})

_CHECKOUT = Path(__file__).resolve().parents[3] / "node_modules"
_USER = Path("~/.local/share/sweetrl/node_modules")
INSTALLING = (
    f"run scripts/install-web-assets, or npm install --prefix {_USER.parent} {' '.join(PACKAGES)}, or set "
    f"SWEETRL_WEB_ASSETS"
)
_SYSTEM_FONTS = (Path("/usr/share/fonts/truetype/dejavu"), Path("/usr/share/fonts"))


class WebAssets:
    """Stylesheets, scripts and fonts by what they are for."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _default_folder()
        # One parse of three megabytes serves all pages.
        self.stylesheet = functools.cache(self._stylesheet)

    def _stylesheet(self, name: str) -> Stylesheet:
        return Stylesheet(self._read(f"tailwindcss/dist/{name}.min.css"))

    def play_script(self, major: int, plugins: Collection[str] = ()) -> str:
        """Tailwind as a script that finds the classes of a page and writes their rules: version 3 or 4."""
        if major == 4:
            return self._read("@tailwindcss/browser/dist/index.global.js")
        known = sorted(PLUGINS.intersection(plugins))
        variant = "" if not known else f"-with-{known[0]}" if len(known) == 1 else "-with-all-plugins"
        return self._read(f"tailwindcss-cdn/tailwindcss{variant}.js")

    def missing(self) -> list[str]:
        """The packages, with their versions, that are not in the folder."""
        return [package for package in PACKAGES if not self._has(*package.rsplit("@", 1))]

    def _has(self, name: str, version: str) -> bool:
        try:
            found = json.loads((self.folder / name / "package.json").read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(found, dict) and found.get("version") == version

    @property
    def fonts(self) -> Path:
        """The folder of the only fonts that pages see."""
        choices = (self.folder / "dejavu-fonts-ttf/ttf", *_SYSTEM_FONTS)
        return next((folder for folder in choices if folder.is_dir()), choices[-1])

    def _read(self, name: str) -> str:
        path = self.folder / name
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise RenderError(
                f"Tailwind CSS is not installed ({path}: {error.strerror}): {INSTALLING}"
            ) from error


def _default_folder() -> Path:
    if named := os.environ.get("SWEETRL_WEB_ASSETS"):
        return Path(named)
    return _CHECKOUT if _CHECKOUT.is_dir() else _USER.expanduser()
