"""Content hashes that records refer to each other by."""

import hashlib


def digest(text: str | None) -> str:
    """A short content hash: 16 hexadecimal digits; `-` where there is no text."""
    if text is None:
        return "-"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def picture_digest(png: bytes) -> str:
    """The content hash that a screenshot is stored and referred to by: 32 hexadecimal digits."""
    return hashlib.blake2b(png, digest_size=16).hexdigest()
