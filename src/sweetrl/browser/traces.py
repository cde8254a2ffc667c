"""Whether a page can leave anything behind in the document that showed it.

Replacing what a document contains costs a browser half of what a new document does. But a document keeps some
things that its content asked for: a policy or a default style (`meta http-equiv`), files loaded ahead
(`link rel=preload`). Only a page with nothing of the kind may be followed by another one in the same document.
"""

import re

# Elements that do more than stand in the page.
_ACTIVE = re.compile(
    r"<(?:meta|link|script|base|i?frame|frameset|object|embed|video|audio|portal|fencedframe|template|plaintext)"
    r"(?![a-z0-9-])[^<>]*>?"
)
# The two forms that nearly all pages have. No `&`: an entity could spell anything.
_HARMLESS = re.compile(
    r"""<meta\s+charset=["']?[\w-]+["']?\s*/?>
    |<meta\s+name=["']viewport["']\s+content=["'][\w=,.\s-]*["']\s*/?>
    |<link\s+(?:href=["'][^"'&]*["']\s+rel=["']?stylesheet["']?|rel=["']?stylesheet["']?\s+href=["'][^"'&]*["'])\s*/?>
    """,
    re.VERBOSE,
)


def leaves_no_trace(html: str) -> bool:
    """True only if it is certain; when in doubt, the next page gets a new document."""
    # Without null characters, which a browser ignores in some places.
    lowered = html.lower()
    return "\x00" not in lowered and all(
        _HARMLESS.fullmatch(element) is not None for element in _ACTIVE.findall(lowered)
    )
