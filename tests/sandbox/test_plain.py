"""Code that is judged plain can harm neither the process that it shares nor those who use it next."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sweetrl.sandbox
from sweetrl.sandbox import Limits, Program, Returned, Sandbox

HOME = Path(str(sweetrl.sandbox.__file__)).parent

ORDINARY = {
    "a function": "def solve(x):\n    return x + 1\n",
    "helpers, loops and comprehensions": (
        "def helper(items):\n    return {each: [n for n in range(each)] for each in items if each}\n"
        "def solve(x):\n    total = 0\n    for key, values in helper([1, 2, x]).items():\n"
        "        total += key * sum(values)\n    return total\n"
    ),
    "a closure and a generator": (
        "def solve(x):\n    def squares():\n        for n in range(x):\n            yield n * n\n"
        "    return list(squares()) + [n for n in (m + x for m in range(2))]\n"
    ),
    "annotations": (
        "from typing import Dict, List, Optional\n"
        "def solve(x: int) -> Optional[Dict[str, List[int]]]:\n    return {'a': [x]}\n"
    ),
    "dates, patterns and chance": (
        "import re, random, json\nfrom datetime import datetime, timedelta\nfrom collections import Counter\n"
        "def solve(x):\n    day = datetime.strptime('2024-02-28', '%Y-%m-%d') + timedelta(days=x)\n"
        "    return [day.strftime('%d'), re.sub('a', 'b', 'aa'), random.randint(1, 9), json.dumps({'x': x}),\n"
        "            Counter('abca').most_common(1)]\n"
    ),
    "an error that is handled": (
        "def solve(x):\n    try:\n        return int('no')\n    except ValueError:\n        return x\n"
    ),
}
NOT_PLAIN = {
    "a class": "class A:\n    pass\ndef solve(x):\n    return 1\n",
    "a stored attribute": "import math\ndef solve(x):\n    math.own = 1\n",
    "a deleted attribute": "import math\ndel math.pi\ndef solve(x):\n    return 1\n",
    "a with block": "def solve(x):\n    with x:\n        pass\n",
    "a coroutine": "async def solve(x):\n    return 1\n",
    "an asynchronous generator": "async def solve(x):\n    yield 1\n",
    "delegation to a generator": "def solve(x):\n    yield from x\n",
    "a generator with a last word": "def solve(x):\n    try:\n        yield 1\n    finally:\n        x()\n",
    "a generator that catches its end": "def solve(x):\n    try:\n        yield 1\n    except:\n        x()\n",
    "another module": "import time\ndef solve(x):\n    return 1\n",
    "a module below a harmless one": "import json.decoder\ndef solve(x):\n    return 1\n",
    "a submodule that is not loaded yet": "from json import tool\ndef solve(x):\n    return 1\n",
    "a name that a module has": "from random import _inst\ndef solve(x):\n    return 1\n",
    "a relative import": "from . import answer\ndef solve(x):\n    return 1\n",
    "format, which reads attributes": "def solve(x):\n    return '{0.real}'.format(x)\n",
    "a private name": "def solve(x):\n    return x.__class__\n",
    "a frame": "def solve(x):\n    return (n for n in x).gi_frame\n",
    "a traceback": "def solve(error):\n    return error.with_traceback(None)\n",
    "getattr": "def solve(x):\n    return getattr(x, 'real')\n",
    "type": "def solve(x):\n    return type('A', (), {})\n",
    "globals": "def solve(x):\n    return globals()\n",
    "open": "def solve(x):\n    return open('/dev/null')\n",
    "exec": "def solve(x):\n    exec('1')\n",
    "an exit": "def solve(x):\n    raise SystemExit\n",
    "a state of chance": "import random\ndef solve(x):\n    return random.setstate(x)\n",
}


@pytest.fixture(scope="module")
def judged() -> dict[str, bool]:
    """What the process inside makes of the sources above: it must be asked there, where its modules are loaded."""
    program = (
        "import json, sys, importlib\nfrom inside import plain, zygote\n"
        "for name in zygote.PRELOADED: importlib.import_module(name)\n"
        "known = plain.known_names()\n"
        "print(json.dumps({name: plain.is_plain(compile(source, '<answer>', 'exec'), known)"
        " for name, source in json.load(sys.stdin).items()}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", program],
        env={"PYTHONPATH": str(HOME)},
        input=json.dumps(ORDINARY | NOT_PLAIN),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=Limits(call_seconds=1.0, total_seconds=4.0)) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, source: str, calls: tuple[str, ...] = ("solve(3)",)) -> list[object]:
    return list(sandbox.run(Program(sources=(source,), defines="solve", calls=calls)))


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_code_is_plain(judged: dict[str, bool], name: str) -> None:
    assert judged[name]


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_code_that_could_reach_the_interpreter_is_not_plain(judged: dict[str, bool], name: str) -> None:
    assert not judged[name]


@pytest.mark.parametrize("source", ORDINARY.values(), ids=ORDINARY)
def test_plain_code_gives_the_same_in_company_and_alone(sandbox: Sandbox, source: str) -> None:
    calls = ("solve(3)", "solve(0)", "solve(3)")
    together = run(sandbox, source, calls)
    alone = sandbox.run(Program(sources=(source,), defines="solve", calls=calls, alone=True))
    assert together == alone
    assert all(isinstance(each, Returned) for each in together)


LOTTERY = "import random\ndef solve(x):\n    heap = [[] for _ in range(200000)]\n    return random.randint(1, 10**9)\n"


PROBE = """
import json, random, re
from collections import Counter
from datetime import datetime
from typing import Dict, List
def solve(x: List[int]) -> Dict[str, int]:
    day = datetime.strptime('2024-05-06', '%Y-%m-%d').strftime('%A %j')
    return [json.dumps({'b': [1, 2.5, None]}), re.sub(r'(a)', r'<\\1>', 'aab'), Counter('aab').most_common(1), day,
            random.random(), random.gauss(0, 1), random.sample(range(99), 5), f'{3.14159:.2f}', hash('abc')]
