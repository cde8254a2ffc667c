"""Tasks from a seed: which facts matter, what the request hints at, and calls that tell right from wrong."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from sweetrl.domains.backend.mini_backend.facts import FAMILIES, Fact, Family, Value, step_owners
from sweetrl.domains.backend.secret import BackendSecret, backend_secret
from sweetrl.errors import UsageError
from sweetrl.seeds import derive_seed
from sweetrl.types import Task, digest

NAME = "mini-backend"
SPLIT_SHARES = {"train": 70, "validation": 10, "test": 20}
"""Per cent of all functions."""
CALLS = 10
"""Hidden tests of a task, as in ColBench."""
POOL = 60
"""Arguments from which those of the tests are chosen."""

PLACES = (
    "bakery",
    "museum",
    "library",
    "harbour",
    "school",
    "clinic",
    "theatre",
    "garden",
    "station",
    "market",
)
OPENINGS = (
    "Please write {call} for the {place}.",
    "I need {call} for the {place}.",
    "The {place} wants {call}.",
)
WORDS = (
    "Blue", "lemon", "Oak", "river", "Tea", "stone", "apple", "Moon", "zebra", "Cafe", "otter", "green",
    "Igloo", "boat", "melon", "Echo", "rose", "Yellow", "anchor", "dove",
)  # fmt: skip

CUED = (3, 4, 4)
"""How many facts a request hints at: one of these numbers, drawn at random."""
CUE_HOLDS = 0.94
"""How often a fact matters that the request hints at."""
STRAY = 0.008
"""How often a fact matters that it does not hint at."""
_CALL = re.compile(r"(?P<name>\w+)\((?P<argument>\w+)\)")

Choice = tuple[tuple[Fact, Value], ...]
"""The facts that matter, in the order of their steps, and how each is settled."""


def make_tasks(split: str, count: int, seed: int = 0) -> Iterator[Task]:
    """`count` different tasks of a split; a greater `count` only adds to them."""
    if split not in SPLIT_SHARES:
        raise UsageError(f"{NAME} has no split {split!r}; it has {', '.join(SPLIT_SHARES)}")
    rng = random.Random(derive_seed(NAME, split, seed))  # noqa: S311  tasks, no secrets
    seen: set[str] = set()
    while len(seen) < count:
        family = rng.choice(FAMILIES)
        cued, choice = _draw(rng, family)
        name = rng.choice(family.functions)
        request = _request(rng, family, name, cued)
        pool = _pool(rng, family)
        # The cheap check first: most tasks that are drawn belong to another split.
        if request in seen or split_of(choice) != split:
            continue
        arguments = _telling_arguments(family, choice, pool)
        if arguments is not None:
            seen.add(request)
            yield _task(split, family, name, request, choice, arguments)


def split_of(choice: Choice) -> str:
    """The split of a function, by its steps alone: the same for functions that do the same, whatever the seed."""
    place = derive_seed(NAME, *(value.code for _, value in choice)) % 100
    for split, share in SPLIT_SHARES.items():
        place -= share
        if place < 0:
            return split
    raise AssertionError("the shares add up to 100")


def function_source(family: Family, name: str, steps: Sequence[str]) -> str:
    """The function with these steps, in the one way in which the benchmark writes it."""
    lines = [f"def {name}({family.argument}):", *steps, f"return {family.argument}"]
    return "\n    ".join(lines)


def read_choice(reference: str) -> tuple[Family, Choice]:
    """The inverse of `function_source`; an error for other functions."""
    owners = [step_owners().get(line.strip()) for line in reference.splitlines()[1:-1]]
    if not owners or None in owners:
        raise UsageError(f"not a reference of {NAME}: {reference.splitlines()[0]}")
    known = [owner for owner in owners if owner is not None]
    return known[0][0], tuple((fact, value) for _, fact, value in known)


def reference_of(task: Task) -> str:
    """The function that a task wants."""
    return backend_secret(task).reference


def function_name(request: str) -> str:
    """The name of the function that a request asks for."""
    call = _CALL.search(request)
    if call is None:
        raise UsageError(f"not a request of {NAME}: it names no function")
    return call["name"]


def family_of(request: str) -> Family:
    """The family of the function that a request asks for."""
    call = _CALL.search(request)
    for family in FAMILIES:
        if call is not None and call["argument"] == family.argument:
            return family
    raise UsageError(f"not a request of {NAME}: it names no function")


def _draw(rng: random.Random, family: Family) -> tuple[list[Fact], Choice]:
    cued = rng.sample(family.facts, rng.choice(CUED))
    while True:
        choice = tuple(
            (fact, rng.choice(fact.values))
            for fact in family.facts
            if rng.random() < (CUE_HOLDS if fact in cued else STRAY)
        )
        if choice:
            return cued, choice


def _request(rng: random.Random, family: Family, name: str, cued: Sequence[Fact]) -> str:
    call = f"{name}({family.argument})"
    opening = rng.choice(OPENINGS).format(call=call, place=rng.choice(PLACES))
    return " ".join([opening, *(rng.choice(fact.cues) for fact in cued)])


def _task(
    split: str, family: Family, name: str, request: str, choice: Choice, arguments: Sequence[Any]
) -> Task:
    return Task(
        id=f"{NAME}-{digest(request)}",
        domain="backend",
        split=split,
        request=request,
        secret=BackendSecret(
            function_source(family, name, [value.code for _, value in choice]),
            {f"test{number}": f"{name}({argument!r})" for number, argument in enumerate(arguments, start=1)},
        ),
    )


# ---------------------------------------------------------------- calls


def _telling_arguments(family: Family, choice: Choice, pool: Sequence[Any]) -> list[Any] | None:
    """Arguments on which every function that gets one fact wrong, or leaves it out, differs; None if none do."""
    right = _results(family, [value for _, value in choice], pool)
    wrongs = [_results(family, steps, pool) for steps in _one_wrong(choice)]
    chosen: list[int] = []
    while wrongs:
        told = [sum(wrong[at] != right[at] for wrong in wrongs) for at in range(len(pool))]
        best = max(range(len(pool)), key=told.__getitem__)
        if not told[best]:
            return None
        chosen.append(best)
        wrongs = [wrong for wrong in wrongs if wrong[best] == right[best]]
    rest = [at for at in range(len(pool)) if at not in chosen]
    chosen += rest[: max(0, CALLS - len(chosen))]
    return None if len(chosen) > CALLS else [pool[at] for at in chosen]


def _one_wrong(choice: Choice) -> Iterator[list[Value]]:
    """The steps with one of them left out or settled in another way."""
    for at, (fact, right) in enumerate(choice):
        before, after = [value for _, value in choice[:at]], [value for _, value in choice[at + 1 :]]
        yield before + after
        for value in fact.values:
            if value != right:
                yield [*before, value, *after]


def _pool(rng: random.Random, family: Family) -> list[Any]:
    if family.argument == "n":
        return rng.sample(range(-80, 200), POOL)
    return [" ".join(rng.sample(WORDS, rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(POOL)]


def _results(family: Family, steps: Sequence[Value], pool: Sequence[Any]) -> list[Any]:
    results = list(pool)
    for step in steps:
        apply = _step(family.argument, step.code)
        results = [apply(result) for result in results]
    return results


@cache
def _step(argument: str, code: str) -> Callable[[Any], Any]:
    """A line of our own table as a function."""
    made: Callable[[Any], Any] = eval(f"lambda {argument}: {code.partition(' = ')[2]}")  # noqa: S307
    return made
