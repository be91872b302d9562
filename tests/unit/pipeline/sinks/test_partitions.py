"""Folders by columns and by time."""

from __future__ import annotations

import pytest

from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.partitions import partition_columns


def test_a_unit_of_a_time_is_a_column_of_its_own() -> None:
    zone, day, hour = partition_columns(("zone", "day(at)", "hour(at)"))
    assert (zone.name, zone.sql()) == ("zone", "`zone`")
    assert (day.name, day.sql()) == ("at_day", "to_date(`at`)")
    assert (hour.name, hour.sql()) == ("at_hour", "date_format(`at`, 'yyyy-MM-dd-HH')")


@pytest.mark.parametrize("wrong", ["week(at)", "day(at", "a b", ""])
def test_anything_else_is_told(wrong: str) -> None:
    with pytest.raises(ConfigError, match="like day\\(event_time\\)"):
        partition_columns((wrong,))
