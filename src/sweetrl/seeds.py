"""Seeds derived from names: a random choice is fixed by what it is for, not by when it happens."""

import hashlib

SEEDS = 1 << 31
"""How many seeds there are."""


def derive_seed(*parts: object) -> int:
    """A stable 31-bit seed for the thing that `parts` name.

    `derive_seed(run_seed, task_id, attempt, turn)` gives the same number on every machine and under every
    scheduling. 31 bits, because some endpoints refuse more.
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") >> 1