"""
POISONS = {
    "seed": "import random\ndef solve(x):\n    random.seed(7)\n    return random.gauss(0, 1)\n",
    "finaliser": (
        "import random\ndef trap():\n    try:\n        yield 1\n    finally:\n        random.seed(7)\n"
        "held = trap()\nnext(held)\ndef solve(x):\n    return 1\n"
    ),
    "argparse": (
        "from json import tool\nimport random\ndef solve(x):\n    parser = tool.argparse.ArgumentParser()\n"
        "    parser.add_argument('--randint', type=lambda text: (lambda a, b: 7))\n"
        "    parser.parse_known_args(['--randint', '1'], namespace=random)\n    return 1\n"
    ),
    "other spelling": "import ｒandom\ndef solve(x):\n    return ｒandom.random() < 2\n",
    "typing cache": (
        "from typing import List\nimport random\ndef trap():\n    yield random.seed(7)\nheld = trap()\n"
        "def solve(x):\n    List[lambda: next(held)]\n    return 1\n"
    ),
    "shadows": "def randint(a, b):\n    return 7\nrandom = [randint]\ndef solve(x):\n    return 1\n",
    "star import": "from random import *\ndef solve(x):\n    seed(1)\n    return 1\n",
    "methods of others": (
        "from collections import Counter\nimport random\ndef solve(x):\n    for each in (random, Counter):\n"
        "        for change in (Counter.update, dict.update, dict.clear, Counter.pop):\n            try:\n"
        "                change(each, {'random': 1})\n            except Exception:\n                x = 1\n"
        "    return 1\n"
    ),
    "codecs": (
        "def solve(x):\n    for name in ('idna', 'rot13', 'undefined', 'nope', 'utf-7', '../os', 'aliases'):\n"
        "        try:\n            str(b'abc', name)\n        except Exception:\n            x = 1\n    return 1\n"
    ),
    "caches of patterns and formats": (
        "import re\nfrom datetime import datetime\ndef solve(x):\n    for n in range(1000):\n"
        "        re.search('a' + str(n), 'b')\n    for f in ('%Y', '%m', '%d', '%H', '%M', '%S', '%y'):\n"
        "        datetime.strptime('10', f) if f != '%Y' else 0\n    return 1\n"
    ),
    "deep garbage": (
        "import itertools\ndef solve(x):\n    held, chain, nested = None, iter([1]), []\n"
        "    for _ in range(200000):\n        held = lambda held=held: held\n"
        "        chain, nested = itertools.chain(chain), [nested]\n    return 1\n"
    ),
}


@pytest.mark.parametrize("probe", [LOTTERY, PROBE], ids=["chance", "library"])
@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_what_ran_before_does_not_change_a_result(sandbox: Sandbox, poison: str, probe: str) -> None:
    before = run(sandbox, probe)
    assert isinstance(before[0], Returned)
    run(sandbox, poison)
    assert run(sandbox, probe) == before


def test_memory_that_plain_code_leaves_in_caches_is_not_missing_later() -> None:
    """Neither would fit beside the other. To fill memory takes time of its own, which some machines have little of."""
    hoard = (
        "from typing import List\ndef solve(x):\n    for step in range(20):\n"
        "        List[lambda hoard=[0] * (3 << 19), step=step: hoard]\n    return 1\n"
    )
    # An error that it did not catch would have it run again, in a process of its own.
    large = (
        "def solve(x):\n    try:\n        return len([0] * (26 << 20))\n"
        "    except Exception:\n        return 0\n"
    )
    with Sandbox(limits=Limits(call_seconds=10.0, total_seconds=40.0, memory_bytes=384 << 20)) as sandbox:
        assert run(sandbox, hoard) == [Returned(b"1")]
        assert run(sandbox, large) == [Returned(b"27262976")]


def resident_of(sandbox: Sandbox, plain: str) -> Any:
    """What runs plain code in a process that stays; a busy machine may have it give that process up after a job."""
    for _ in range(20):
        assert run(sandbox, plain) == [Returned(b"3")]
        resident = sandbox._workers[0].resident
        if resident is not None and (process := resident._zygote.ask_process()) is not None:
            os.close(process)
            return resident
    raise AssertionError("no process stays for plain code")


def test_a_process_that_does_not_come_back_is_replaced(sandbox: Sandbox) -> None:
    """Whatever keeps it busy: a job too large for the pipe must not wait for it for ever."""
    plain = "def solve(x):\n    return x\n"
    process = resident_of(sandbox, plain)._zygote.ask_process()
    assert process is not None
    signal.pidfd_send_signal(process, signal.SIGSTOP)
    os.close(process)
    large = plain + "# " + "x" * 500_000
    assert run(sandbox, large) == [Returned(b"3")]
    assert run(sandbox, plain) == [Returned(b"3")]


def test_a_process_that_has_died_in_between_is_replaced(sandbox: Sandbox) -> None:
    plain = "def solve(x):\n    return x\n"
    resident = resident_of(sandbox, plain)
    assert resident._zygote.end(kill=True) == -9
    resident._zygote._early_end = -9  # as if nobody had asked
    assert run(sandbox, plain) == [Returned(b"3")]
