"""Lines as the console producer takes them apart."""

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.line_reader import Line, LineReader


def read(text: bytes, **properties: str) -> list[Line]:
    reader = LineReader.from_properties({name.replace("_", "."): value for name, value in properties.items()})
    return list(reader.read(text.splitlines(keepends=True)))


def test_a_line_is_a_value_without_its_end():
    assert read(b"one\ntwo\r\n\nlast") == [Line(None, value, []) for value in (b"one", b"two", b"", b"last")]


def test_key_and_headers_come_before_the_value_and_only_the_first_separators_count():
    (line,) = read(b"h1:v:1,h2:\tkey\tval\tue\n", parse_key="true", parse_headers="TRUE")
    assert line == Line(b"key", b"val\tue", [("h1", b"v:1"), ("h2", b"")])


def test_separators_may_be_several_characters():
    (line,) = read(b"a=1;b=2 | k->v", parse_key="true", parse_headers="true", key_separator="->", headers_delimiter=" | ",
                   headers_separator=";", headers_key_separator="=")  # fmt: skip
    assert line == Line(b"k", b"v", [("a", b"1"), ("b", b"2")])


def test_the_null_marker_stands_for_null_in_every_field():
    keyed = read(b"h:NULL\tNULL\tNULL\n", parse_key="true", parse_headers="true", null_marker="NULL")
    assert keyed == [Line(None, None, [("h", None)])]
    assert read(b"NULL\tk\tv", parse_key="true", parse_headers="true", null_marker="NULL") == [Line(b"k", b"v", [])]


@pytest.mark.parametrize(
    ("line", "properties", "message"),
    [
        (b"ok\tv\nnokey", {"parse_key": "true"}, "No key separator found on line number 2: 'nokey'"),
        (b"v", {"parse_headers": "true"}, "No headers delimiter found on line number 1: 'v'"),
        (b"bad\tv", {"parse_headers": "true"}, "Line 1: header 'bad' has no separator"),
        (b"N:1\tv", {"parse_headers": "true", "null_marker": "N"}, "A header's key is the null marker on line number 1"),
    ],
)
def test_a_line_that_does_not_fit_is_named(line, properties, message):
    with pytest.raises(CommandFailed, match=message):
        read(line, **properties)


def test_errors_may_be_ignored():
    assert read(b"nokey", parse_key="true", ignore_error="true") == [Line(None, b"nokey", [])]
    assert read(b"h\tv", parse_headers="true", ignore_error="true") == [Line(None, b"v", [("h", None)])]


@pytest.mark.parametrize(
    "properties",
    [
        {"parse_headers": "true", "headers_separator": ":"},
        {"parse_key": "true", "null_marker": "\t"},
        {"parse_key": "true", "key_separator": ""},
        {"parse_kye": "true"},
    ],
)
def test_properties_that_cannot_work_are_refused_before_the_first_line(properties):
    with pytest.raises(CommandFailed):
        read(b"", **properties)
