"""Descriptions of settings: each field once, for the command line, recipes, run cards and docs.

A settings class is a msgspec struct whose fields carry a `Setting`. Sections nest: their fields become options beside
each other, prefixed by the section's name where it is `PREFIXED` (`agent.temperature` is `--agent-temperature`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

S = TypeVar("S", bound="Section")

Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Rate = Annotated[float, Meta(gt=0)]
Name = Annotated[str, Meta(min_length=1)]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that belong together: options of a command, or a section of a recipe."""


class Record(Enum):
    """What a run card records of a setting."""

    VALUE = "value"
    """The value itself."""
    UNLESS_DEFAULT = "unless default"
    """The value, unless it is the default: cards from before the setting existed stay valid."""
    DERIVED = "derived"
    """Something made from it, such as the name of the scorer or the hash of a prompt."""
    NOTHING = "nothing"
    """It does not change results."""


@dataclass(frozen=True)
class Setting:
    """The description of a field, beyond its type and default."""

    help: str
    """One sentence for `--help`."""
    record: Record = Record.VALUE
    metavar: str = ""
    """The placeholder of the value in `--help`; the unit, if it has one."""
    default: str = ""
    """The behaviour without it, where the default is None."""
    card: str = ""
    """Its key in run cards; the field's name if empty."""
    option: str | None = None
    """Its name on the command line; the field's name if None. Empty: the prefix alone."""


PREFIXED = "prefixed"
"""Marks a nested section whose options begin with its name."""


@dataclass(frozen=True)
class Field:
    """One setting of a class, found in the class itself or in a section of it."""

    path: tuple[str, ...]
    """The attributes that lead to it."""
    name: str
    """The option without its dashes, in Python's spelling."""
    type: Any
    """Without bounds and other metadata."""
    default: Any
    """`NODEFAULT` if it must be given."""
    setting: Setting
    low: float | None = None
    high: float | None = None

    @property
    def option(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")

    def of(self, settings: Section) -> Any:
        """Its value; None in a section that is not there."""
        value: Any = settings
        for attribute in self.path:
            value = None if value is None else getattr(value, attribute)
        return value


@cache
def settings_fields(section: type[Section]) -> tuple[Field, ...]:
    """All settings of a class, nested sections included."""
    return tuple(_fields(section))


def _fields(section: type[Section]) -> Iterator[Field]:
    for each in fields(section):
        plain, marks = _plain(each.type), _marks(each.type)
        nested, setting = section_in(plain), next((mark for mark in marks if isinstance(mark, Setting)), None)
        if nested is not None:
            prefix = f"{each.name}_" if PREFIXED in marks else ""
            for inner in settings_fields(nested):
                yield _nested(inner, each.name, prefix, optional=each.default is None)
        elif setting is not None:
            name = each.name if setting.option is None else setting.option
            bounds = [mark for mark in marks if isinstance(mark, Meta)]
            low = next((meta.ge for meta in bounds if meta.ge is not None), None)
            high = next((meta.le for meta in bounds if meta.le is not None), None)
            yield Field((each.name,), name, plain, each.default, setting, low, high)


def _nested(field: Field, section: str, prefix: str, *, optional: bool) -> Field:
    """A field of a nested section, as seen from outside."""
    missing = optional and field.default is NODEFAULT
    return replace(
        field,
        path=(section, *field.path),
        name=(prefix + field.name).strip("_"),
        type=field.type | None if missing else field.type,
        default=None if missing else field.default,
    )


def build(section: type[S], given: Mapping[str, Any]) -> S:
    """The settings from values by option name. An optional section without its required values is None."""
    values: dict[tuple[str, ...], Any] = {
        field.path: given[field.name] for field in settings_fields(section) if field.name in given
    }
    return _built(section, values)


def _built(section: type[S], values: Mapping[tuple[str, ...], Any]) -> S:
    chosen: dict[str, Any] = {}
    for each in fields(section):
        nested = section_in(_plain(each.type))
        if nested is None:
            if (each.name,) in values:
                chosen[each.name] = values[each.name,]
            continue
        inner = {path[1:]: value for path, value in values.items() if path[0] == each.name}
        required = [field.path for field in settings_fields(nested) if field.default is NODEFAULT]
        absent = each.default is None and any(inner.get(path) is None for path in required)
        chosen[each.name] = None if absent else _built(nested, inner)
    return section(**chosen)


def recorded(settings: Section) -> dict[str, Any]:
    """The entries of a run card for the settings as they are; the stage adds derived values."""
    kept = {}
    for field in settings_fields(type(settings)):
        value, setting = field.of(settings), field.setting
        late = setting.record is Record.UNLESS_DEFAULT and value != field.default
        if late or setting.record is Record.VALUE:
            kept[setting.card or field.name] = value
    return kept


# ---------------------------------------------------------------- types


def section_in(wanted: Any) -> type[Section] | None:
    """The section that a type is, or may be."""
    for each in (wanted, *get_args(wanted)):
        if isinstance(each, type) and issubclass(each, Section):
            return each
    return None


def _marks(wanted: Any) -> list[Any]:
    """All metadata of a type, that of its members included."""
    if get_origin(wanted) is Annotated:
        inner, *marks = get_args(wanted)
        return [*_marks(inner), *marks]
    if get_origin(wanted) in (Union, UnionType):
        return [mark for member in get_args(wanted) for mark in _marks(member)]
    return []


def _plain(wanted: Any) -> Any:
    """The type without metadata."""
    if get_origin(wanted) is Annotated:
        return _plain(get_args(wanted)[0])
    if get_origin(wanted) in (Union, UnionType):
        members = [_plain(each) for each in get_args(wanted) if each is not NoneType]
        return Union[tuple(members)] | None  # noqa: UP007
    return wanted
