"""Protobuf values as JSON text: the fields that are in the bytes, under the names of their schema.

Integers are exact numbers, bytes base64, enums names; fields that the schema does not know stand under ``#`` and their number,
with the form in which they were written. protobuf's own classes are not used: they drop what does not fit, and a schema that
anyone registered would have to be compiled.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

from tidelog.console.payloads import protobuf_types as kinds
from tidelog.console.payloads import well_known
from tidelog.console.payloads.framed import Refused, message_indexes
from tidelog.console.payloads.protobuf_types import Field, Message, Types, types_of

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 100_000
MAX_FIELD: Final = (1 << 29) - 1
_MESSAGES: Final = frozenset((kinds.MESSAGE, kinds.GROUP))
_TEXTS: Final = frozenset((kinds.STRING, kinds.BYTES))
_VARINT, _FIXED64, _BYTES, _GROUP, _END, _FIXED32 = range(6)
_FLOATS: Final = {kinds.FLOAT: Struct("<f"), kinds.DOUBLE: Struct("<d")}
_WIRE: Final = {
    kinds.DOUBLE: _FIXED64, kinds.FIXED64: _FIXED64, kinds.SFIXED64: _FIXED64,
    kinds.FLOAT: _FIXED32, kinds.FIXED32: _FIXED32, kinds.SFIXED32: _FIXED32,
    kinds.INT64: _VARINT, kinds.UINT64: _VARINT, kinds.INT32: _VARINT, kinds.BOOL: _VARINT, kinds.UINT32: _VARINT,
    kinds.ENUM: _VARINT, kinds.SINT32: _VARINT, kinds.SINT64: _VARINT,
}  # fmt: skip
_FORMS: Final = {_VARINT: "varint", _FIXED64: "fixed64", _BYTES: "bytes", _GROUP: "group", _FIXED32: "fixed32"}


@dataclass(slots=True)
class Fields:
    """What the bytes of one message hold. ``values``: by number, lists for repeated fields. ``unknown``: (number, wire type,
    value), in their order. ``members``: which member of a oneof is there."""

    kind: Message | None
    depth: int
    values: dict[int, Any] = field(default_factory=dict)
    unknown: list[tuple[int, int, Any]] = field(default_factory=list)
    members: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Count:
    left: int = MAX_VALUES

    def one(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Refused(f"it has more than {MAX_VALUES} values")


def reader(schema: str, references: Mapping[str, str]) -> Callable[[bytes], str]:
    """A function from bytes behind the id of a schema to JSON text, which raises Refused. See ``types_of``."""
    types = types_of(schema, references)

    def text_of(body: bytes) -> str:
        indexes, position = message_indexes(body)
        places = types.at(indexes)
        found: Fields | None = None
        problem: Refused | None = None
        odd = True
        for place in places:  # more than one only where clients count differently
            try:
                fields = _Reader(body[position:], types, _Count()).whole(place, 0)
            except Refused as error:
                problem = problem or error
                continue
            if found is None or (odd and not _has_unknown(fields)):
                found, odd = fields, _has_unknown(fields)
        if found is None:
            raise problem or Refused("its schema has no such message")
        shown = _Shown(types).message(found)
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))

    return text_of


def _has_unknown(found: Fields) -> bool:
    if found.unknown:
        return True
    inner = (each for value in found.values.values() for each in (value if isinstance(value, list) else [value]))
    return any(isinstance(each, Fields) and _has_unknown(each) for each in inner)


class _Reader:
    """Reads messages of bounded depth and number of parts, as protobuf's libraries do: the last value of a field counts, a
    message that comes in parts is merged, and of a oneof only the last member stays."""

    def __init__(self, body: bytes, types: Types, count: _Count) -> None:
        self._body = body
        self._types = types
        self._count = count
        self._position = 0

    def whole(self, kind: Message, depth: int) -> Fields:
        """One message that fills the bytes. Refused."""
        found = Fields(kind, depth)
        self._fields(found, len(self._body), None)
        return found

    def _fields(self, into: Fields, end: int, group: int | None) -> None:
        """``group``: the number of the group that ends this; None where ``end`` does."""
        if into.depth > MAX_DEPTH:
            raise Refused(f"it has more than {MAX_DEPTH} levels")
        while self._position < end:
            tag = self._varint(end)
            number, wire = tag >> 3, tag & 7
            if not 1 <= number <= MAX_FIELD:
                raise Refused(f"it has a field with the number {number}")
            self._count.one()
            if wire == _END:
                if number != group:
                    raise Refused(f"the end of group {number} comes before its begin")
                return
            known = None if into.kind is None else into.kind.fields.get(number)
            if known is None or not self._known(into, known, wire, end):
                into.unknown.append((number, wire, self._plain(wire, number, end, into.depth)))
        if group is not None:
            raise Refused(f"it ends inside group {group}")

    def _known(self, into: Fields, known: Field, wire: int, end: int) -> bool:
        """Read a field whose form fits its type; False when it does not, with nothing read."""
        if known.kind in _MESSAGES and wire in (_BYTES, _GROUP):
            kind = self._types.messages.get(known.type_name)
            before = into.values.get(known.number)
            inner = before if isinstance(before, Fields) else Fields(kind, into.depth + 1)
            if wire == _GROUP:
                self._fields(inner, end, known.number)
            else:
                self._fields(inner, self._length(end), None)
            if inner is not before:
                self._put(into, known, inner)
        elif known.kind in _TEXTS and wire == _BYTES:
            self._put(into, known, self._text(known, end))
        elif _WIRE.get(known.kind) == wire:
            self._put(into, known, self._scalar(known, end))
        elif known.kind in _WIRE and known.repeated and wire == _BYTES:
            stop = self._length(end)
            into.values.setdefault(known.number, [])
            while self._position < stop:
                self._count.one()
                self._put(into, known, self._scalar(known, stop))
        else:
            return False
        return True

    def _put(self, into: Fields, known: Field, value: Any) -> None:
        if known.repeated:
            into.values.setdefault(known.number, []).append(value)
            return
        if known.oneof >= 0 and (before := into.members.get(known.oneof)) != known.number:
            if before is not None:
                into.values.pop(before, None)
            into.members[known.oneof] = known.number
        into.values[known.number] = value

    def _text(self, known: Field, end: int) -> Any:
        stop = self._length(end)
        found = self._body[self._position : stop]
        self._position = stop
        if known.kind == kinds.BYTES:
            return found
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(f"the text in {known.name} is not UTF-8") from None

    def _scalar(self, known: Field, end: int) -> Any:
        if known.kind in _FLOATS:
            kind = _FLOATS[known.kind]
            (found,) = kind.unpack(self._take(kind.size, end))
            return _shortest(found) if known.kind == kinds.FLOAT else found
        match known.kind:
            case kinds.FIXED64 | kinds.FIXED32 | kinds.SFIXED64 | kinds.SFIXED32:
                raw = self._take(8 if _WIRE[known.kind] == _FIXED64 else 4, end)
                return int.from_bytes(raw, "little", signed=known.kind in (kinds.SFIXED64, kinds.SFIXED32))
        value = self._varint(end)
        match known.kind:
            case kinds.BOOL:
                return value != 0
            case kinds.UINT64:
                return value
            case kinds.UINT32:
                return value & 0xFFFFFFFF
            case kinds.INT64:
                return _signed(value, 64)
            case kinds.SINT64:
                return (value >> 1) ^ -(value & 1)
            case kinds.SINT32:
                value &= 0xFFFFFFFF
                return (value >> 1) ^ -(value & 1)
        number = _signed(value & 0xFFFFFFFF, 32)
        if known.kind == kinds.ENUM:
            return self._types.enums.get(known.type_name, {}).get(number, number)
        return number

    def _plain(self, wire: int, number: int, end: int, depth: int) -> Any:
        """A value of which only the form is known."""
        match wire:
            case 0:
                return self._varint(end)
            case 1 | 5:
                return int.from_bytes(self._take(8 if wire == _FIXED64 else 4, end), "little")
            case 2:
                stop = self._length(end)
                found = self._body[self._position : stop]
                self._position = stop
                return found
            case 3:
                inner = Fields(None, depth + 1)
                self._fields(inner, end, number)
                return inner
        raise Refused(f"field {number} has the unknown wire type {wire}")

    def _length(self, end: int) -> int:
        """Where a part with a length ends."""
        size = self._varint(end)
        if size > end - self._position:
            raise Refused("it ends inside a field")
        return self._position + size

    def _take(self, size: int, end: int) -> bytes:
        if size > end - self._position:
            raise Refused("it ends inside a field")
        self._position += size
        return self._body[self._position - size : self._position]

    def _varint(self, end: int) -> int:
        value = 0
        for shift in range(0, 70, 7):
            if self._position >= end:
                raise Refused("it ends inside a number")
            byte = self._body[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
        raise Refused("a number in it has more than ten bytes")


class _Shown:
    """Makes JSON of what was read."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._count = _Count()

    def message(self, found: Fields) -> Any:
        """The value of JSON: an object, or what a well-known type stands for."""
        if found.kind is None:
            return self._unknown(found)
        known = {
            each.name: self._field(each, found.values[number])
            for number, each in found.kind.fields.items()
            if number in found.values
        }
        if found.kind.name == well_known.ANY:
            known = self._any(found, known)
        elif not found.unknown and found.kind.name in well_known.SHOWN:
            return well_known.SHOWN[found.kind.name](known)
        return {**known, **self._unknown(found)}

    def _field(self, known: Field, value: Any) -> Any:
        if not known.repeated:
            return self._value(value)
        entry = self._types.messages.get(known.type_name)
        if entry is None or not entry.map_entry or any(each.unknown for each in value):
            return [self._value(each) for each in value]
        return {self._key(entry, each): self._entry_value(entry, each) for each in value}

    def _key(self, entry: Message, found: Fields) -> str:
        key = found.values.get(1, _default(entry.fields[1]))
        return json.dumps(key) if isinstance(key, bool) else str(key)

    def _entry_value(self, entry: Message, found: Fields) -> Any:
        if 2 in found.values:
            return self._value(found.values[2])
        known = entry.fields[2]
        if known.kind in _MESSAGES:
            return self.message(Fields(self._types.messages.get(known.type_name), found.depth + 1))
        if known.kind == kinds.ENUM:
            return self._types.enums.get(known.type_name, {}).get(0, 0)
        return self._value(_default(known))

    def _value(self, value: Any) -> Any:
        if isinstance(value, Fields):
            return self.message(value)
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value

    def _unknown(self, found: Fields) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for number, wire, value in found.unknown:
            shown.setdefault(f"#{number}", []).append({_FORMS[wire]: self._value(value)})
        return {name: values[0] if len(values) == 1 else values for name, values in shown.items()}

    def _any(self, found: Fields, known: dict[str, Any]) -> dict[str, Any]:
        """The message inside, where the schema knows its type; its bytes under ``#value`` where not."""
        url, body = found.values.get(1, ""), found.values.get(2, b"")
        kind = self._types.messages.get("." + str(url).rpartition("/")[2])
        if not isinstance(body, bytes) or not isinstance(url, str):
            return known
        if kind is not None:
            try:
                inner = self.message(_Reader(body, self._types, self._count).whole(kind, found.depth + 1))
            except Refused:
                pass
            else:
                return {"@type": url, **inner} if isinstance(inner, dict) else {"@type": url, "value": inner}
        return {"@type": url, "#value": base64.b64encode(body).decode()}


def _default(known: Field) -> Any:
    """What a missing key or value of a map stands for."""
    if known.kind in _TEXTS:
        return "" if known.kind == kinds.STRING else b""
    if known.kind == kinds.BOOL:
        return False
    return 0.0 if known.kind in _FLOATS else 0


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _shortest(found: float) -> float:
    """The number with the fewest digits that is the same in 32 bits: 0.1, and not 0.10000000149011612."""
    if not math.isfinite(found):
        return found
    for digits in range(6, 10):
        short = float(f"{found:.{digits}g}")
        try:
            if _FLOATS[kinds.FLOAT].pack(short) == _FLOATS[kinds.FLOAT].pack(found):
                return short
        except OverflowError:
            continue
    return found
