"""What protobuf's well-known types stand for in JSON: times as ISO 8601, durations, wrappers, any JSON, decimals.

Each gets the fields of its message as they are shown, and gives them back where they do not fit: anyone may register a message
under such a name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

from tidelog.console.payloads.avro import decimal, instant

ANY: Final = ".google.protobuf.Any"
_NANOS: Final = 1_000_000_000
_Fields = Mapping[str, Any]


def _timestamp(found: _Fields) -> Any:
    seconds, nanos = found.get("seconds", 0), found.get("nanos", 0)
    if not _whole(seconds) or not _whole(nanos) or not 0 <= nanos < _NANOS:
        return dict(found)
    text = instant(seconds, nanos, _NANOS)
    return text + "Z" if text else dict(found)


def _duration(found: _Fields) -> Any:
    seconds, nanos = found.get("seconds", 0), found.get("nanos", 0)
    if not _whole(seconds) or not _whole(nanos) or abs(nanos) >= _NANOS or seconds * nanos < 0:
        return dict(found)
    sign = "-" if seconds < 0 or nanos < 0 else ""
    part = f".{abs(nanos):09d}".rstrip("0") if nanos else ""
    return f"{sign}{abs(seconds)}{part}s"


def _wrapper(default: Any) -> Callable[[_Fields], Any]:
    return lambda found: found.get("value", default) if found.keys() <= {"value"} else dict(found)


def _value(found: _Fields) -> Any:
    if len(found) != 1 or not found.keys() <= {
        "null_value",
        "number_value",
        "string_value",
        "bool_value",
        "struct_value",
        "list_value",
    }:
        return dict(found)
    ((name, value),) = found.items()
    return None if name == "null_value" else value


def _struct(found: _Fields) -> Any:
    fields = found.get("fields", {})
    return fields if found.keys() <= {"fields"} and isinstance(fields, dict) else dict(found)


def _list(found: _Fields) -> Any:
    values = found.get("values", [])
    return values if found.keys() <= {"values"} and isinstance(values, list) else dict(found)


def _mask(found: _Fields) -> Any:
    paths = found.get("paths", [])
    fits = found.keys() <= {"paths"} and isinstance(paths, list) and all(isinstance(each, str) for each in paths)
    return ",".join(paths) if fits else dict(found)


def _decimal(found: _Fields) -> Any:
    scale = found.get("scale", 0)
    try:
        raw = base64.b64decode(found.get("value", ""), validate=True)
    except (binascii.Error, TypeError, ValueError):
        return dict(found)
    return decimal(raw, scale) if raw and _whole(scale) and scale >= 0 else dict(found)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


SHOWN: Final[Mapping[str, Callable[[_Fields], Any]]] = {
    ".google.protobuf.Timestamp": _timestamp,
    ".google.protobuf.Duration": _duration,
    ".google.protobuf.Struct": _struct,
    ".google.protobuf.Value": _value,
    ".google.protobuf.ListValue": _list,
    ".google.protobuf.FieldMask": _mask,
    ".google.protobuf.BoolValue": _wrapper(False),
    ".google.protobuf.StringValue": _wrapper(""),
    ".google.protobuf.BytesValue": _wrapper(""),
    **{f".google.protobuf.{name}Value": _wrapper(0) for name in ("Int32", "Int64", "UInt32", "UInt64")},
    **{f".google.protobuf.{name}Value": _wrapper(0.0) for name in ("Float", "Double")},
    ".confluent.type.Decimal": _decimal,
}
