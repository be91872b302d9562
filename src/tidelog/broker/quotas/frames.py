"""Sets the throttle time in an encoded answer.

Answers are built as if there were no quotas; the few that are throttled are patched here. Nearly all begin with the throttle
time, so four bytes are overwritten; the others are decoded and encoded again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache

from tidelog.broker.answer_types import Part
from tidelog.model.ports import FileSlice
from tidelog.protocol import registry
from tidelog.protocol.framing import encode_response_message, response_header_is_flexible
from tidelog.protocol.structure import Message

_TIME = struct.Struct(">i")
_SIZE_AND_CORRELATION = 8
_FIELD = "throttle_time_ms"


class _Place:
    """Where the answers of an API version have the throttle time: ``at`` in the frame, None if that depends on the answer."""

    __slots__ = ("at", "has")

    def __init__(self, has: bool, at: int | None) -> None:
        self.has = has
        self.at = at


@cache
def _place(api_key: int, version: int) -> _Place:
    cls = registry.response_class(api_key)
    fields: Sequence[str] = cls.__slots__
    if _FIELD not in fields or _encoded(cls, version, 0) == _encoded(cls, version, 1):
        return _Place(False, None)
    if fields[0] != _FIELD:
        return _Place(True, None)
    return _Place(True, _SIZE_AND_CORRELATION + (1 if response_header_is_flexible(api_key, version) else 0))


def _encoded(cls: type[Message], version: int, wait_ms: int) -> bytes | None:
    """An answer with only this throttle time, or without it when the version has no such field; None when even that fails."""
    message = cls()
    setattr(message, _FIELD, wait_ms)
    out = bytearray()
    try:
        message.encode_into(out, version)
    except ValueError:
        return _encoded(cls, version, 0)
    return bytes(out)


def told_wait(api_key: int, version: int, parts: Sequence[Part]) -> int:
    """The throttle time of an answer that begins with it; otherwise 0."""
    at, first = _place(api_key, version).at, parts[0]
    if at is None or isinstance(first, FileSlice) or len(first) < at + 4:
        return 0
    wait_ms: int = _TIME.unpack_from(first, at)[0]
    return wait_ms


def with_wait(api_key: int, version: int, parts: list[Part], wait_ms: int) -> list[Part]:
    """The answer with this throttle time, if its version has the field. Parts may be shared with other answers, so they are
    not modified."""
    place = _place(api_key, version)
    if not place.has:
        return parts
    if place.at is not None:
        first, rest = bytearray(), iter(parts)
        while len(first) < place.at + 4:
            part = next(rest)
            assert not isinstance(part, FileSlice), "records come after it"
            first += part
        _TIME.pack_into(first, place.at, wait_ms)
        return [first, *rest]
    frame = memoryview(b"".join(part for part in parts if not isinstance(part, FileSlice)))
    (correlation_id,) = _TIME.unpack_from(frame, 4)
    body = frame[_SIZE_AND_CORRELATION + (1 if response_header_is_flexible(api_key, version) else 0) :]
    message = registry.response_class(api_key).decode(body, version)
    setattr(message, _FIELD, wait_ms)
    return [encode_response_message(correlation_id, api_key, version, message)]
