from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.filters.tokens import MAX_CHARACTERS, FilterError, Kind, tokens


def kinds(text: str) -> list[tuple[Kind, object]]:
    return [(each.kind, each.value) for each in tokens(text)]


def test_words_numbers_texts_and_marks() -> None:
    assert kinds('value.a >= -1.5 and key == "x\\"y\\u0041"') == [
        (Kind.NAME, "value"),
        (Kind.MARK, "."),
        (Kind.NAME, "a"),
        (Kind.MARK, ">="),
        (Kind.NUMBER, -1.5),
        (Kind.NAME, "and"),
        (Kind.NAME, "key"),
        (Kind.MARK, "=="),
        (Kind.TEXT, 'x"yA'),
        (Kind.END, ""),
    ]


def test_durations_are_milliseconds_with_or_without_a_space_before() -> None:
    assert [each.value for each in tokens("now -15m") if each.kind is Kind.DURATION] == [900_000]
    assert [each.value for each in tokens("1ms 2s 3h 4d") if each.kind is Kind.DURATION] == [1, 2000, 10_800_000, 345_600_000]


def test_integers_of_64_bits_stay_exact() -> None:
    assert tokens("9007199254740993")[0].value == 9007199254740993


@pytest.mark.parametrize(
    ("text", "at", "part"),
    [
        ('key == "x', 7, "closing quote"),
        ("key = 1", 4, "=="),
        ("key == 'x'", 7, "double quotes"),
        ("a && b", 2, "words"),
        ("12abc", 0, "neither a number"),
        ('"\\q"', 1, "no escape"),
        ('"\\u12"', 1, "hexadecimal"),
        ("key # 1", 4, "means nothing"),
    ],
)
def test_an_error_names_the_column(text: str, at: int, part: str) -> None:
    with pytest.raises(FilterError) as found:
        tokens(text)
    assert (found.value.at, part in found.value.detail) == (at, True)


def test_length_and_words_are_bounded() -> None:
    with pytest.raises(FilterError):
        tokens("a" * (MAX_CHARACTERS + 1))
    with pytest.raises(FilterError):
        tokens("( " * 500)
    with pytest.raises(FilterError):
        tokens("1" * 100)


@given(st.text(max_size=200))
def test_any_text_gives_tokens_or_an_error_inside_of_it(text: str) -> None:
    try:
        found = tokens(text)
    except FilterError as error:
        assert 0 <= error.at <= len(text)
    else:
        assert found[-1].kind is Kind.END
        assert all(0 <= each.at <= len(text) for each in found)
