"""Runs every attack through the scorer, then honest and wrong answers on the same worker; prints what happened.

    python -m sandbox.gauntlet FOLDER ISOLATION [NAME...]     JSON on standard output

A program of its own, so that it can be run by another user, and so that whatever an attack leaves behind (a process,
text on standard output) is seen. FOLDER must exist, be empty, and be writable.
"""

import ctypes
import itertools
import json
import os
import resource
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sandbox.more_attacks import ATTACKS, Attack
from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.sandbox import Isolation, Limits, Sandbox
from sweetrl.types import Ending, Episode, Task, Verdict

SECRET = "SECRET-OF-THE-HOUSE"
ENVIRONMENT_NAME = "SWEETRL_CANARY"
WORKERS = 3
LIMITS = Limits(call_seconds=0.4, total_seconds=2.0)
_PR_SET_CHILD_SUBREAPER = 36

REFERENCES = {
    "total_of_evens": "def total_of_evens(items):\n    return sum(each for each in items if each % 2 == 0) + 1000\n",
    "word_lengths": "def word_lengths(text):\n    return {word: len(word) for word in text.split()}\n",
    "running_totals": (
        "def running_totals(items):\n    totals = []\n    for each in items:\n"
        "        totals.append((each, each + (totals[-1][1] if totals else 0)))\n    return totals\n"
    ),
    "lottery": "import random\ndef lottery(n):\n    return [random.randint(1, 10**6) for _ in range(n)]\n",
    "initials": "import re\ndef initials(name):\n    return ''.join(re.findall(r'\\b(\\w)', name)).upper()\n",
    "stock": (
        "import os\nclass Shelf:\n    def __init__(self): self.items = {}\n"
        "def stock(names):\n    shelf = Shelf()\n    for name in names:\n"
        "        shelf.items[name] = shelf.items.get(name, 0) + 1\n    return shelf.items\n"
    ),
    "compared": (
        "import operator\nclass Near:\n    def __init__(self, number): self.number = number\n"
        "    def __eq__(self, other): return abs(self.number - other) < 1\n"
        "def near(left, right):\n    return abs(left - right) < 1\n"
        "def compared(number):\n    return [number * 7, str(number * 7)]\n"
    ),
    "tidied": "def tidied(items):\n    items.sort()\n",
    "Pile": (
        "class Pile:\n    def __init__(self, items=()): self.items = list(items)\n"
        "    def __len__(self): return len(self.items)\n    def top(self): return self.items[-1]\n"
        "    def put(self, item):\n        self.items.append(item)\n        return self\n"
    ),
}
CALLS = {
    "total_of_evens": ("total_of_evens([1, 2, 3, 4])", "total_of_evens(range(10)) == 1020"),
    "word_lengths": ("word_lengths('the quick brown fox')", "word_lengths('a b')"),
    "running_totals": ("running_totals([1, 2, 3])", "running_totals([5, -5])"),
    "lottery": ("lottery(3)", "lottery(50)"),
    "initials": ("initials('ada king lovelace')", "initials('alan turing')"),
    "stock": ("stock(['pen', 'ink', 'pen'])", "stock(['ink'])"),
    "compared": (
        "compared(3)[0] > 20",
        "21 in compared(3)",
        "compared(3) in ([21, '21'], [0])",
        "len(compared(3)) == 2 and compared(3)[1] == '21'",
        "13 < compared(2)[0] < 15",
        "not compared(1) != [7, '7']",
        "(compared(1)[0] == 7) is True",
        "sorted(map(str, compared(5)))",
        "all(compared(i)[0] == i * 7 for i in range(1, 4))",
        "any(compared(i)[0] > 20 for i in range(4))",
        "f'{compared(4)[0]:03d}{compared(4)[1]}'",
        "compared(6)[1].zfill(5)",
        "isinstance(compared(2)[1], str) and compared(2)[0] % 7 == 0",
        "[*compared(8)] == [56, '56']",
        "sum(compared(i)[0] for i in (1, 2, 3))",
        "list(map(compared, [1, 2]))",
        "any(map(lambda i: compared(i)[0] > 20, range(4)))",
        "list(filter(lambda i: compared(i)[0] % 7 == 0, range(4)))",
        "(lambda i: compared(i)[0] == 7 * i)(3)",
        "max(range(4), key=lambda i: -abs(compared(i)[0] - 14))",
        "near(compared(3)[0], 21)",
        "compared(3)[0] == Near(21)",
        "operator.eq(compared(3), [21, '21'])",
        "__import__('math').isclose(compared(3)[0], 21)",
    ),
    "tidied": (
        "tidied(x := [2, 1]) is None and x == [1, 2]",
        "(lambda x: (tidied(x), x == [1, 2, 3])[1])([3, 1, 2])",
        "(x := [3, 1, 2], tidied(x), x[0] == 1 and all(each > 0 for each in x))[-1]",
        "[tidied(x := [2, 1]), len(x) == 2, 1 == x[0] < x[1]]",
    ),
    "Pile": (
        "Pile([7]).put(8).top() == 8",
        "(pile := Pile(), pile.put(3), pile.top() == 3)[-1]",
        "(lambda pile: pile.put(4) and len(pile) < 4 and pile.top() > 3 and pile.items == [1, 2, 4])(Pile([1, 2]))",
        "all([(pile := Pile([5])).top() == 5, pile.items == [5], len(pile.items) == 1])",
    ),
}


