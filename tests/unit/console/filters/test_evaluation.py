from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.filters.evaluation import MAX_PARSED, Part, Subject, compiled
from tidelog.console.filters.tokens import FilterError

NOW = 1_764_309_600_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inside, max_size=3),
    max_leaves=10,
)


def part(text: str | None) -> Part:
    return Part(lambda: text, len(text or ""))


def takes(text: str, value: str | None = None, key: str | None = "k", **headers: str) -> bool:
    subject = Subject(3, 77, NOW, part(key), part(value), {name: part(each) for name, each in headers.items()})
    return compiled(text, NOW)(subject)


def test_numbers_compare_exactly() -> None:
    value = '{"id": 9007199254740993, "price": 1.5}'
    assert takes("value.id == 9007199254740993", value)
    assert not takes("value.id == 9007199254740992", value)
    assert takes("value.price > 1 and value.price <= 1.5", value)
    assert not takes('value.price == "1.5"', value)


def test_booleans_are_no_numbers() -> None:
    assert takes("value.a == true", '{"a": true}')
    assert not takes("value.a == 1", '{"a": true}')
    assert not takes("value.a == true", '{"a": 1}')
    assert not takes("value.a > 0", '{"a": true}')


def test_null_and_missing_differ() -> None:
    assert takes("value == null", None)
    assert takes("value.a == null", '{"a": null}')
    assert not takes("value.a == null", "{}")
    assert takes("value.a != null", "{}")
    assert takes("has(value.a)", '{"a": null}')
    assert not takes("has(value.a)", "{}")


def test_a_whole_value_is_a_text_or_the_json_in_it() -> None:
    assert takes('value == "5"', "5")
    assert takes("value == 5", "5")
    assert takes("value in [4, 5]", "5")
    assert takes('value contains "ell"', "hello")
    assert takes('value contains i "ELL"', "hello")
    assert not takes('value contains "ELL"', "hello")
    assert takes('key startswith "k" and key endswith "k"')


def test_places_times_sizes_and_headers() -> None:
    assert takes("partition == 3 and offset < 78 and timestamp <= now")
    assert takes("size(value) == 2 and size(key) == 1", "ab")
    assert takes('header["t"] == "x" and not has(header["t"].a)', t="x")
    assert not takes('header["u"] == "x"', t="x")
    assert takes('header["t"].a in ["x", "y"]', t='{"a": "y"}')


def test_arrays_by_index() -> None:
    assert takes('value.items[1].sku == "b"', '{"items": [{"sku": "a"}, {"sku": "b"}]}')
    assert not takes('value.items[2].sku == "b"', '{"items": []}')


def test_patterns_are_linear() -> None:
    assert takes('value matches "^err.*(a|b)$"', "error b")
    assert takes('value matches i "ERR"', "error")
    assert not takes('value matches "(x+x+)+y"', "x" * 10_000)
    with pytest.raises(FilterError, match="pattern"):
        compiled('value matches "("', NOW)


def test_what_is_no_json_has_no_paths() -> None:
    assert not takes("value.a == 1", "{not json")
    assert not takes("value.a == 1", "[" * 100_000)
    assert not takes("value.a == 1", '{"a": 1' + " " * MAX_PARSED + "}")
    assert not takes("value.a == 1", '{"a": ' + "1" * 10_000 + "}")


def test_a_text_alone_is_looked_for_in_key_and_value() -> None:
    assert takes('"k"', None)
    assert takes('"b"', "abc")
    assert not takes('"z"', "abc")


@given(JSON, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "contains", "in"]), st.sampled_from(["a", "b.c", "[0]"]))
def test_no_value_makes_a_filter_fail(value: object, operator: str, path: str) -> None:
    literal = {"contains": '"x"', "in": '[1, "x", null]'}.get(operator, "1")
    step = path if path.startswith("[") else f".{path}"
    assert takes(f"value{step} {operator} {literal}", json.dumps(value)) in (True, False)


@given(JSON)
def test_not_is_the_opposite(value: object) -> None:
    text = json.dumps(value)
    assert takes("value.a == 1", text) is not takes("not value.a == 1", text)
    assert takes("value.a == 1", text) is not takes("value.a != 1", text)


def test_a_pattern_that_is_no_text_is_refused() -> None:
    with pytest.raises(FilterError):
        compiled('value matches "\\ud800"', 0)


def test_a_pattern_of_many_instructions_is_refused() -> None:
    with pytest.raises(FilterError, match="takes too long"):
        takes('value matches "(a|b){1000}(b|c){1000}"')
    assert takes('value matches "^\\\\pL+$"', "Äx")
