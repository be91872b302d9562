"""YAML as values with lines, filled from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.pipeline.samples import RIDES
from tidelog.model.errors import ConfigError
from tidelog.pipeline.yaml_text import load, parse


def test_values_come_with_the_lines_of_their_keys() -> None:
    document = parse("a: 1\nb:\n  c: [x, true]\n", "f", {})
    assert document.tree == {"a": 1, "b": {"c": ["x", True]}}
    assert document.lines == {("a",): 1, ("b",): 2, ("b", "c"): 3}


def test_variables_are_filled_in_and_missing_ones_told() -> None:
    assert parse("a: ${X}-${Y:-z}", "f", {"X": "1"}).tree == {"a": "1-z"}
    with pytest.raises(ConfigError, match=r"f, line 2: the environment has no PASSWORD: set it"):
        parse("a: 1\nb: ${PASSWORD}", "f", {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "f, line 1: this is not YAML"),
        ("a: 1\na: 2", "f, line 2: a is there twice"),
        ("", "f is empty"),
        ("a: 1\nb: x\x07y", "f, line 2: this is not YAML: it has the character #x0007"),
        ("s:\n  start: 2026-02-30T00:00:00Z", "f, line 2: s.start: there is no 2026-02-30T00:00:00Z"),
        ("a: [!!int x]", "f, line 1: a.0: there is no x"),
        ("x: " + "[" * 60 + "]" * 60, "nested too deeply"),
    ],
)
def test_what_is_no_yaml_is_told(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse(text, "f", {})


def test_a_file_is_loaded_and_a_missing_one_told(tmp_path: Path) -> None:
    file = tmp_path / "rides.yaml"
    file.write_text(RIDES)
    assert load(file).name == "rides"
    with pytest.raises(ConfigError, match="tidelog pipeline init"):
        load(tmp_path / "nope.yaml")
