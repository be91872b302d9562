from __future__ import annotations

from typing import Any

import pytest

from tidelog.console.payloads.well_known import SHOWN

G = ".google.protobuf."


@pytest.mark.parametrize(
    ("name", "fields", "shown"),
    [
        (G + "Timestamp", {}, "1970-01-01T00:00:00Z"),
        (G + "Timestamp", {"seconds": 1 << 62}, {"seconds": 1 << 62}),
        (G + "Timestamp", {"seconds": "x"}, {"seconds": "x"}),
        (G + "Duration", {"seconds": 3, "nanos": 10_000_000}, "3.01s"),
        (G + "Duration", {"nanos": -1}, "-0.000000001s"),
        (G + "Duration", {"seconds": 1, "nanos": -1}, {"seconds": 1, "nanos": -1}),
        (G + "Int64Value", {}, 0),
        (G + "BoolValue", {"value": True}, True),
        (G + "Value", {}, {}),
        (G + "Value", {"null_value": "NULL_VALUE"}, None),
        (G + "Value", {"x": 1}, {"x": 1}),
        (G + "Struct", {}, {}),
        (G + "ListValue", {"values": [1]}, [1]),
        (G + "FieldMask", {"paths": ["a", "b.c"]}, "a,b.c"),
        (".confluent.type.Decimal", {"value": "AIA=", "precision": 3, "scale": 2}, "1.28"),
        (".confluent.type.Decimal", {"value": "!"}, {"value": "!"}),
    ],
)
def test_each_is_what_it_stands_for_or_its_fields(name: str, fields: dict[str, Any], shown: Any) -> None:
    assert SHOWN[name](fields) == shown
