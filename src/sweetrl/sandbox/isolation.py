"""What keeps untrusted code in on this machine, and what to do where nothing does."""

import functools
import shutil
import subprocess
from enum import StrEnum

from msgspec import Struct

from sweetrl.errors import UsageError
from sweetrl.sandbox.inside import confinement


class Isolation(StrEnum):
    """How files and network are kept from untrusted code. System calls are filtered in each."""

    LANDLOCK = "landlock"
    """Rules of the kernel that any process can put on itself."""
    BUBBLEWRAP = "bubblewrap"
    """Namespaces with nothing in them but the standard library, made by the program `bwrap`."""
    UNSAFE = "unsafe"
    """Nothing: for code you trust. Limits of time and memory still hold."""


class Offer(Struct, frozen=True):
    """What this machine has."""

    landlock: int
    """Version of the kernel's interface; 0 for none."""
    seccomp: bool
    bubblewrap: str | None
    """Path of a `bwrap` that works here."""

    @property
    def best(self) -> Isolation | None:
        """The isolation to use; None if there is none to be had."""
        if not self.seccomp:
            return None
        if self.landlock:
            return Isolation.LANDLOCK
        return Isolation.BUBBLEWRAP if self.bubblewrap else None


@functools.cache
def available_isolation() -> Offer:
    """Ask the kernel, once per process."""
    return Offer(
        landlock=confinement.landlock_version(),
        seccomp=confinement.seccomp_available(),
        bubblewrap=_working_bubblewrap(),
    )


def choose_isolation(wanted: Isolation | None = None) -> Isolation:
    """The isolation to use, or one line that says why there is none."""
    offer = available_isolation()
    if wanted is Isolation.UNSAFE:
        return wanted
    if not offer.seccomp:
        raise UsageError(
            "cannot isolate untrusted code: this kernel or processor has no seccomp filters for us; "
            "use Linux 4.14 or newer on x86_64 or aarch64, or --isolation unsafe for code you trust"
        )
    if wanted is Isolation.LANDLOCK and not offer.landlock:
        raise UsageError("Landlock is not offered by this kernel (Linux 5.13 or newer, lsm=landlock)")
    if wanted is Isolation.BUBBLEWRAP and not offer.bubblewrap:
        raise UsageError(
            "bubblewrap is not installed or may not make namespaces here: apt install bubblewrap"
        )
    chosen = wanted or offer.best
    if chosen is None:
        raise UsageError(
            "cannot isolate untrusted code: the kernel has no Landlock (Linux 5.13 or newer) and bubblewrap does "
            "not work; apt install bubblewrap, or use --isolation unsafe for code you trust"
        )
    return chosen


def _working_bubblewrap() -> str | None:
    path = shutil.which("bwrap")
    if path is None:
        return None
    probe = [path, "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if done.returncode == 0 else None
