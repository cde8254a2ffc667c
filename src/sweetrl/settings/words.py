"""Settings as words of a command line, and which command lines mean the same."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from msgspec import NODEFAULT

from sweetrl.settings.schema import Section, settings_fields
from sweetrl.settings.stages import (
    BudgetSettings,
    DialogueSettings,
    PairSettings,
    RankSettings,
    SamplingSettings,
    ScorerSettings,
    ScoringSettings,
    SeededTurnPairSettings,
    ShardSettings,
    TurnLimitSettings,
    ValueSettings,
)

Notice = Callable[[str], None]
"""Takes one line for the user."""

RENAMED = {
    "blind": "no_reference",
    "floor": "min_lr_ratio",
    "imitation": "sft_weight",
    "kind": "domain",
    "learner": "algorithm",
    "method": "algorithm",
    "nll": "nll_weight",
    "spreads": "min_gap_std",
    "start": "init_from",
}
"""Options and recipe keys of the first edition that have another name now. The old ones work where the new ones do."""

STAGES: Mapping[str, tuple[type[Section], ...]] = {
    "rollout": (DialogueSettings, BudgetSettings),
    "score": (ScorerSettings, ScoringSettings, ShardSettings),
    "pairs": (PairSettings,),
    "candidates": (SamplingSettings,),
    "rank": (RankSettings,),
    "turn-pairs": (SeededTurnPairSettings,),
    "values": (ValueSettings, ScorerSettings),
    "evaluate": (DialogueSettings, ScorerSettings, ScoringSettings),
}
"""The settings of each command that makes records."""


def option_words(*settings: Section) -> Iterator[str]:
    """Settings as options; what is at its default is left out."""
    for section in settings:
        for field in settings_fields(type(section)):
            value = field.of(section)
            if value is True:
                yield field.option
            elif value is not None and value != field.default:
                yield from (field.option, str(value))


def option_value(words: Sequence[str], option: str) -> str | None:
    """The value of an option in a command line, given there or the command's default."""
    value = _options(words)[1].get(option, _defaults(words[0]).get(option))
    return None if value == str(None) else value


def current_words(words: Sequence[str], known: Container[str], notice: Notice) -> list[str]:
    """The words of a command line with options by their new names; `known` are the options of the command."""
    return [_current(word, known, notice) if word.startswith("--") else word for word in words]


def _current(word: str, known: Container[str], notice: Notice) -> str:
    option, equals, value = word.partition("=")
    new = _renamed_option(option)
    if new == option or option in known or new not in known:
        return word
    notice(f"{option} is called {new} now; the old name will go")
    return new + equals + value


def renamed(name: str) -> str:
    """The current name of an option or key, in Python's spelling."""
    return RENAMED.get(name, name)


def _renamed_option(option: str) -> str:
    return "--" + renamed(option[2:].replace("-", "_")).replace("_", "-")


def same_command(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two command lines are equivalent: in any order, by old names or new, with or without defaults."""
    return _meaning(first) == _meaning(second)


def _meaning(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    plain, options = _options(words)
    defaults = _defaults(words[0])
    return plain, {name: value for name, value in options.items() if defaults.get(name) != value}


def _options(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words that are no options, and the options with their values; a flag has none."""
    plain: list[str] = []
    options: dict[str, str] = {}
    option = ""
    for word in words:
        if word.startswith("--") or word == "-o":
            option = word if word == "-o" else _renamed_option(word)
            options[option] = ""
        elif option:
            options[option], option = word, ""
        else:
            plain.append(word)
    return plain, options


def _defaults(command: str) -> dict[str, str]:
    """The options of a command that have a default."""
    return {
        field.option: str(field.default)
        for section in STAGES.get(
            command, (TurnLimitSettings,)
        )  # of all that training takes, plans give this one
        for field in settings_fields(section)
        if field.default is not NODEFAULT
    }
