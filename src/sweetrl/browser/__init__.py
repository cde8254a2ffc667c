"""HTML that nobody trusts to a picture: offline, deterministic, in a pool of headless Chromium browsers."""

from sweetrl.errors import PageError, RenderError
from sweetrl.types import Box, Shot

__all__ = ["Box", "PageError", "RenderError", "Shot"]
