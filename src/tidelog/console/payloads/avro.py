"""Avro values as JSON text. Integers are exact; bytes are as in Avro's own JSON, each a character; decimals and times are texts.

fastavro reads the schemas. Values are read here, because the bytes are anyone's: fastavro's compiled reader recurses without a
limit (a few thousand nested records end the process), and an array of nulls may claim any length.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from struct import Struct
from typing import Any, Final

from tidelog.console.payloads.framed import Refused

MAX_DEPTH: Final = 64
MAX_SCHEMA_DEPTH: Final = 500
MAX_VALUES: Final = 100_000
VALUES_OF_NOTHING: Final = 1000
VALUES_PER_BYTE: Final = 8
"""Nulls and empty records take no bytes: eight bytes may claim an array of 100,000 of them, in each of millions of records."""
MAX_DECIMAL_BYTES: Final = 1024
MAX_VARINT_BITS: Final = 63
_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND: Final = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}


def reader(schema: str, references: Iterable[str] = ()) -> Callable[[bytes], str]:
    """A function from bytes to JSON text, which raises Refused. ``references``: schemas whose names it uses, each after those
    that it uses itself. Refused for a schema that cannot be used."""
    try:
        import fastavro
    except ImportError:
        raise Refused("Avro needs the package fastavro: pip install 'tidelog[console]'") from None
    named: dict[str, Any] = {}
    try:
        for each in references:
            fastavro.parse_schema(_loaded(each), named_schemas=named)
        parsed = fastavro.parse_schema(_loaded(schema), named_schemas=named)
    except Exception as error:  # whatever the schema makes of it
        raise Refused(f"its schema cannot be read: {type(error).__name__} {error}".rstrip()) from None

    def text_of(body: bytes) -> str:
        values = _Values(body, named)
        found = values.read(parsed, 0)
        if values.position != len(body):
            raise Refused(f"{len(body) - values.position} bytes follow the value of its schema")
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    return text_of


def _loaded(schema: str) -> Any:
    """The schema's JSON. ValueError where it is nested so deeply that fastavro's compiled parser might end the process."""
    found = json.loads(schema)
    level = [found]
    for _ in range(MAX_SCHEMA_DEPTH):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return found
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    raise ValueError(f"it has more than {MAX_SCHEMA_DEPTH} levels")


class _Values:
    """Reads one value, of bounded depth and number of parts."""

    def __init__(self, body: bytes, named: Mapping[str, Any]) -> None:
        self._body = body
        self._named = named
        self._count = 0
        self._most = min(MAX_VALUES, VALUES_OF_NOTHING + VALUES_PER_BYTE * len(body))
        self.position = 0

    def read(self, schema: Any, depth: int) -> Any:
        """A value of JSON. Refused."""
        self._count += 1
        if depth > MAX_DEPTH or self._count > self._most:
            raise Refused(f"it has more than {MAX_DEPTH} levels or {self._most} values")
        if isinstance(schema, list):
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise Refused(f"a union has no branch {branch}")
            return self.read(schema[branch], depth + 1)
        if isinstance(schema, str):
            return self.read(self._named[schema], depth) if schema in self._named else self._plain(schema)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, depth + 1)
        if kind in ("record", "error"):
            return {each["name"]: self.read(each["type"], depth + 1) for each in schema["fields"]}
        if kind in ("array", "map"):
            return self._blocks(schema, depth)
        if kind == "enum":
            index = self._long()
            if not 0 <= index < len(schema["symbols"]):
                raise Refused(f"an enum has no symbol {index}")
            return schema["symbols"][index]
        raw = self._take(schema["size"]) if kind == "fixed" else self._scalar(kind)
        return _logical(schema, raw)

    def _blocks(self, schema: Any, depth: int) -> Any:
        """Arrays and maps come in blocks; a negative count is followed by the block's size."""
        items: list[Any] = []
        members: dict[str, Any] = {}
        while count := self._long():
            if count < 0:
                self._long()
            for _ in range(abs(count)):
                if schema["type"] == "array":
                    items.append(self.read(schema["items"], depth + 1))
                else:
                    name = self._plain("string")
                    members[name] = self.read(schema["values"], depth + 1)
        return items if schema["type"] == "array" else members

    def _plain(self, kind: str) -> Any:
        return _json(self._scalar(kind))

    def _scalar(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._take(1) != b"\0"
            case "int" | "long":
                return self._long()
            case "float":
                return _FLOAT.unpack(self._take(4))[0]
            case "double":
                return _DOUBLE.unpack(self._take(8))[0]
            case "bytes":
                return self._take(self._long())
            case "string":
                try:
                    return self._take(self._long()).decode("utf-8")
                except UnicodeDecodeError:
                    raise Refused("a text in it is not UTF-8") from None
        raise Refused(f"its schema has the unknown type {kind}")

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > MAX_VARINT_BITS:
                raise Refused("a number in it has more than 64 bits")

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self._body):
            raise Refused("it ends inside a value of its schema")
        found = self._body[self.position : end]
        self.position = end
        return found


def _json(value: Any) -> Any:
    """Only what JSON has."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _logical(schema: Any, raw: Any) -> Any:
    """The value that a logical type means; the raw one for types that are not known, and beyond the calendar."""
    kind = schema.get("logicalType", "")
    if kind == "decimal" and isinstance(raw, bytes):
        return decimal(raw, schema.get("scale", 0))
    if kind == "date" and isinstance(raw, int):
        return instant(raw * 86_400, 0, 1)[:10] or raw
    name, _, unit = kind.rpartition("-")
    if not isinstance(raw, int) or unit not in _PER_SECOND:
        return _json(raw)
    seconds, part = divmod(raw, _PER_SECOND[unit])
    text = instant(seconds, part, _PER_SECOND[unit])
    if not text:
        return raw
    match name:
        case "time":
            return text[11:]
        case "local-timestamp":
            return text
        case "timestamp":
            return text + "Z"
    return raw


def decimal(raw: bytes, scale: int) -> Any:
    """The text of an integer with ``scale`` digits behind the point: all of them, whatever the
    precision of arithmetic is; the bytes where there are too many."""
    if len(raw) > MAX_DECIMAL_BYTES or not 0 <= scale <= MAX_DECIMAL_BYTES:
        return _json(raw)
    sign, digits, _ = Decimal(int.from_bytes(raw, "big", signed=True)).as_tuple()
    return str(Decimal((sign, digits, -scale)))


def instant(seconds: int, part: int, per_second: int) -> str:
    """ISO 8601 without a zone; empty beyond the years 1 to 9999."""
    try:
        when = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return ""
    digits = f".{part:0{len(str(per_second)) - 1}d}" if part else ""
    return when.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + digits
