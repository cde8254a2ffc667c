"""Domains by name: those of the package, those that others have installed, and those of one's own modules.

Another package offers a domain through the entry point group `sweetrl.domains`. Without installing anything,
`use_domain` takes one by `package.module:OBJECT`, as does the environment variable `SWEETRL_DOMAINS`. A file of tasks
can only name a domain, never a module: data must not choose which code runs.
"""

import importlib
import logging
import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from sweetrl.domains.domain import Domain, Generator, Labels
from sweetrl.errors import DataError, UsageError, one_line
from sweetrl.prompts import Prompt
from sweetrl.types import Secret, Task

logger = logging.getLogger(__name__)

BUILT_IN = {
    "backend": "sweetrl.domains.backend.domain:BACKEND",
    "chat": "sweetrl.domains.chat.domain:CHAT",
    "frontend": "sweetrl.domains.frontend.domain:FRONTEND",
}
"""Domains loaded on first use."""
DEFAULT = "backend"
"""For prompts where nothing names a domain."""
GROUP = "sweetrl.domains"
VARIABLE = "SWEETRL_DOMAINS"
"""Specifications `package.module:OBJECT`, separated by commas."""

_in_use: dict[str, Domain] = {}
"""Domains that `use_domain` has loaded, in order of last use."""


# ---------------------------------------------------------------- finding one


def find_domain(name: str) -> Domain:
    """The domain of a name; `UsageError` with the next step if it is not found."""
    if name in _in_use:
        return _in_use[name]
    if name in BUILT_IN:
        return _loaded(BUILT_IN[name])
    if name in _named_by_variable():
        return _named_by_variable()[name]
    if (entry := _installed().get(name)) is not None:
        return _from_entry(entry)
    raise UsageError(_unknown(name))


def domain_of(task: Task) -> Domain:
    """The domain of a task."""
    return find_domain(task.domain)


def use_domain(spec: str) -> Domain:
    """Find a domain by name or `package.module:OBJECT`, and register it in this process.

    Tasks that name no domain are of the last one used.
    """
    domain = _loaded(spec) if ":" in spec else find_domain(spec)
    _in_use.pop(domain.name, None)
    _in_use[domain.name] = domain
    return domain


def chosen() -> Domain | None:
    """The last domain used, if any."""
    return next(reversed(_in_use.values()), None)


def forget() -> None:
    """Undo every `use_domain`."""
    _in_use.clear()


def names() -> list[str]:
    """All that can be found, those of the package first."""
    return list(dict.fromkeys([*BUILT_IN, *_in_use, *_named_by_variable(), *sorted(_installed())]))


def all_domains() -> Iterator[Domain]:
    """All domains that can be loaded; one that cannot is skipped with a warning."""
    for name in names():
        try:
            yield find_domain(name)
        except UsageError as error:
            _complain(str(error))


@cache  # once in a process
def _complain(message: str) -> None:
    logger.warning(message)


def _unknown(name: str) -> str:
    close = get_close_matches(name, names(), n=1)
    if close:
        return f"there is no domain {name!r}; did you mean {close[0]!r}?"
    return (
        f"the domain {name!r} is not installed; install the package that has it, or give --domain MODULE:OBJECT "
        f"or, as recipes need it, SWEETRL_DOMAINS=MODULE:OBJECT in the environment (here are {', '.join(names())})"
    )


# ---------------------------------------------------------------- loading one


@cache
def _loaded(spec: str) -> Domain:
    module, _, attribute = spec.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(error)}"
        if module.endswith(".py"):
            raise UsageError(
                f"{spec}: names a file; write {module.removesuffix('.py')}:{attribute}"
            ) from error
        raise UsageError(
            f"{spec}: cannot load this domain: {reason}; give MODULE:OBJECT of a package that is installed, or of a "
            "module in a folder that PYTHONPATH names (PYTHONPATH=. for this folder)"
        ) from error
    return _checked(found, spec)


def _checked(found: object, source: str) -> Domain:
    if not isinstance(found, Domain):
        raise UsageError(
            f"{source}: is no sweetrl.Domain but a {type(found).__name__}; name the domain itself"
        )
    if not (isinstance(found.secret, type) and issubclass(found.secret, Secret)):
        raise UsageError(f"{source}: the secret of the domain must be a subclass of sweetrl.Secret")
    return found


@cache
def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _from_entry(entry: EntryPoint) -> Domain:
    where = f" of {entry.dist.name}" if entry.dist is not None else ""
    try:
        found = _loaded(entry.value)
    except UsageError as error:
        raise UsageError(f"the entry point {entry.name}{where} is broken: {error}") from error
    if found.name != entry.name:
        raise UsageError(f"the entry point {entry.name}{where} has a domain of another name: {found.name}")
    return found


def _named_by_variable() -> dict[str, Domain]:
    return _from_variable(os.environ.get(VARIABLE, ""))


@cache
def _from_variable(value: str) -> dict[str, Domain]:
    domains = [_loaded(spec.strip()) for spec in value.split(",") if spec.strip()]
    return {domain.name: domain for domain in domains}


# ---------------------------------------------------------------- what they offer


def find_generator(name: str) -> Generator | None:
    """The generator of tasks of a name, whichever domain has it."""
    return next((found for domain in all_domains() if (found := domain.generators.get(name))), None)


def find_prompt(name: str) -> Prompt | None:
    """The prompt of a name, whichever domain has it."""
    return next(
        (prompt for domain in all_domains() for prompt in domain.prompts if prompt.source == name), None
    )


def domain_of_scorer(scorer: str) -> Domain | None:
    """The domain of a scorer, by the scorer's name; None if no domain matches."""
    of = [name for name in names() if scorer.startswith(f"{name}-")]
    return find_domain(max(of, key=len)) if of else None


def labels_of_scorer(scorer: str) -> Labels:
    """The words of a scorer's domain; general words where it is unknown."""
    domain = domain_of_scorer(scorer)
    return Labels() if domain is None else domain.labels


def reference_text(task: Task) -> str:
    """The text of a task's secret that critics and collaborators read."""
    domain = domain_of(task)
    return domain.reference(domain.secret_of(task))


def only_domain(tasks: Iterable[Task], source: str) -> Domain:
    """The one domain of these tasks; prompts and scorers depend on it."""
    found = sorted({task.domain for task in tasks})
    if len(found) > 1:
        raise DataError(f"{source}: has {' and '.join(found)} tasks; take them one after the other")
    return find_domain(found[0])
