"""Frames and headers: bytes to requests, responses to bytes. No sockets here (sans-IO).

A frame is an int32 size and that many bytes. A request begins with header v1, or v2 where its API version is flexible; even v2
has the client id as a plain nullable string. A response begins with header v0, or v1 where the version is flexible, except that
ApiVersions is always answered with v0, so that a client without a common version can still read it.

Invariants: ``FrameReader`` never holds more than four times the bytes received (or its first ``initial`` bytes), whatever size a
peer announces; a returned frame stays valid and writable until ``writable`` is called again.
"""

from __future__ import annotations

import struct

from tidelog.model.errors import ProtocolViolation
from tidelog.model.ports import Buffer
from tidelog.protocol.api_keys import API_FACTS, ApiKey
from tidelog.protocol.primitives import skip_tags, write_nullable_string
from tidelog.protocol.structure import Message

MAX_FRAME_BYTES = 104857600
"""Default of ``socket.request.max.bytes``."""

MAX_BYTES_OPTION = "socket.request.max.bytes"

MAX_PLAIN_REQUEST_BYTES = 16 * 1024 * 1024
"""Limit for requests other than Produce. Only Produce carries bulk data as bytes; other requests are decoded, and the smallest
structures take up to 64 times their size as objects, so that a frame of the full size could exhaust the memory."""

_TLS_HANDSHAKE = b"\x16\x03"
"""The first bytes of a TLS connection; as the size of a frame, more than 369 million."""
_SIZE = struct.Struct(">i")
_SIZE_AND_KEY = struct.Struct(">ih")
_REQUEST = struct.Struct(">hhih")
_KEY_VERSION_CORRELATION = struct.Struct(">hhi")
_RESPONSE = struct.Struct(">ii")
_RESPONSE_FLEXIBLE = struct.Struct(">iiB")


class RequestHeader:
    """The header of a request."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None = None) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RequestHeader) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )


def request_header_is_flexible(api_key: int, api_version: int) -> bool:
    """Whether the request has header v2. KeyError for an unknown API."""
    return api_version >= API_FACTS[api_key].flexible_from


def response_header_is_flexible(api_key: int, api_version: int) -> bool:
    """Whether the response has header v1. KeyError for an unknown API."""
    return api_key != ApiKey.API_VERSIONS and api_version >= API_FACTS[api_key].flexible_from


def read_request_header(buf: Buffer) -> tuple[int, int, int, str | None, int]:
    """(API key, version, correlation id, client id, start of the body) of a frame; errors as ``decode_request_header``."""
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(buf, 0)
        facts = API_FACTS.get(api_key)
        if facts is None:
            raise ProtocolViolation(f"a request with API key {api_key}, which Kafka does not have")
        pos = 10
        client_id = None
        if length >= 0:
            pos += length
            if pos > len(buf):
                raise ProtocolViolation(f"a client id of {length} bytes where {len(buf) - 10} remain")
            client_id = str(buf[10:pos], "utf-8")
        elif length != -1:
            raise ProtocolViolation(f"a client id of length {length}")
        if api_version >= facts.flexible_from:
            pos = skip_tags(buf, pos) if buf[pos] else pos + 1
    except (IndexError, struct.error):
        raise ProtocolViolation(f"a request header is cut off after {len(buf)} bytes") from None
    except UnicodeDecodeError:
        raise ProtocolViolation("a client id is not UTF-8") from None
    return api_key, api_version, correlation_id, client_id, pos


def decode_request_header(buf: Buffer) -> tuple[RequestHeader, int]:
    """The header of a frame and the start of the body.

    ProtocolViolation when it is truncated or the API is unknown. The dispatcher checks whether the version is served.
    """
    api_key, api_version, correlation_id, client_id, pos = read_request_header(buf)
    return RequestHeader(api_key, api_version, correlation_id, client_id), pos


def encode_request_header(header: RequestHeader) -> bytes:
    """The header alone, without the frame's size."""
    out = bytearray()
    _write_request_header(out, header)
    return bytes(out)


def _write_request_header(out: bytearray, header: RequestHeader) -> None:
    out += _KEY_VERSION_CORRELATION.pack(header.api_key, header.api_version, header.correlation_id)
    write_nullable_string(out, header.client_id)
    if request_header_is_flexible(header.api_key, header.api_version):
        out.append(0)


def encode_request(header: RequestHeader, body: Message) -> bytes:
    """A whole frame."""
    out = bytearray(4)
    _write_request_header(out, header)
    body.encode_into(out, header.api_version)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def response_prefix(correlation_id: int, flexible_header: bool, body_size: int) -> bytes:
    """The size and header to send before a body of ``body_size`` bytes."""
    if flexible_header:
        return _RESPONSE_FLEXIBLE.pack(body_size + 5, correlation_id, 0)
    return _RESPONSE.pack(body_size + 4, correlation_id)


def encode_response(correlation_id: int, flexible_header: bool, body: Buffer) -> bytes:
    """A whole frame around an encoded body."""
    return b"".join((response_prefix(correlation_id, flexible_header, len(body)), body))


def encode_response_message(correlation_id: int, api_key: int, version: int, body: Message) -> bytearray:
    """A whole frame, the body encoded in place: saves a copy of a large response."""
    out = bytearray(response_prefix(correlation_id, response_header_is_flexible(api_key, version), 0))
    body.encode_into(out, version)
    _SIZE.pack_into(out, 0, len(out) - 4)
    return out


