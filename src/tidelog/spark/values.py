"""Values of records as columns, many at once: JSON objects and Avro records of plain types, by compiled code.

A value is *plain* if every reader takes it for the same row; only such values are decoded here. Others (escaped names, fields
that the schema lacks, numbers out of range, bytes that are left over, ...) are *odd*: for the caller's own reader, which says
what is wrong with them. So this is never the only way, and without a compiler it is none: ``decoder`` returns None.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

KINDS = ("boolean", "int", "long", "float", "double", "text", "bytes", "date", "millis", "micros")
"""What a field may hold. Of JSON: not float, bytes and millis; ``micros`` is a text like 2026-01-31T12:00:00.5Z there."""
ARROW: dict[str, Any] = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "text": pa.string(), "bytes": pa.binary(), "date": pa.date32(), "millis": pa.timestamp("us", tz="UTC"),
    "micros": pa.timestamp("us", tz="UTC"),
}  # fmt: skip
IN_JSON = frozenset(("boolean", "int", "long", "double", "text", "date", "micros"))


@dataclass(frozen=True, slots=True)
class ValueField:
    """A field. ``required``: a JSON object without it, or with null, is odd. ``null_index``: where null is in its Avro union of
    two types, -1 for no union."""

    name: str
    kind: str
    required: bool = False
    null_index: int = -1


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """The fields of a JSON object or an Avro record. ``schema_id``: -1 without a registry's header; for JSON any id will do."""

    json: bool
    fields: tuple[ValueField, ...]
    schema_id: int = -1


@dataclass(frozen=True, slots=True)
class Decoded:
    """``plain``: an Arrow array that is true for the values that were decoded; ``columns``: theirs alone."""

    plain: Any
    count: int
    columns: list[Any]


class Values:
    """Decodes columns of values. Made once for each task."""

    def __init__(self, compiled: Any, schema: ValueSchema) -> None:
        self._kinds = [ARROW[field.kind] for field in schema.fields]
        fields = [(field.name.encode(), field.kind, field.required, field.null_index) for field in schema.fields]
        self._decoder = compiled(schema.json, fields, schema.schema_id)

    def decode(self, values: Any, keys: Any = None) -> Decoded:
        """``values``: an Arrow array of binary. ``keys``: one that must be UTF-8 for its row to be plain, or None."""
        mask, count, columns = self._decoder.decode(*_column(values), *_span(values, keys))
        made = [_array(kind, count, column) for kind, column in zip(self._kinds, columns, strict=True)]
        return Decoded(_flags(mask, len(values)), count, made)

    def odd(self, values: Any, keys: Any = None) -> tuple[Any, int]:
        """An Arrow array that is true for the values that are odd, and how many there are: cheaper than ``decode``."""
        mask, plain, _ = self._decoder.decode(*_column(values), *_span(values, keys), True)
        return _flags(mask, len(values)), len(values) - plain


def _column(array: Any) -> tuple[memoryview, memoryview, memoryview | None]:
    """Ends, data and validity of an array of binary."""
    valid, ends, data = array.buffers()
    return _bytes(ends), _bytes(data), None if valid is None else _bytes(valid)


def _span(values: Any, keys: Any) -> tuple[int, int, tuple[memoryview, memoryview, memoryview | None] | None]:
    """Where the values lie in their buffers, how many there are, and the keys."""
    assert keys is None or keys.offset == values.offset, "both columns are of one batch"
    return values.offset, len(values), None if keys is None else _column(keys)


def _flags(mask: bytearray, rows: int) -> Any:
    return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(mask)], 0)


def _bytes(buffer: Any) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _array(kind: Any, rows: int, column: tuple[Any, Any, Any, int]) -> Any:
    valid, ends, data, nulls = column
    buffers = [None if valid is None else pa.py_buffer(valid)]
    if ends is not None:
        buffers.append(pa.py_buffer(ends))
    return pa.Array.from_buffers(kind, rows, [*buffers, pa.py_buffer(data)], nulls)


def decoder(schema: ValueSchema) -> Values | None:
    """A decoder; None without the compiled module."""
    compiled = _compiled()
    return None if compiled is None else Values(compiled, schema)


def available() -> bool:
    """Whether this installation has the compiled module."""
    return _compiled() is not None


def _compiled() -> Any:
    if sys.byteorder != "little":
        return None
    try:
        from tidelog.spark._values import ValueDecoder
    except ImportError:
        return None
    return ValueDecoder
