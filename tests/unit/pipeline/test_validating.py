"""All mistakes of a file at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.pipeline.samples import RIDES
from tidelog.model.errors import ConfigError
from tidelog.pipeline.sql_check import Kind, Parser
from tidelog.pipeline.validating import validated


@contextmanager
def strict() -> Iterator[Parser]:
    """A parser that knows one word."""

    def parse(kind: Kind, text: str) -> str:
        return "Syntax error" if "SELEC " in text else ""

    yield parse


@contextmanager
def missing() -> Iterator[Parser]:
    raise ConfigError("PySpark is not installed.")
    yield


def test_mistakes_in_sql_stand_among_the_others(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        RIDES.replace("SELECT", "SELEC ").replace("localhost:9092", "localhost").replace("from: silver", "from: gold")
    )
    with pytest.raises(ConfigError) as caught:
        validated(str(file), print, strict)
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0].rpartition(" ")[2] for line in lines] == ["2", "11", "16"]
    assert "transforms.silver.sql: Syntax error" in lines[1]


def test_without_spark_the_rest_is_checked_and_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(RIDES)
    said: list[str] = []
    assert validated(str(file), said.append, missing).name == "rides"
    assert said == ["SQL and schemas were not checked: PySpark is not installed."]