def decode_response_header(buf: Buffer, flexible_header: bool) -> tuple[int, int]:
    """(correlation id, start of the body) of a response's frame. ProtocolViolation when it is truncated."""
    try:
        (correlation_id,) = _SIZE.unpack_from(buf, 0)
        return correlation_id, skip_tags(buf, 4) if flexible_header else 4
    except (IndexError, struct.error):
        raise ProtocolViolation(f"a response header is cut off after {len(buf)} bytes") from None


class FrameReader:
    """Splits a byte stream into frames, in one reused buffer.

    Call ``recv_into(reader.writable())``, then ``received(n)``, then ``next_frame()`` until it returns None. ``max_plain_bytes``,
    for readers of requests: the limit of those other than Produce. ``read_ahead``: a buffer that the bytes received have filled
    grows up to this size, so that frames sent in a row arrive with one call.
    """

    __slots__ = (
        "_buffer",
        "_end",
        "_full",
        "_initial",
        "_max",
        "_max_plain",
        "_option",
        "_read_ahead",
        "_start",
        "_view",
        "more",
    )

    def __init__(
        self,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        initial: int = 4096,
        max_plain_bytes: int = MAX_FRAME_BYTES,
        read_ahead: int = 0,
    ) -> None:
        self._max = max_frame_bytes
        self._max_plain = max_plain_bytes
        self._option = MAX_BYTES_OPTION
        self._initial = initial
        self._read_ahead = read_ahead
        self._full = False
        self._buffer = bytearray(initial)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self.more = False
        """Whether there were bytes behind the last frame when it was returned."""

    def allow(self, max_frame_bytes: int, option: str = MAX_BYTES_OPTION) -> None:
        """Another limit, from the next frame on: a client has to authenticate, or has authenticated. ``option`` sets it."""
        self._max = max_frame_bytes
        self._option = option

    @property
    def capacity(self) -> int:
        """Bytes of memory held."""
        return len(self._buffer)

    @property
    def pending(self) -> int:
        """Bytes received and not returned yet: 0 means that the stream is between two frames."""
        return self._end - self._start

    def writable(self) -> memoryview:
        """The buffer for the next bytes; never empty. Invalidates frames returned before."""
        pending = self._end - self._start
        if self._start:
            if pending:
                self._view[:pending] = self._view[self._start : self._end]
            self._start, self._end = 0, pending
        if pending == len(self._buffer):
            needed = 4 + int(_SIZE.unpack_from(self._buffer, 0)[0])
            self._resize(min(max(needed, 2 * pending), 4 * pending))
        elif self._full and len(self._buffer) < self._read_ahead:
            self._resize(min(2 * len(self._buffer), self._read_ahead))
        return self._view[pending:]

    def received(self, count: int) -> None:
        """Marks the first ``count`` bytes of the ``writable`` buffer as received."""
        room = len(self._buffer) - self._end
        assert 0 <= count <= room, "more was received than there was room for"
        self._end += count
        self._full = count == room

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or None. ProtocolViolation for a size that is negative or too large."""
        start = self._start
        if self._end - start < 4:
            return None
        (size,) = _SIZE.unpack_from(self._buffer, start)
        if not 0 <= size <= self._max:
            if self._view[start : start + 2] == _TLS_HANDSHAKE:
                raise ProtocolViolation("a TLS handshake, but this listener speaks plain text (security.protocol of the client)")
            raise ProtocolViolation(f"a frame of {size} bytes, allowed are 0 to {self._max} ({self._option})")
        if size > self._max_plain and self._end - start >= 6:
            _, api_key = _SIZE_AND_KEY.unpack_from(self._buffer, start)
            if api_key != ApiKey.PRODUCE:
                raise ProtocolViolation(f"a request with API key {api_key} of {size} bytes, allowed are {self._max_plain}")
        start += 4
        if self._end - start < size:
            return None
        end = start + size
        self._start = end
        self.more = end < self._end
        return self._view[start:end]

    def head(self, count: int) -> bytes:
        """The first pending bytes, at most ``count``."""
        return bytes(self._view[self._start : min(self._end, self._start + count)])

    def next_key(self) -> int:
        """The API key of the next request, complete or not; -1 if it was not received yet."""
        if self._end - self._start < 6:
            return -1
        key: int = _SIZE_AND_KEY.unpack_from(self._buffer, self._start)[1]
        return key

    def take_pending(self) -> memoryview:
        """The pending bytes, which the caller now owns; the reader must not be used any more."""
        pending, self._start = self._view[self._start : self._end], self._end
        return pending

    def feed(self, data: Buffer) -> list[bytes]:
        """Takes any bytes and returns copies of the frames they complete, for callers without a socket."""
        frames = []
        data = memoryview(data)
        while data:
            room = self.writable()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.received(count)
            data = data[count:]
            while (frame := self.next_frame()) is not None:
                frames.append(bytes(frame))
        return frames

    def shrink(self) -> None:
        """Frees the space of a large frame when nothing is pending; for connections that became idle."""
        if self._start == self._end and len(self._buffer) > self._initial:
            self._start = self._end = 0
            self._resize(self._initial)

    def _resize(self, size: int) -> None:
        """Allocates a new buffer: the old one cannot be resized while views of it exist."""
        pending = self._end - self._start
        buffer = bytearray(size)
        view = memoryview(buffer)
        view[:pending] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, view
        self._start, self._end = 0, pending
