"""Filters that Spark passes to a batch read, as far as they reduce what is fetched: topic, partition, offset.

They are hints: Spark evaluates every filter again, so a filter that is not recognized here costs speed, never rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidelog.spark.planning import OffsetRange

Condition = tuple[str, str, Any]
"""(column, operator, value): operators are Spark's class names."""
_OPERATORS = ("EqualTo", "In", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")
_COLUMNS = ("topic", "partition", "offset")


def pushed(filters: Iterable[Any]) -> tuple[Condition, ...]:
    """The filters that are recognized here."""
    found: list[Condition] = []
    for condition in filters:
        kind, attribute = type(condition).__name__, tuple(getattr(condition, "attribute", ()))
        value = getattr(condition, "value", None)
        if kind not in _OPERATORS or len(attribute) != 1 or attribute[0] not in _COLUMNS or value is None:
            continue
        if kind == "In" or attribute[0] == "topic" or isinstance(value, int):
            found.append((attribute[0], kind, tuple(value) if kind == "In" else value))
    return tuple(found)


def narrowed(whole: OffsetRange, conditions: Iterable[Condition]) -> OffsetRange | None:
    """The part of a range that can meet all conditions; None if there is none."""
    start, end = whole.start, whole.end
    for column, operator, value in conditions:
        if column != "offset":
            mine = whole.at.topic if column == "topic" else whole.at.partition
            if not _holds(mine, operator, value):
                return None
        elif operator == "EqualTo":
            start, end = max(start, value), min(end, value + 1)
        elif operator == "GreaterThan":
            start = max(start, value + 1)
        elif operator == "GreaterThanOrEqual":
            start = max(start, value)
        elif operator == "LessThan":
            end = min(end, value)
        elif operator == "LessThanOrEqual":
            end = min(end, value + 1)
    return OffsetRange(whole.at, start, end) if start < end else None


def _holds(mine: Any, operator: str, value: Any) -> bool:
    if operator == "EqualTo":
        return bool(mine == value)
    if operator == "In":
        return mine in value
    return True
