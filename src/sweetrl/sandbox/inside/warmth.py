"""What the zygote does before its first fork, so that forks do less."""

import ctypes

from . import confinement, runner

_SAMPLE = """
class Box:
    def __init__(self, value):
        self.value = value
    def get(self):
        return self.value

def total(items, start=0):
    for position, item in enumerate(items):
        if isinstance(item, (int, float)) and item % 2 == 0:
            start += item * 2
        elif item is None:
            continue
        else:
            start -= position
    return start

def f(x, y='b'):
    counts = {}
    for word in 'a b c a'.split():
        counts[word] = counts.get(word, 0) + 1
    names = [word.upper().strip() for word in counts if word.startswith('a')]
    try:
        names.append(counts['q'])
    except KeyError:
        names.append(', '.join(names).replace('A', 'b'))
    while x > 3:
        x -= 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    numbers = (round(x / 3, 2), total([1, 2, None]), max(1, x), min(x, 2), sum([1, 2]), abs(-x), int('7'), float(x))
    return {'a': [x, 1.5, True, None, 't\\u00e9xt'], 'b': numbers, 'c': names, 'd': f'{x:.2f}{y}', 'e': Box(3).get(),
            'g': ordered, 'h': list(range(3)), 'i': {1, 2}, 'j': len(names) > 1 and not x}
"""
_CALLS = ("f(1)", "f(5, y='c')", "f(2.5)", "f('a')", "f(10)['b']", "f(2)['a'][0]")

_SMALL_BYTES = 512
"""Up to this size CPython has a memory of its own, in pools for objects of one size; beyond, it takes libc's."""
_POOL_BYTES, _POOL_HEADER = 1 << 14, 48
_LARGE_BYTES = 1 << 15
_MOST_FILLINGS = 1 << 16
_fillings: list[object] = []


def run_sample_jobs() -> None:
    """Run jobs here, so that what Python sets up on first use is there before every fork."""
    calls = [compile(call, "<call>", "eval") for call in _CALLS]
    job = {
        "sources": [_SAMPLE],
        "defines": "f",
        "calls": calls,
        "budgets": [4096] * len(calls),
        "values": (),
        "scope": "module",
        "seed": 0,
        "start": 0,
    }
    runner.run_source(job, runner.Results(1, at_once=False))


def fill_gaps() -> None:
    """Fill the gaps that objects left in memory when they were thrown away.

    New objects of a fork would go there, scattered over pages each of which would be copied. With the gaps filled
    they share new pages. How memory is laid out is guessed; a wrong guess costs some time or memory, no more.
    """
    _fill_large()
    for size in range(16, _SMALL_BYTES + 1, 16):
        _fill_small(size)


def _fill_large() -> None:
    sbrk = confinement.libc.sbrk
    sbrk.restype, sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    end = sbrk(0)  # of the memory that libc has had so far; beyond it there are no gaps
    size = _LARGE_BYTES
    while size > _SMALL_BYTES:
        while len(_fillings) < _MOST_FILLINGS and _fill(size) < end:
            pass
        _fillings.pop()  # the first one that lies in no gap
        size -= size // 16


def _fill_small(size: int) -> None:
    last = in_a_row = 0
    while len(_fillings) < _MOST_FILLINGS:
        at = _fill(size)
        in_a_row = in_a_row + 1 if at - last == size else 0
        last = at
        if in_a_row == 2 and at % _POOL_BYTES == _POOL_HEADER + 2 * size:
            return  # the third place of a new pool


def _fill(size: int) -> int:
    """Make an object of so many bytes that the garbage collector does not keep track of; its address."""
    filling: object = object() if size == 16 else 0.5 + len(_fillings) if size == 32 else bytes(size - 33)
    _fillings.append(filling)
    return id(filling)
