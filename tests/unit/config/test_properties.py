"""Files as java.util.Properties reads and writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.config.properties import parse, parse_overrides, serialize
from tidelog.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a = 1\nb\t:\t2\nc   3", {"a": "1", "b": "2", "c": "3"}),
        ("# no\n! no\n\n   # no\n a=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=x,\\\n   y,\\\n   z\nb=1", {"a": "x,y,z", "b": "1"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a=x\\", {"a": "x"}),
        ("a=x\\\n\nb=1", {"a": "x", "b": "1"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=v", {"": "v"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a=one\\ttwo\\nthree\\qfour", {"a": "one\ttwo\nthreeqfour"}),
        ("a=\\u00e9\\u00E9", {"a": "éé"}),
        ("a=\\ud83d\\ude00", {"a": "\U0001f600"}),
        ("a=grün", {"a": "grün"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=trailing  ", {"a": "trailing  "}),
        ("\ufeffa=1", {"a": "1"}),
        ("listeners=PLAINTEXT://:9092,CONTROLLER://:9093", {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, wanted: dict[str, str]) -> None:
    assert parse(text) == wanted


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match="Line 3"):
        parse("a=1\n\nb=\\u12\n")


@given(st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), st.text(st.characters(exclude_categories=("Cs",)))))
def test_what_is_written_reads_back_as_the_same(properties: dict[str, str]) -> None:
    assert parse(serialize(properties)) == properties


def test_overrides_are_split_at_the_first_equals_sign() -> None:
    assert parse_overrides(["a=1", " b = x=y ", "a=2", "c="]) == {"a": "2", "b": "x=y", "c": ""}


@pytest.mark.parametrize("pair", ["a", "=1", " =1"])
def test_an_override_without_key_or_equals_sign_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="key=value"):
        parse_overrides([pair])
