"""Choosing an isolation, and refusing in one line where there is none."""

import pytest

from sweetrl.errors import UsageError
from sweetrl.sandbox import (
    Isolation,
    Offer,
    Program,
    Returned,
    Sandbox,
    available_isolation,
    choose_isolation,
    launch,
)

FULL = Offer(landlock=6, seccomp=True, bubblewrap="/usr/bin/bwrap")
NO_LANDLOCK = Offer(landlock=0, seccomp=True, bubblewrap="/usr/bin/bwrap")
NO_BUBBLEWRAP = Offer(landlock=6, seccomp=True, bubblewrap=None)
NEITHER = Offer(landlock=0, seccomp=True, bubblewrap=None)
NO_FILTERS = Offer(landlock=6, seccomp=False, bubblewrap="/usr/bin/bwrap")


def offer(monkeypatch: pytest.MonkeyPatch, what: Offer) -> None:
    monkeypatch.setattr("sweetrl.sandbox.isolation.available_isolation", lambda: what)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (FULL, Isolation.LANDLOCK),
        (NO_LANDLOCK, Isolation.BUBBLEWRAP),
        (NO_BUBBLEWRAP, Isolation.LANDLOCK),
        (NEITHER, None),
        (NO_FILTERS, None),
    ],
)
def test_the_best_on_offer_is_chosen(
    monkeypatch: pytest.MonkeyPatch, offered: Offer, chosen: Isolation | None
) -> None:
    offer(monkeypatch, offered)
    assert offered.best == chosen
    if chosen is not None:
        assert choose_isolation() == chosen


@pytest.mark.parametrize(
    ("offered", "wanted", "reason"),
    [
        (NEITHER, None, "bubblewrap does not work; apt install bubblewrap"),
        (NO_FILTERS, None, "no seccomp filters"),
        (NO_FILTERS, Isolation.LANDLOCK, "no seccomp filters"),
        (NO_LANDLOCK, Isolation.LANDLOCK, "Landlock is not offered"),
        (NO_BUBBLEWRAP, Isolation.BUBBLEWRAP, "apt install bubblewrap"),
    ],
)
def test_a_sandbox_without_isolation_is_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, offered: Offer, wanted: Isolation | None, reason: str
) -> None:
    offer(monkeypatch, offered)
    with pytest.raises(UsageError, match=reason) as refusal:
        Sandbox(isolation=wanted)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("offered", [FULL, NEITHER, NO_FILTERS])
def test_unsafe_is_had_by_asking_only(monkeypatch: pytest.MonkeyPatch, offered: Offer) -> None:
    offer(monkeypatch, offered)
    assert choose_isolation(Isolation.UNSAFE) is Isolation.UNSAFE
    assert offered.best is not Isolation.UNSAFE


def test_no_file_is_shared_twice_with_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's Python has its libraries in a folder that is shared whole; a link in it cannot be shared again."""
    folder = f"/usr/lib/{launch._MULTIARCH}"
    monkeypatch.setattr(launch, "_library_folder", lambda: folder)
    readable = launch.zygote_settings(Isolation.BUBBLEWRAP, ())["readable"]
    assert folder in readable
    assert [path for path in readable if path.startswith(f"{folder}/")] == []


@pytest.mark.parametrize("isolation", [Isolation.LANDLOCK, Isolation.BUBBLEWRAP])
def test_an_interpreter_that_was_moved_from_a_folder_that_cannot_be_read_starts(
    monkeypatch: pytest.MonkeyPatch, isolation: Isolation
) -> None:
    if isolation is Isolation.BUBBLEWRAP and available_isolation().bubblewrap is None:
        pytest.skip("bubblewrap does not work here")
    monkeypatch.setattr(launch, "_BUILT_FOLDER", "/dev/null")
    with Sandbox(isolation=isolation) as sandbox:
        assert sandbox.run(Program(sources=("x = 1",), calls=("x",))) == [Returned(b"1")]
