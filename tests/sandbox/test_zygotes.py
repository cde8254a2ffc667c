"""The parent's reader of frames: whatever a process sends, it ends in time and believes nothing out of order."""

import functools
import os
import threading
import time
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sweetrl.sandbox import Limits
from sweetrl.sandbox.inside.runner import BROKEN, CONFINED, HEADER, LOADED, RAISED, UNUSABLE, VALUE
from sweetrl.sandbox.zygotes import Run, Watch

BUDGETS = [4096, 10, 5000]
LIMITS = Limits(call_seconds=0.02, total_seconds=1.0)


def frame(kind: bytes, index: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(kind, index, len(payload)) + payload


def collect(content: bytes, *, start: int = 0, stays_open: bool = False) -> Run:
    """What the parent makes of a process that sends `content` and then ends, or falls silent."""
    reading, writing = os.pipe()
    sender = threading.Thread(target=send, args=(writing, content, stays_open))
    sender.start()
    zygote: Any = SimpleNamespace(limits=LIMITS, ask_process=lambda: os.pidfd_open(ended_process()))
    try:
        return Watch(zygote, reading).collect(start, BUDGETS, time.monotonic() + LIMITS.total_seconds)
    finally:
        os.close(reading)
        sender.join()
        if stays_open:
            os.close(writing)


@functools.cache
def ended_process() -> int:
    """A process that does not wait for a CPU: it has ended, and nobody asks for its exit code."""
    process = os.fork()
    if process == 0:
        os._exit(0)
    return process


def send(descriptor: int, content: bytes, stays_open: bool) -> None:
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        pass  # the parent has heard enough
    finally:
        if not stays_open:
            os.close(descriptor)


frames = st.builds(
    frame,
    st.sampled_from([VALUE, RAISED, UNUSABLE, CONFINED, LOADED, BROKEN, b"?", b"\0"]),
    st.integers(0, 4),
    st.binary(max_size=20),
)
streams = st.one_of(st.binary(max_size=200), st.lists(frames, max_size=8).map(b"".join))


@given(streams, st.booleans(), st.integers(0, 3))
@example(HEADER.pack(VALUE, 0, 0xFFFFFFFF), False, 0)
@example(HEADER.pack(VALUE, 0, 4000) + b"x" * 100, True, 0)
@example(b"", True, 0)
@settings(max_examples=200)
def test_any_stream_ends_in_results_that_are_in_order_and_within_budget(
    content: bytes, stays_open: bool, start: int
) -> None:
    run = collect(content, start=start, stays_open=stays_open)
    assert start + len(run.frames) <= max(len(BUDGETS), start)
    for budget, (kind, payload) in zip(BUDGETS[start:], run.frames, strict=False):
        assert kind in (VALUE, RAISED, UNUSABLE)
        assert len(payload) <= max(budget, 2048)
        assert frame(kind, start + run.frames.index((kind, payload)), payload) in content


def test_an_orderly_stream_is_read_to_its_end() -> None:
    content = frame(CONFINED, 0) + frame(LOADED, 0) + b"".join(frame(VALUE, n, b"%d" % n) for n in range(3))
    run = collect(content + b"more that nobody asked for")
    assert [payload for _, payload in run.frames] == [b"0", b"1", b"2"]
    assert run.confined
    assert run.loaded
    assert not run.overran


def test_silence_is_an_overrun_and_an_end_is_not() -> None:
    begun = frame(CONFINED, 0) + frame(VALUE, 0, b"1")
    assert collect(begun, stays_open=True).overran
    assert not collect(begun).overran


def test_a_result_out_of_turn_ends_the_reading() -> None:
    run = collect(frame(CONFINED, 0) + frame(VALUE, 0, b"1") + frame(VALUE, 2, b"3") + frame(VALUE, 1, b"2"))
    assert run.frames == [(VALUE, b"1")]


def test_a_result_beyond_its_budget_ends_the_reading() -> None:
    run = collect(frame(CONFINED, 0) + frame(VALUE, 0, b"1") + frame(VALUE, 1, b"x" * 3000))
    assert run.frames == [(VALUE, b"1")]
    assert not run.overran


def test_a_complaint_counts_only_before_confinement() -> None:
    assert collect(frame(BROKEN, 0, b"no rights")).broken == "no rights"
    assert collect(frame(CONFINED, 0) + frame(BROKEN, 0, b"no rights")).broken == ""
