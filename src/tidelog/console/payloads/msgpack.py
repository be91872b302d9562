"""MessagePack as JSON text. Only maps and arrays that fill the payload are taken: almost every byte is some MessagePack value.

Binary values become base64 texts, extensions an object with their type; keys of maps that are no texts are written as their JSON.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from struct import Struct, error
from typing import Any, Final

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000
TIMESTAMP: Final = -1
_NUMBERS: Final = {
    0xCA: Struct(">f"),
    0xCB: Struct(">d"),
    0xCC: Struct(">B"),
    0xCD: Struct(">H"),
    0xCE: Struct(">I"),
    0xCF: Struct(">Q"),
    0xD0: Struct(">b"),
    0xD1: Struct(">h"),
    0xD2: Struct(">i"),
    0xD3: Struct(">q"),
}
_LENGTHS: Final = {1: Struct(">B"), 2: Struct(">H"), 4: Struct(">I")}


class NotMessagePack(ValueError):
    """Bytes that are none; the text says why."""


def as_json(data: bytes) -> str:
    """The JSON text of a map or array that fills ``data``. NotMessagePack."""
    if not data or not (0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF):
        raise NotMessagePack("it does not begin with a map or an array")
    reader = _Reader(data)
    try:
        found = reader.value(0)
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (IndexError, error):
        raise NotMessagePack("it ends inside a value") from None
    except UnicodeDecodeError:
        raise NotMessagePack("a text in it is not UTF-8") from None
    except (ValueError, OverflowError) as problem:
        raise NotMessagePack(str(problem)) from None
    if reader.position != len(data):
        raise NotMessagePack(f"{len(data) - reader.position} bytes follow the first value")
    return text


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._values = 0
        self.position = 0

    def value(self, depth: int) -> Any:
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            raise NotMessagePack(f"it has more than {MAX_DEPTH} levels or {MAX_VALUES} values")
        first = self._data[self.position]
        self.position += 1
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first < 0x90:
            return self._map(first & 0x0F, depth)
        if first < 0xA0:
            return self._array(first & 0x0F, depth)
        if first < 0xC0:
            return self._take(first & 0x1F).decode()
        return self._marked(first, depth)

    def _marked(self, first: int, depth: int) -> Any:
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        match first:
            case 0xC0:
                return None
            case 0xC2 | 0xC3:
                return first == 0xC3
            case 0xC4 | 0xC5 | 0xC6:
                return base64.b64encode(self._take(self._length(1 << (first - 0xC4)))).decode()
            case 0xC7 | 0xC8 | 0xC9:
                return self._extension(self._length(1 << (first - 0xC7)))
            case 0xD4 | 0xD5 | 0xD6 | 0xD7 | 0xD8:
                return self._extension(1 << (first - 0xD4))
            case 0xD9 | 0xDA | 0xDB:
                return self._take(self._length(1 << (first - 0xD9))).decode()
            case 0xDC | 0xDD:
                return self._array(self._length(2 << (first - 0xDC)), depth)
            case 0xDE | 0xDF:
                return self._map(self._length(2 << (first - 0xDE)), depth)
        raise NotMessagePack(f"the byte {first:#04x} begins no value")

    def _number(self, kind: Struct) -> int | float:
        (found,) = kind.unpack(self._take(kind.size))
        return float(found) if kind.format in (">f", ">d") else int(found)

    def _length(self, size: int) -> int:
        (found,) = _LENGTHS[size].unpack(self._take(size))
        return int(found)

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self._data):
            raise IndexError
        found = self._data[self.position : end]
        self.position = end
        return found

    def _array(self, count: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):
            name = self.value(depth + 1)
            if isinstance(name, dict | list):  # as JSON inside of JSON each level would double its quotes
                raise NotMessagePack("a map in it has a map or an array as a key")
            text = name if isinstance(name, str) else json.dumps(name, ensure_ascii=False)
            if text in found:
                raise NotMessagePack(f"a map in it has the key {text[:50]!r} twice")
            found[text] = self.value(depth + 1)
        return found

    def _extension(self, size: int) -> Any:
        kind = int.from_bytes(self._take(1), "big", signed=True)
        data = self._take(size)
        if kind == TIMESTAMP and size in (4, 8, 12):
            return _instant(data)
        return {"extension": kind, "data": base64.b64encode(data).decode()}


def _instant(data: bytes) -> str:
    if len(data) == 4:
        nanos, seconds = 0, int.from_bytes(data, "big")
    elif len(data) == 8:
        both = int.from_bytes(data, "big")
        nanos, seconds = both >> 34, both & 0x3FFFFFFFF
    else:
        nanos, seconds = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big", signed=True)
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{when:%Y-%m-%dT%H:%M:%S}" + (f".{nanos:09d}" if nanos else "") + "Z"
