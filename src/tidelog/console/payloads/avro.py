"""Avro values as JSON text. Integers are exact; bytes are as in Avro's own JSON (each byte a character), decimals and times texts.

The schema is the registry's, the bytes are anyone's: a value has to fill them, and arrays whose elements take no bytes are refused,
because their length would be free of charge.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from tidelog.console.payloads.framed import Refused

_EMPTY: Final = frozenset({"null"})


def reader(schema: str, references: Iterable[str] = ()) -> Callable[[bytes], str]:
    """A function from bytes to JSON text. ``references``: schemas whose names it uses, each after those that it uses itself.
    Refused for a schema that cannot be used."""
    try:
        import fastavro
    except ImportError:
        raise Refused("Avro needs the package fastavro: pip install 'tidelog[console]'") from None
    named: dict[str, Any] = {}
    try:
        for each in references:
            fastavro.parse_schema(json.loads(each), named_schemas=named)
        parsed = fastavro.parse_schema(json.loads(schema), named_schemas=named)
    except Exception as error:
        raise Refused(f"its schema cannot be read: {error}") from None
    if _has_free_arrays(parsed, named, set()):
        raise Refused("its schema has arrays of values that take no bytes")

    def text_of(body: bytes) -> str:
        stream = io.BytesIO(body)
        try:
            value = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # whatever the bytes make of it
            raise Refused(f"it does not fit its schema: {type(error).__name__} {error}".rstrip()) from None
        if stream.tell() != len(body):
            raise Refused(f"{len(body) - stream.tell()} bytes follow the value of its schema")
        return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))

    return text_of


def _plain(value: Any) -> Any:
    """Only what JSON has."""
    match value:
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case bytes():
            return value.decode("latin-1")
        case float() if not math.isfinite(value):
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case tuple():
            return [_plain(each) for each in value]
    return value


def _has_free_arrays(schema: Any, named: Mapping[str, Any], seen: set[str]) -> bool:
    """Whether an array's elements may take no bytes."""
    if isinstance(schema, str):
        if schema in seen or schema not in named:
            return False
        seen.add(schema)
        return _has_free_arrays(named[schema], named, seen)
    if isinstance(schema, list):
        return any(_has_free_arrays(each, named, seen) for each in schema)
    kind = schema["type"]
    if kind == "array":
        return _is_free(schema["items"], named, set()) or _has_free_arrays(schema["items"], named, seen)
    if kind == "map":
        return _has_free_arrays(schema["values"], named, seen)
    if kind in ("record", "error"):
        seen.add(schema["name"])
        return any(_has_free_arrays(each["type"], named, seen) for each in schema["fields"])
    return isinstance(kind, dict | list) and _has_free_arrays(kind, named, seen)


def _is_free(schema: Any, named: Mapping[str, Any], seen: set[str]) -> bool:
    """Whether a value may take no bytes. A union has its branch's number, so it never is."""
    if isinstance(schema, list):
        return False
    if isinstance(schema, str):
        if schema in named and schema not in seen:
            seen.add(schema)
            return _is_free(named[schema], named, seen)
        return schema in _EMPTY
    kind = schema["type"]
    if kind in ("record", "error"):
        return all(_is_free(each["type"], named, seen | {schema["name"]}) for each in schema["fields"])
    if kind == "fixed":
        return bool(schema["size"] == 0)
    return _is_free(kind, named, seen) if isinstance(kind, dict) else kind in _EMPTY
