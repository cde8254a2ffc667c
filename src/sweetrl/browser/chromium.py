"""Finding and starting a Chromium that can reach nothing and draws the same everywhere."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from sweetrl.errors import RenderError, UsageError

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

ARGUMENTS = (
    # Nowhere to go, should a request ever pass the interception: every name, the proxy's too, is unknown, and
    # loopback addresses are not exempt from the proxy.
    "--proxy-server=http://proxy.invalid:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # The same pixels on every machine and at every speed.
    "--disable-gpu",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--disable-checker-imaging",
    "--disable-partial-raster",
    "--blink-settings=imageAnimationPolicy=2",
    "--mute-audio",
)

# Three families are all that pages get, and all that the usual names stand for.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <selectfont><rejectfont>
    <glob>*Condensed*</glob><glob>*ExtraLight*</glob><glob>*TeXGyre*</glob>
  </rejectfont></selectfont>
{aliases}
</fontconfig>
"""
_FAMILIES = {
    "DejaVu Sans": (
        "sans-serif",
        "system-ui",
        "ui-sans-serif",
        "Arial",
        "Helvetica",
        "Roboto",
        "Segoe UI",
        "Inter",
    ),
    "DejaVu Serif": ("serif", "ui-serif", "Georgia", "Times", "Times New Roman", "Cambria"),
    "DejaVu Sans Mono": (
        "monospace",
        "ui-monospace",
        "Courier",
        "Courier New",
        "Menlo",
        "Consolas",
        "Monaco",
    ),
}


def find_browser(named: str | Path | None = None) -> Path:
    """The Chromium to use: the one named here, else by SWEETRL_BROWSER, else the system's."""
    asked = named or os.environ.get("SWEETRL_BROWSER")
    for program in (str(asked),) if asked else PROGRAMS:
        if found := shutil.which(program):
            return Path(found)
    if asked:
        raise UsageError(f"no browser at {asked}: name the program of an installed Chromium")
    raise UsageError(
        "no Chromium found: install Debian's chromium-headless-shell (or chromium), or set SWEETRL_BROWSER to the "
        "path of one"
    )


def write_font_configuration(folder: Path, fonts: Path) -> Path:
    """A fontconfig file that knows the fonts in `fonts` alone."""
    aliases = "".join(
        f'  <alias binding="same"><family>{name}</family><prefer><family>{family}</family></prefer></alias>\n'
        for family, names in _FAMILIES.items()
        for name in names
    )
    path = folder / "fonts.conf"
    cache = folder / "font-cache"
    path.write_text(_FONTS.format(fonts=escape(str(fonts)), cache=escape(str(cache)), aliases=aliases))
    return path


async def launch(playwright: "Playwright", executable: Path, font_configuration: Path) -> "Browser":
    """A new browser process. It gets none of our environment but the path."""
    from playwright.async_api import Error

    try:
        return await playwright.chromium.launch(
            executable_path=executable,
            args=list(ARGUMENTS),
            # Chromium refuses its own sandbox to the superuser.
            chromium_sandbox=os.geteuid() != 0,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": str(font_configuration.parent),
                "FONTCONFIG_FILE": str(font_configuration),
                "LANG": "C.UTF-8",
                "TZ": "UTC",
            },
            handle_sigint=False,  # Ctrl-C in a terminal is ours to react to
            timeout=60_000,
        )
    except Error as error:
        reason = next((line for line in error.message.splitlines() if line.strip()), "no reason given")
        raise RenderError(f"{executable} does not start: {reason}") from error
