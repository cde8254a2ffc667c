"""Prompts: texts with fields in braces that must all be filled.

    load("judge-grade").render(problem_description=..., hidden_information=..., output=...)

A field is `{name}`; every other brace is literal, `{{` and `}}` give single ones. Fields bear the names of
the published data format. A user's own file takes the place of a shipped one as a `Prompt` made of its text.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import resources

from sweetrl.errors import ConfigError

TURN_LIMIT = 10
"""How often the agent speaks at most (paper, section 4)."""

_FIELD = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Prompt:
    """A text with named fields."""

    def __init__(self, text: str, *, source: str) -> None:
        """`source` is how complaints call the text: a shipped name or a file."""
        if not text.strip():
            raise ConfigError(f"{source}: the prompt is empty; write one, or leave it out")
        self.text = text
        self.source = source
        self.fields = frozenset(name for name in _FIELD.findall(text) if name)

    def render(self, **fields: str) -> str:
        """The text with each field filled; one that is missing or unknown is an error."""
        self.check(needed=fields, offered=fields)

        def filled(match: re.Match[str]) -> str:
            return fields[match[1]] if match[1] else match[0][0]

        return _FIELD.sub(filled, self.text).strip()

    def check(self, *, needed: Iterable[str] = (), offered: Iterable[str]) -> None:
        """Refuse a text that lacks a `needed` field, or has one that is not `offered`."""
        offered = sorted(offered)
        for name in sorted(self.fields.difference(offered)):
            close = get_close_matches(name, offered, n=1)
            hint = f"did you mean {{{close[0]}}}?" if close else f"it may have: {_listed(offered)}"
            raise ConfigError(f"{self.source}: nothing fills the field {{{name}}}; {hint}")
        for name in sorted(set(needed) - self.fields):
            raise ConfigError(f"{self.source}: the prompt has no field {{{name}}}; it must use that one")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names) or "no fields"


@cache
def load(name: str, package: str = __name__) -> Prompt:
    """The prompt in `NAME.txt` of a package, or of its folder `prompts`."""
    folder = resources.files(package)
    for file in (folder / "prompts" / f"{name}.txt", folder / f"{name}.txt"):
        if file.is_file():
            return Prompt(file.read_text(encoding="utf-8"), source=name)
    raise ConfigError(f"{package} has no prompt {name!r}")


def agent_instructions(prompt: Prompt, *, turn_limit: int = TURN_LIMIT) -> str:
    """The prompt as an agent gets it, wherever it acts or learns. It may name the turn limit, and nothing else."""
    prompt.check(offered={"turn_limit"})
    fields = {"turn_limit": str(turn_limit)} if "turn_limit" in prompt.fields else {}
    return prompt.render(**fields)
