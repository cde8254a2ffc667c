"""Nothing that an answer leaves behind reaches the next one on the same worker."""

from collections.abc import Iterator

import pytest

from sandbox.gauntlet import REFERENCES, judge, make_tasks
from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.sandbox import Limits, Program, Result, Returned, Sandbox, decode

PROBE = """
import fcntl, gc, json, os, random, re, resource, signal, sys, threading
from collections import Counter
from datetime import datetime
from typing import Dict, List
def solve(x: List[int]) -> Dict[str, int]:
    day = datetime.strptime('2024-05-06', '%Y-%m-%d').strftime('%A %j')
    limits = [resource.getrlimit(number) for number in range(16)]
    handlers = [str(signal.getsignal(number)) for number in range(1, 32)]
    opened = []
    for descriptor in range(64):
        try:
            opened.append((descriptor, os.fstat(descriptor).st_mode, fcntl.fcntl(descriptor, fcntl.F_GETFL)))
        except OSError:
            pass
    return [json.dumps({'b': [1, 2.5, None]}), re.sub(r'(a)', r'<\\1>', 'aab'), Counter('aab').most_common(1), day,
            random.random(), random.gauss(0, 1), random.sample(range(99), 5), f'{3.14159:.2f}', hash('abc'),
            limits, handlers, opened, os.getcwd(), dict(os.environ), sys.getrecursionlimit(), threading.active_count(),
            sorted(sys.modules), sys.path, len(gc.get_objects()) > 0, os.sched_getaffinity(0)]
"""
TRACES = {
    "seed": "import random\nrandom.seed(7)\nrandom.gauss(0, 1)\ndef solve(x):\n    return random.gauss(0, 1)\n",
    "finaliser": (
        "import random\ndef trap():\n    try:\n        yield 1\n    finally:\n        random.seed(7)\n"
        "held = trap()\nnext(held)\ndef solve(x):\n    return 1\n"
    ),
    "patched module": "import json, re\njson.dumps = re.sub = lambda *a, **k: 7\ndef solve(x):\n    return 1\n",
    "typing cache": (
        "from typing import List\nimport random\ndef trap():\n    yield random.seed(7)\nheld = trap()\n"
        "def solve(x):\n    List[lambda: next(held)]\n    return 1\n"
    ),
    "caches of patterns and formats": (
        "import re, _strptime\ndef solve(x):\n    for n in range(1000):\n        re.search('a' + str(n), 'b')\n"
        "    re._cache.update({(str, r'(a)', 0): re.compile('b')})\n"
        "    _strptime._regex_cache['%Y-%m-%d'] = re.compile('(?P<Y>x)')\n    return 1\n"
    ),
    "deep garbage": (
        "import itertools\ndef solve(x):\n    held, chain, nested = None, iter([1]), []\n"
        "    for _ in range(5000):\n        held = lambda held=held: held\n"
        "        chain, nested = itertools.chain(chain), [nested]\n    return 1\n"
    ),
    "type from a copy": (
        "from collections import Counter\nimport typing\nkind = Counter.copy(int)\n"
        "def strike(*_):\n    import builtins, json, re, sys\n    json.dumps = re.sub = lambda *a, **k: 7\n"
        "    sys.modules['inside.runner'].encode = lambda *a: b'7'\n    builtins.sum = lambda *a: 7\n"
        "Trap = kind('Trap', (), {'__hash__': strike, '__eq__': strike})\n"
        "reference = typing.ForwardRef('strike()')\n"
        "def solve(x):\n    eval(reference.__forward_code__)\n    return 1\n"
    ),
    "limits and handlers": (
        "import os, resource, signal, sys\ndef solve(x):\n    sys.setrecursionlimit(77)\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    signal.setitimer(signal.ITIMER_REAL, 30)\n"
        "    for number in range(16):\n        try:\n            resource.setrlimit(number, (1, 1))\n"
        "        except (OSError, ValueError):\n            pass\n    return 1\n"
    ),
    "environment, folder and path": (
        "import os, sys\ndef solve(x):\n    os.environ['PYTHONPATH'] = 'x'\n    os.putenv('LC_ALL', 'x')\n"
        "    sys.path.insert(0, '/tmp')\n    sys.modules['json'] = None\n    try:\n        os.chdir('/usr')\n"
        "    except OSError:\n        pass\n    return 1\n"
    ),
    "flags of descriptors": (
        "import fcntl, os\ndef solve(x):\n    for fd in range(64):\n        try:\n"
        "            fcntl.fcntl(os.dup(fd), fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND | os.O_NOATIME)\n"
        "        except OSError:\n            pass\n    return 1\n"
    ),
    "descriptors": (
        "import os\ndef solve(x):\n    for fd in range(3):\n        try:\n            os.close(fd)\n"
        "            os.pipe()\n            os.lseek(fd, 10, 0)\n        except OSError:\n            pass\n"
        "    return 1\n"
    ),
    "death": "import os\ndef solve(x):\n    os.kill(os.getpid(), 9)\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=Limits(call_seconds=1.0, total_seconds=4.0)) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def scorer(sandbox: Sandbox) -> Iterator[BackendScorer]:
    scorer = BackendScorer(sandbox)
    yield scorer
    scorer.close()


def run(sandbox: Sandbox, source: str, call: str = "solve(3)") -> Result:
    (result,) = sandbox.run(Program(sources=(source,), calls=(call,)))
    return result


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_an_answer_finds_its_process_as_if_it_were_the_first(sandbox: Sandbox, trace: str) -> None:
    before = run(sandbox, PROBE)
    assert isinstance(before, Returned), before
    run(sandbox, trace)
    assert run(sandbox, PROBE) == before


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_after_a_hostile_answer_the_honest_one_is_paid_and_the_wrong_one_is_not(
    scorer: BackendScorer, trace: str
) -> None:
    tasks = make_tasks()
    for name, reference in REFERENCES.items():
        judge(scorer, tasks[name], trace.replace("solve", name))
        assert judge(scorer, tasks[name], reference).reward == 1.0
        judge(scorer, tasks[name], trace.replace("solve", name))
        assert judge(scorer, tasks[name], f"def {name}(*a):\n    return 7\n").reward == 0.0


def test_memory_that_an_answer_hoards_is_not_missing_later() -> None:
    """Neither would fit beside the other. To fill memory takes time of its own, which some machines have little of."""
    hoard = (
        "from typing import List\ndef solve(x):\n    for step in range(20):\n"
        "        List[lambda hoard=[0] * (3 << 19), step=step: hoard]\n    return 1\n"
    )
    large = "def solve(x):\n    return len([0] * (26 << 20))\n"
    limits = Limits(call_seconds=10.0, total_seconds=40.0, memory_bytes=384 << 20)
    with Sandbox(limits=limits) as sandbox:
        assert run(sandbox, hoard) == Returned(b"1")
        assert run(sandbox, large) == Returned(b"27262976")


def test_each_answer_has_a_process_of_its_own(sandbox: Sandbox) -> None:
    source = "import os\ndef solve(x):\n    return os.getpid()\n"
    results = [run(sandbox, source) for _ in range(20)]
    assert len({decode(each.encoded) for each in results if isinstance(each, Returned)}) == 20
