from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.web.problems import Problem
from tidelog.console.web.values import (
    Param,
    fields,
    flag,
    listed,
    mapping,
    number,
    one_of,
    optional,
    parsed,
    query_values,
    text,
    topic_name,
)


@pytest.mark.parametrize("found", [True, 1.0, "1.0", "", " 1", "1_0", "٣", None, [], "9" * 40, 11, -1])
def test_numbers_are_whole_and_inside_of_their_bounds(found: Any) -> None:
    with pytest.raises(ValueError):
        number(0, 10)(found)


@pytest.mark.parametrize("found", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, 1, None, "a\n"])
def test_names_that_no_topic_has(found: Any) -> None:
    with pytest.raises(ValueError):
        topic_name(found)


def test_values_of_each_kind() -> None:
    assert number(0)("9223372036854775807") == (1 << 63) - 1
    assert topic_name("a.B_c-1") == "a.B_c-1"
    assert flag("1") is True
    assert flag(False) is False
    assert one_of(["a"])("a") == "a"
    assert optional(text(3))(None) is None
    assert listed(number(0), 2)(["1", 2]) == [1, 2]
    assert mapping(number(0), text(1), 1)({"1": "a"}) == {1: "a"}
    assert fields(a=Param(text(1), "x"), b=Param(flag, required=True))({"b": True}) == {"a": "x", "b": True}


@pytest.mark.parametrize(
    ("parse", "found"),
    [
        (flag, "yes"),
        (one_of(["a"]), "b"),
        (text(2), "abc"),
        (text(2, least=1), ""),
        (listed(flag, 1), [True, True]),
        (listed(flag, 1, least=1), []),
        (listed(flag, 1), "x"),
        (mapping(text(9), flag, 1), {"a": True, "b": True}),
        (mapping(text(9), flag, 1), []),
        (fields(a=Param(flag)), {"b": True}),
        (fields(a=Param(flag, required=True)), {}),
        (fields(a=Param(flag)), []),
    ],
)
def test_other_values_are_refused(parse: Any, found: Any) -> None:
    with pytest.raises(ValueError):
        parse(found)


def test_a_query_names_each_parameter_once_unless_it_may_be_repeated() -> None:
    known = {"a": Param(number(0), 5), "b": Param(text(9), many=True, most=2)}
    assert query_values([], known) == {"a": 5, "b": []}
    assert query_values([("b", "x"), ("b", "y")], known) == {"a": 5, "b": ["x", "y"]}
    for query in ([("a", "1"), ("a", "2")], [("b", "x")] * 3, [("c", "1")], [("a", "x")]):
        with pytest.raises(Problem):
            query_values(query, known)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), JSON))
def test_any_body_is_typed_or_refused(body: dict[str, Any]) -> None:
    known = {
        "a": Param(number(0, 10)),
        "b": Param(listed(fields(x=Param(text(3))), 2), []),
        "c": Param(mapping(text(3), optional(flag), 2), {}),
    }
    try:
        found = parsed(body, known)
    except ValueError:
        return
    assert set(found) == set(known)


def test_half_a_surrogate_is_no_text() -> None:
    with pytest.raises(ValueError, match="Unicode"):
        text()("a\ud800")
