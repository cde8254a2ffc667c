"""Checks that a page leaves nothing behind in the document that showed it.

Replacing the content of a document costs a browser half as much as a new document. But a document keeps some
things that its content asked for: a policy or a default style (`meta http-equiv`), the set of styles that a title
chose (`style title`), files loaded ahead (`link rel=preload`), that something was focused. Only between two pages
with nothing of the kind may a document be used again: the first leaves nothing, and the second cannot notice.
"""

import re

# Elements with an effect beyond being displayed.
_ACTIVE = re.compile(
    r"<(?:meta|link|style|script|base|i?frame|frameset|object|embed|video|audio|portal|fencedframe|template|plaintext)"
    r"(?![a-z0-9-])[^<>]*>?"
)
# The forms that nearly all pages have. No `&`: an entity could spell anything.
_HARMLESS = re.compile(
    r"""<meta\s+charset=["']?[\w-]+["']?\s*/?>
    |<meta\s+name=["']viewport["']\s+content=["'][\w=,.\s-]*["']\s*/?>
    |<link\s+(?:href=["'][^"'&]*["']\s+rel=["']?stylesheet["']?|rel=["']?stylesheet["']?\s+href=["'][^"'&]*["'])\s*/?>
    |<style(?:\s+type=["']?text/css["']?)?\s*>
    """,
    re.VERBOSE,
)
# What happens once in a document, or late: after its picture was taken.
_LASTING = re.compile(r"autofocus|loading\s*=")


def leaves_no_trace(html: str) -> bool:
    """True only if it is certain; when in doubt, this page and the next get new documents."""
    # Without null characters, which a browser ignores in some places.
    lowered = html.lower()
    return (
        "\x00" not in lowered
        and _LASTING.search(lowered) is None
        and all(_HARMLESS.fullmatch(element) is not None for element in _ACTIVE.findall(lowered))
    )
