"""Rows on the screen."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity
from tidelog.pipeline.sinks.console import ConsoleSink


class Rows:
    def show(self, count: int, truncate: int) -> None:
        print(f"{count} rows")


def test_the_first_rows_are_shown_under_their_batch(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink(SinkSpec("c", "console", options=(("rows", "3"),)))
    sink.write(Rows(), BatchIdentity("p", "c", 7, ()))
    assert capsys.readouterr().out == "-- c, batch 7\n3 rows\n"
    assert not sink.committed(BatchIdentity("p", "c", 7, ()))


def test_a_wrong_number_of_rows_is_told() -> None:
    with pytest.raises(ConfigError, match="rows: 'many'"):
        ConsoleSink(SinkSpec("c", "console", options=(("rows", "many"),)))
