"""Keys read one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sections import Document, Section
from tidelog.pipeline.yaml_text import parse


def section(**found: Any) -> Section:
    return Document(found, "f", {("a",): 7}).root(found)


def test_durations_have_units() -> None:
    assert section(a="15m").duration_ms("a", 1) == 900_000
    assert section().duration_ms("a", 250) == 250
    for wrong in ("15", "m", "0s", "3 weeks"):
        with pytest.raises(ConfigError, match=r"f, line 7: a: .* must be a number with a unit"):
            section(a=wrong).duration_ms("a", 1)


@pytest.mark.parametrize(
    ("read", "value", "says"),
    [
        ("text", {"x": 1}, "must be a text, and is a mapping"),
        ("names", [], "must be a list of texts"),
        ("names", [None], "must be a list of texts"),
        ("pairs", [1], "here must be keys with values, and there is a list"),
        ("number", True, "must be a whole number from 1 on, and is True"),
        ("number", 0, "must be a whole number from 1 on, and is 0"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told(read: str, value: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        getattr(section(a=value), read)("a")


def test_a_missing_text_and_a_wrong_flag_are_told() -> None:
    with pytest.raises(ConfigError, match="f: a is missing"):
        section().text("a")
    with pytest.raises(ConfigError, match="must be true or false"):
        section(a="yes").flag("a", False)


def test_settings_of_others_are_kept_as_texts_in_order() -> None:
    assert section(a={"b": 1, "a": True}).pairs("a") == (("a", "true"), ("b", "1"))


def test_a_text_is_what_was_written_though_yaml_takes_it_for_something_else() -> None:
    text = "a: 0123\nb: 1.10\nc: [007, 1.10, 12:30:45, no]\nd: 2026-01-31\ne: yes\nf: 12_000\ng: 010"
    section = parse(text, "f", {}).root("abcdefg")
    assert [section.text(key) for key in "abdef"] == ["0123", "1.10", "2026-01-31", "true", "12_000"]
    assert section.names("c") == ("007", "1.10", "12:30:45", "no")
    assert section.names("g") == ("010",)
