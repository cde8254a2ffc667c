"""The part of a large stylesheet that one page can use.

Tailwind's stylesheet has 39,000 rules; parsing it costs a browser more than everything else about a page. Pages
get the subset whose classes occur anywhere in the page's text: as scripts never run, no other rule can apply.
"""

import re
from collections import defaultdict
from typing import NamedTuple

from sweetrl.outputs import unescaped

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_CLASS = re.compile(r"\.((?:\\[0-9a-fA-F]{1,6}\s?|\\.|[-\w])+)")
_NEGATION = re.compile(r":not\([^()]*\)")
_COMMA = re.compile(r",(?![^(]*\))")
_WORD = re.compile(r"[^\s\"'<>=`]+")


class _Rule(NamedTuple):
    text: str
    condition: str
    """The `@media` line around it, or nothing."""
    needs: tuple[frozenset[str], ...]
    """For each of its selectors the classes that must all be there; empty if the rule always stays."""


class Stylesheet:
    """Minified CSS that can be cut down to a page. It must be trusted: this is no general CSS parser."""

    def __init__(self, css: str) -> None:
        self._rules = [rule for text in _blocks(_COMMENT.sub("", css)) for rule in _rules(text)]
        self._always = [index for index, rule in enumerate(self._rules) if not rule.needs]
        self._by_class: defaultdict[str, list[int]] = defaultdict(list)
        for index, rule in enumerate(self._rules):
            for name in {min(classes) for classes in rule.needs}:
                self._by_class[name].append(index)

    def for_page(self, page: str) -> str:
        """The rules that can apply to `page`, in their order."""
        there = words(page)
        candidates = {index for word in there & self._by_class.keys() for index in self._by_class[word]}
        wanted = [index for index in candidates if any(need <= there for need in self._rules[index].needs)]
        return _join([self._rules[index] for index in sorted([*self._always, *wanted])])


def words(page: str) -> set[str]:
    """Everything in a page that could be a class, in lower case: without a doctype, case does not count."""
    return {*_WORD.findall(page.lower()), *_WORD.findall(unescaped(page).lower())}


def _blocks(css: str) -> list[str]:
    """The top-level `selector{...}` pieces."""
    pieces, depth, start = [], 0, 0
    for brace in re.finditer(r"[{}]", css):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            pieces.append(css[start : brace.end()])
            start = brace.end()
    return pieces


def _rules(block: str) -> list[_Rule]:
    head, _, rest = block.partition("{")
    if head.startswith("@media"):
        return [_Rule(inner, head, _needs(inner.partition("{")[0])) for inner in _blocks(rest[:-1])]
    return [_Rule(block, "", () if head.startswith("@") else _needs(head))]


def _needs(selectors: str) -> tuple[frozenset[str], ...]:
    needs = [frozenset(_classes(selector)) for selector in _COMMA.split(selectors)]
    return tuple(needs) if all(needs) else ()


def _classes(selector: str) -> list[str]:
    return [_unescape(name).lower() for name in _CLASS.findall(_NEGATION.sub("", selector))]


def _unescape(name: str) -> str:
    return _ESCAPE.sub(lambda match: match[2] or chr(int(match[1], 16)), name)


def _join(rules: list[_Rule]) -> str:
    parts, condition = [], ""
    for rule in rules:
        if rule.condition != condition:
            parts.append(("}" if condition else "") + (rule.condition + "{" if rule.condition else ""))
            condition = rule.condition
        parts.append(rule.text)
    return "".join(parts) + ("}" if condition else "")