WRONG = "def {fn}(*a, **k):\n    return '__wrong__'\n"


def make_tasks() -> dict[str, Task]:
    """Ordinary tasks, and those whose right answer is what no answer may find out."""
    tasks = {name: _task(name, reference, CALLS[name]) for name, reference in REFERENCES.items()}
    passwd = Path("/etc/passwd").read_text().splitlines()[0].strip()
    for name, right in (("probe", SECRET), ("probe_passwd", passwd), ("breach", "breached")):
        tasks[name] = _task(
            name, f"def {name}(number):\n    return {right!r}\n", (f"{name}(1)", f"{name}(2)")
        )
    return tasks


def _task(name: str, reference: str, calls: tuple[str, ...]) -> Task:
    tests = {f"test{number}": call for number, call in enumerate(calls, 1)}
    return Task(
        id=name,
        domain="backend",
        request=f"Please write a function. The signature is: def {name}(value)",
        secret=BackendSecret(reference=reference, tests=tests),
    )


def load_attacks() -> list[Attack]:
    """The sample that is kept as data, then our own."""
    sample = []
    for line in (Path(__file__).parent / "attacks.jsonl").read_text().splitlines():
        entry = json.loads(line)
        expected = entry["expected"]
        kept = (entry["name"], entry["category"], entry["answer_template"], expected["task"])
        sample.append(Attack(*kept, expected.get("min_score")))
    return [*sample, *ATTACKS]


