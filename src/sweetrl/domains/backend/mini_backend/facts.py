"""The facts about the functions of `mini-backend`, with their values and wording.

A function of a family is a chain of steps. A fact stands for one possible step: whether a task has it is hinted
at by a cue in the request, and which of its values the task has is known to the collaborator alone. No two
facts of a family share what tells their values apart, neither in code nor in words.
"""

from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct


class Value(Struct, frozen=True):
    """One way in which a fact can be settled."""

    code: str
    """The step, one line of Python."""
    phrases: tuple[str, ...]
    """How the collaborator puts it; each completes `it should ...`."""


class Fact(Struct, frozen=True):
    """Something that a programmer may have to ask about."""

    name: str
    cues: tuple[str, ...]
    """Sentences of a request that make the fact likely to matter."""
    questions: tuple[str, ...]
    """The first are those that agents learn to use; people may ask in other words."""
    words: tuple[str, ...]
    """Stems by which a question about this fact is recognised."""
    values: tuple[Value, ...]


class Family(Struct, frozen=True):
    """Functions of one kind of argument."""

    name: str
    argument: str
    functions: tuple[str, ...]
    """Names that a function may have."""
    facts: tuple[Fact, ...]
    """In the order of their steps."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of facts.toml."""

    families: tuple[Family, ...]
    irrelevant: tuple[str, ...]


_TABLE = msgspec.toml.decode(resources.files(__package__).joinpath("facts.toml").read_bytes(), type=_Table)
FAMILIES = _TABLE.families
IRRELEVANT = _TABLE.irrelevant
"""Questions that a programmer may ask and that no reference of the benchmark says anything about."""


@cache
def step_owners() -> dict[str, tuple[Family, Fact, Value]]:
    """Which fact and value each line of code stands for."""
    return {
        value.code: (family, fact, value)
        for family in FAMILIES
        for fact in family.facts
        for value in fact.values
    }
