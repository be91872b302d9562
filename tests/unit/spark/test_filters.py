"""Conditions that shorten a read, and those that are left to Spark."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.spark.filters import narrowed, pushed
from tidelog.spark.planning import OffsetRange

WHOLE = OffsetRange(TopicPartition("t", 1), 10, 20)


def condition(kind: str, column: str, value: Any) -> Any:
    return make_dataclass(kind, ["attribute", "value"])((column,), value)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], (10, 20)),
        ([condition("GreaterThan", "offset", 12), condition("LessThan", "offset", 15)], (13, 15)),
        ([condition("GreaterThanOrEqual", "offset", 12), condition("LessThanOrEqual", "offset", 15)], (12, 16)),
        ([condition("EqualTo", "offset", 12)], (12, 13)),
        ([condition("EqualTo", "offset", 20)], None),
        ([condition("EqualTo", "partition", 1), condition("In", "topic", ("t", "u"))], (10, 20)),
        ([condition("EqualTo", "partition", 2)], None),
        ([condition("In", "partition", (0, 2))], None),
        ([condition("GreaterThan", "partition", 5)], (10, 20)),
        ([condition("EqualTo", "value", b"x"), condition("StringContains", "topic", "q")], (10, 20)),
        ([condition("EqualTo", "offset", None), condition("EqualTo", "offset", "12")], (10, 20)),
    ],
)
def test_a_range_becomes_what_can_fulfil_all_conditions(conditions: list[Any], expected: tuple[int, int] | None) -> None:
    found = narrowed(WHOLE, pushed(conditions))
    assert (None if found is None else (found.start, found.end)) == expected
