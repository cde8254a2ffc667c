"""Encoding inside, decoding and comparing outside: agrees with `==` on honest values, and survives any junk."""

import collections
import contextlib
import datetime
import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweetrl.sandbox import BadValue, decode, same
from sweetrl.sandbox.inside.encoding import LAZY, MAX_DEPTH, Unusable, encode

BUDGET = 1 << 20
Point = collections.namedtuple("Point", "x y")

texts = st.text(st.characters(exclude_categories=()), max_size=8)
numbers = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.complex_numbers(allow_nan=False),
)
zones = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, minutes=30))])
times = st.one_of(
    st.dates(),
    st.datetimes(timezones=zones),
    st.times(),
    st.timedeltas(),
)
ranges = st.builds(range, st.integers(), st.integers(), st.integers().filter(bool))
atoms = st.one_of(st.none(), numbers, texts, st.binary(max_size=8), times, ranges)
hashables = st.recursive(
    atoms, lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3))
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Subclasses count as their base: no counts of zero, which a `Counter` ignores, and one order of keys."""
    dicts = st.dictionaries(hashables, inner, max_size=3)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Point, inner, inner),
        dicts,
        dicts.map(lambda content: collections.OrderedDict(sorted(content.items(), key=repr))),
        dicts.map(lambda content: collections.defaultdict(list, content)),
        st.dictionaries(hashables, st.integers(1), max_size=3).map(collections.Counter),
        st.sets(hashables, max_size=3),
        st.frozensets(hashables, max_size=3),
    )


values = st.recursive(atoms, containers, max_leaves=12)

# Hypothesis describes the deepest strategies at length when it has to draw again.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def round_trip(value: object) -> Any:
    return decode(encode(value, BUDGET))


@given(values)
@example(-0.0)
@example(math.inf)
@example(2**63)
@example(-(2**63))
@example(2**100_000)
@example("\ud800\udfff")
@example([{(1, (2, frozenset({3}))): {Decimal("1.10"): (Fraction(1, 3), b"\xff")}}])
@example(bytearray(b"ab"))
@example(Decimal("Infinity"))
@example(complex(math.inf, -0.0))
def test_a_value_equals_itself_after_the_journey(value: object) -> None:
    assert same(round_trip(value), value)
    assert same(value, round_trip(value))


@given(values, values)
@example(1, True)
@example(1, 1.0)
@example([1], (1,))
@example({1, 2}, frozenset({1, 2}))
@example(Decimal("0.5"), 0.5)
@example(Fraction(1, 2), Decimal("0.5"))
@example({"a": 1, "b": 2}, {"b": 2, "a": 1})
@example(Point(1, 2), (1, 2))
@example(b"a", "a")
@example(datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1))
@example(range(0), range(1, 1))
def test_two_values_compare_as_python_compares_them(left: Any, right: Any) -> None:
    assert same(round_trip(left), round_trip(right)) == bool(left == right)


@given(st.sampled_from([math.nan, [math.nan], {"a": (math.nan,)}, Decimal("NaN"), complex(0, math.nan)]))
def test_nan_equals_nothing_not_even_itself(value: object) -> None:
    assert not same(round_trip(value), round_trip(value))


def test_a_signalling_nan_is_not_equal_and_no_error() -> None:
    value = round_trip(Decimal("sNaN"))
    assert not same(value, value)


@given(st.binary(max_size=60))
@example(b"")
@example(b"[" * 100_000)
@example(b"1e999")
@example(b'{"decimal": "1e999999999999999999999"}')
@example(b'{"fraction": [1, 0]}')
@example(b'{"timedelta": [1, 2, 3, 4, 5, 6, 7, 8]}')
@example(b'{"range": [1, 2, 0]}')
@example(b'{"set": [[]]}')
@example(b'{"datetime": "2024-99-99"}')
@example(b'{"text": "00"}')
@example(b'{"float": "x"}')
@example(b'{"complex": [1]}')
@example(b'{"complex": [1, 2, 3]}')
@example(b'{"dict": [[1]]}')
@example(b'{"dict": [[{"dict": []}, 1]]}')
def test_junk_bytes_are_a_value_or_a_bad_value(junk: bytes) -> None:
    with contextlib.suppress(BadValue):
        assert same(decode(junk), 1) in (True, False)


NAMES = [
    *("tuple", "set", "frozenset", "dict", "int", "float", "text", "bytes", "complex", "decimal", "fraction"),
    *("range", "datetime", "date", "time", "timedelta", "unknown", ""),
]
trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES), inner, max_size=2)
    ),
)


@given(trees, trees)
def test_junk_json_is_a_value_or_a_bad_value(left: Any, right: Any) -> None:
    decoded = []
    for tree in (left, right):
        try:
            decoded.append(decode(json.dumps(tree).encode()))
        except BadValue:
            decoded.append(None)
    assert same(*decoded) in (True, False)


@given(st.integers(0, 3 * MAX_DEPTH))
def test_nesting_is_carried_up_to_a_depth_and_refused_beyond(depth: int) -> None:
    value: Any = 7
    for level in range(depth):
        value = (value,) if level % 2 else [value]
    try:
        assert round_trip(value) == value
    except Unusable:
        assert depth > MAX_DEPTH


@pytest.mark.parametrize(
    "value",
    ["x" * 100, [1] * 100, 2**1000, b"x" * 100, {str(n): n for n in range(50)}, [[[]] * 50], 1e300 * 1.1],
)
def test_what_exceeds_its_budget_is_refused(value: object) -> None:
    with pytest.raises(Unusable, match="larger than 10 bytes"):
        encode(value, 10)


def test_what_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Unusable):
        encode(loop, BUDGET)


@pytest.mark.parametrize("value", [object(), len, int, ..., NotImplemented])
def test_what_has_no_plain_form_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(Unusable, match="has no plain form"):
        encode(value, BUDGET)


@pytest.mark.parametrize("value", [iter([1, "a"]), (n for n in (1, "a")), map(str, [1, 2]), reversed([1, 2])])
def test_an_iterator_arrives_with_what_it_yields_and_equals_nothing(value: Any) -> None:
    encoded = encode(value, BUDGET)
    assert LAZY in encoded
    assert not same(decode(encoded), decode(encoded))
    assert len(list(decode(encoded))) == 2


def test_views_of_a_dict_arrive_as_views() -> None:
    source = {"a": 1, ("b", 2): [3]}
    assert round_trip(source.keys()) == source.keys()
    assert list(round_trip(source.values())) == [1, [3]]
    assert round_trip(source.items()) == source.items()


def test_an_iterator_without_an_end_is_refused() -> None:
    with pytest.raises(Unusable, match="larger than"):
        encode(itertools.count(), 4096)


@given(texts)
def test_no_text_looks_lazy(text: str) -> None:
    assert LAZY not in encode(['{"lazy ' + text, {text: LAZY}], BUDGET)