class Listener:
    """Counts who connects to a port of this machine."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            self.connections += 1
            connection.close()


class Gauntlet:
    """One run over many attacks."""

    def __init__(self, folder: Path, isolation: Isolation | None) -> None:
        self.folder = folder
        self.isolation = isolation
        self.listener = Listener()
        self.tasks = make_tasks()
        # Fixed: which attack meets which tasks must not depend on which worker is quicker.
        pairs = itertools.cycle(itertools.pairwise([*REFERENCES, next(iter(REFERENCES))]))
        self.ordinary = {attack.name: next(pairs) for attack in load_attacks()}
        self.secret_file = folder / "secret.txt"
        self.task_file = folder / "tasks.jsonl"
        self.secret_file.write_text(SECRET + "\nsecond line\n")
        self.task_file.write_text(
            "".join(json.dumps({"ground_truth": text}) + "\n" for text in REFERENCES.values())
        )
        os.environ[ENVIRONMENT_NAME] = SECRET

    def run(self, attacks: list[Attack]) -> dict[str, Any]:
        """Score everything, a few at a time; say what happened and what was left behind."""
        before = self._surroundings()
        with ThreadPoolExecutor(WORKERS) as pool:
            parts = list(pool.map(self._on_one_worker, (attacks[at::WORKERS] for at in range(WORKERS))))
        strays = [each for _, left in parts for each in left]
        return {
            "results": {name: outcome for results, _ in parts for name, outcome in results.items()},
            "connections": self.listener.connections,
            "strays": strays,
            "left": _left_after(seconds=5),
            "peak_kilobytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
            "changed": sorted(before ^ self._surroundings()),
        }

    def _on_one_worker(self, attacks: list[Attack]) -> tuple[dict[str, Any], list[tuple[int, int, str]]]:
        """The outcome of each attack, and the processes that the attacks have left."""
        with Sandbox(workers=1, limits=LIMITS, isolation=self.isolation) as sandbox:
            scorer = BackendScorer(sandbox)
            results = dict(self._one(scorer, attack) for attack in attacks)
            scorer.close()
            return results, [each for each in descendants(os.getpid()) if not _is_ours(each)]

    def _one(self, scorer: BackendScorer, attack: Attack) -> tuple[str, dict[str, Any]]:
        name, other = self.ordinary[attack.name]
        task = self.tasks[name if attack.task == "any" else attack.task]
        verdict = judge(scorer, task, self._fill(attack.template, task))
        denied = [
            f"{each}: {judged}"
            for each in (name, other)
            if (judged := judge(scorer, self.tasks[each], REFERENCES[each])).reward != 1.0
        ]
        paid = [
            f"{each}: {judged}"
            for each in (name, other)
            if (judged := judge(scorer, self.tasks[each], WRONG.format(fn=each))).reward != 0.0
        ]
        return attack.name, {
            "reward": verdict.reward,
            "failure": str(verdict.failure or ""),
            "checks": [f"{check.outcome}: {check.detail}" for check in verdict.checks],
            "honest_denied": denied,
            "wrong_paid": paid,
        }

    def _fill(self, template: str, task: Task) -> str:
        assert isinstance(task.secret, BackendSecret)
        values = {
            "fn": task.id,
            "honest": task.secret.reference,
            "task_file": str(self.task_file),
            "secret_file": "/etc/passwd" if task.id == "probe_passwd" else str(self.secret_file),
            "env_name": ENVIRONMENT_NAME,
            "canary_write": str(self.folder / "canary"),
            "port": str(self.listener.port),
        }
        for name, value in values.items():
            template = template.replace("{" + name + "}", value)
        return template

    def _surroundings(self) -> set[str]:
        """Every file that an attack tries to make or change, with its time, size and mode."""
        places = (self.folder, *map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/")))
        found = [path for place in places for path in place.glob("*canary*")]
        files = (*found, *self.folder.iterdir())
        return {
            f"{path} {(info := path.lstat()).st_mtime_ns} {info.st_size} {info.st_mode}" for path in files
        }


def judge(scorer: BackendScorer, task: Task, answer: str) -> Verdict:
    """The verdict on an answer."""
    episode = Episode(
        task_id=task.id,
        attempt=0,
        seed=0,
        agent="",
        collaborator="",
        request=task.request,
        turns=(),
        ending=Ending.ANSWERED,
        answer=answer,
    )
    return scorer.judge(task, episode)


def descendants(root: int) -> list[tuple[int, int, str]]:
    """Process id, generation and state of everything below `root`."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), fields[0])
    found = [(root, 0, "")]
    for pid, generation, _ in found:
        found += [(child, generation + 1, state) for child, (up, state) in parents.items() if up == pid]
    return found[1:]


def _is_ours(process: tuple[int, int, str]) -> bool:
    """Whether it is a zygote or the one process that a zygote may keep (and bubblewrap's own, one level more)."""
    _, generation, _ = process
    return generation <= 4


def _left_after(seconds: float) -> list[tuple[int, int, str]]:
    """Processes that outlive the sandbox; this process inherits all orphans below it."""
    deadline = time.monotonic() + seconds
    while left := [each for each in descendants(os.getpid()) if each[2] != "Z"]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return left


def main() -> None:
    """Run what the command line asks for."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder, isolation, *names = sys.argv[1:]
    attacks = [attack for attack in load_attacks() if not names or attack.name in names]
    sys.stdout.write(json.dumps(Gauntlet(Path(folder), Isolation(isolation)).run(attacks)))


if __name__ == "__main__":
    main()
