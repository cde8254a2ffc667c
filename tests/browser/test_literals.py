"""Object literals read without running them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.browser.literals import read_object

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(), VALUES, max_size=3))
def test_json_is_read_as_json(value: dict[str, Any]) -> None:
    assert read_object(json.dumps(value, indent=1) + "; more()") == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{a: 1, 'b': \"x\", 50: '#fff',}", {"a": 1, "b": "x", "50": "#fff"}),
        ("{ // why\n a: [1, -2.5, true, null,], /* so */ }", {"a": [1, -2.5, True, None]}),
        ("{a: 'it\\'s \"it\"', b: `two\nlines`}", {"a": 'it\'s "it"', "b": "two\nlines"}),
        ("{}", {}),
        ("{a: 123456789012345678901234567890}", {"a": 1.2345678901234568e29}),
        (r"{'\ud800': ['x\udfffy', '\ud83d\ude00']}", {"\ufffd": ["x\ufffdy", "\U0001f600"]}),
    ],
)
def test_what_javascript_adds_to_json_is_read(source: str, value: dict[str, Any]) -> None:
    assert read_object(source) == value


@pytest.mark.parametrize(
    "source",
    [
        "{a: require('x')}",
        "{a: () => 1}",
        "{...other}",
        "{a: other}",
        "{a: NaN}",
        "{a: `${x}`}",
        "{a: 1",
        "[1]",
        "",
        "{" * 5000,
        "{a:[" * 100_000,
    ],
)
def test_what_is_not_plain_data_is_refused(source: str) -> None:
    assert read_object(source) is None


@given(st.text())
def test_any_text_is_read_or_refused(source: str) -> None:
    found = read_object("{" + source)
    assert found is None or isinstance(found, dict)
