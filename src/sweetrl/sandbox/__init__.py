"""Run untrusted Python: isolated, limited, and unable to lie about anything but its own results.

    with Sandbox(workers=2) as sandbox:
        results = sandbox.run(Program(sources=("def f(x): return x + 1",), calls=("f(1)", "f('a')")))
    # [Returned(encoded=b"2"), Raised(error='TypeError: can only concatenate str ...')]

`docs/security.md` says what each layer keeps out and what is not covered.
"""

from sweetrl.sandbox.isolation import Isolation, Offer, available_isolation, choose_isolation
from sweetrl.sandbox.pool import (
    NOT_RUN,
    Program,
    Raised,
    Result,
    Returned,
    Sandbox,
    TimedOut,
    Unusable,
    keep_warm,
)
from sweetrl.sandbox.values import BadValue, decode, same
from sweetrl.sandbox.zygotes import Limits

__all__ = [
    "NOT_RUN",
    "BadValue",
    "Isolation",
    "Limits",
    "Offer",
    "Program",
    "Raised",
    "Result",
    "Returned",
    "Sandbox",
    "TimedOut",
    "Unusable",
    "available_isolation",
    "choose_isolation",
    "decode",
    "keep_warm",
    "same",
]
