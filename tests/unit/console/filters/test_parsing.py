from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.filters.parsing import Anywhere, Both, Compare, Either, Has, Not, Path, parse
from tidelog.console.filters.tokens import FilterError

NOW = 1_764_309_600_000
WORDS = st.sampled_from(
    [
        "value",
        "key",
        "header",
        "offset",
        "timestamp",
        "size",
        "now",
        "has",
        ".",
        "a",
        "[",
        "]",
        "(",
        ")",
        "and",
        "or",
        "not",
        "==",
        "!=",
        "<",
        ">=",
        "contains",
        "i",
        "matches",
        "in",
        '"x"',
        "1",
        "1.5",
        "15m",
        "-",
        "+",
        ",",
        "null",
        "true",
    ]
)


def test_and_binds_closer_than_or_and_not_closer_than_both() -> None:
    found = parse('not key == "a" and offset > 1 or partition == 0', NOW)
    assert found == Either(
        (
            Both((Not(Compare(Path("key"), "==", "a")), Compare(Path("offset"), ">", 1))),
            Compare(Path("partition"), "==", 0),
        )
    )


def test_paths_go_through_names_quotes_and_indexes() -> None:
    assert parse('value.items[0]["a b"].c == 1', NOW) == Compare(Path("value", ("items", 0, "a b", "c")), "==", 1)
    assert parse('has(header["trace"].id)', NOW) == Has(Path("header", ("trace", "id")))
    assert parse("size(key) < 3", NOW) == Compare(Path("size(key)"), "<", 3)


def test_times_are_epoch_milliseconds() -> None:
    assert parse('timestamp >= "2025-11-28T06:00:00Z"', NOW) == Compare(Path("timestamp"), ">=", NOW)
    assert parse('timestamp >= "2025-11-28T08:00:00+02:00"', NOW) == Compare(Path("timestamp"), ">=", NOW)
    assert parse("timestamp > now - 15m", NOW) == Compare(Path("timestamp"), ">", NOW - 900_000)
    assert parse("timestamp > now", NOW) == Compare(Path("timestamp"), ">", NOW)


def test_a_text_alone_is_looked_for_everywhere() -> None:
    assert parse('"abc"', NOW) == Anywhere("abc")


def test_a_trailing_i_ignores_case() -> None:
    assert parse('key contains i "A"', NOW) == Compare(Path("key"), "contains", "A", True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "key",
        "key ==",
        "key == 1 2",
        "keyy == 1",
        "value. == 1",
        "value[-1] == 1",
        "header == 1",
        "header[0] == 1",
        'offset contains "1"',
        'offset == "1"',
        "offset == true",
        "value > null",
        "value contains 1",
        "value in []",
        "value in [" + ", ".join("1" for _ in range(101)) + "]",
        "value == now",
        'timestamp == "yesterday"',
        "timestamp > now - 15",
        "size(header) > 1",
        "has(offset)",
        "has(value)",
        "(key == 1",
        "not " * 40 + "key == 1",
        "(" * 40 + "key == 1" + ")" * 40,
    ],
)
def test_what_cannot_be_used_is_refused_with_a_column(text: str) -> None:
    with pytest.raises(FilterError) as found:
        parse(text, NOW)
    assert 0 <= found.value.at <= len(text)


@given(st.lists(WORDS, max_size=30))
def test_any_words_give_a_tree_or_an_error(words: list[str]) -> None:
    text = " ".join(words)
    try:
        parse(text, NOW)
    except FilterError as error:
        assert 0 <= error.at <= len(text)
