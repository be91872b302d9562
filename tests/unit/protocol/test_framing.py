"""Headers, and frames out of a byte stream however it is cut."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import framing
from tidelog.protocol.api_keys import API_FACTS, ApiKey
from tidelog.protocol.framing import FrameReader, RequestHeader
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidelog.protocol.messages.request_header import RequestHeader as GeneratedHeader


@pytest.mark.parametrize("client_id", [None, "", "kafka-client", "größe"])
def test_request_headers_are_those_of_the_definition_for_every_api_and_version(client_id: str | None) -> None:
    for key, facts in API_FACTS.items():
        for version in range(facts.min_version, facts.max_version + 1):
            header = RequestHeader(key, version, 77, client_id)
            data = framing.encode_request_header(header)
            generated = GeneratedHeader(request_api_key=key, request_api_version=version, correlation_id=77, client_id=client_id)
            assert data == generated.encode(2 if version >= facts.flexible_from else 1)
            assert framing.decode_request_header(data + b"body") == (header, len(data))


def test_the_client_id_stays_a_plain_string_in_the_flexible_header() -> None:
    header = RequestHeader(ApiKey.METADATA, 12, 1, "ab")
    assert framing.encode_request_header(header) == b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x02ab\x00"


def test_unknown_tags_of_a_header_are_skipped() -> None:
    data = framing.encode_request_header(RequestHeader(ApiKey.METADATA, 12, 1, "ab"))
    header, pos = framing.decode_request_header(data[:-1] + b"\x01\x00\x03xyz" + b"body")
    assert (header.client_id, pos) == ("ab", len(data) + 5)


@pytest.mark.parametrize("key", [-1, 4, 7, 95, 999])
def test_an_unknown_api_is_a_violation(key: int) -> None:
    with pytest.raises(ProtocolViolation, match=f"API key {key}"):
        framing.decode_request_header(struct.pack(">hhih", key, 0, 1, -1))


def test_an_api_versions_request_of_the_future_still_has_a_readable_header() -> None:
    data = framing.encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 99, 5, "new"))
    header, _ = framing.decode_request_header(data + b"whatever it says then")
    assert (header.api_version, header.correlation_id) == (99, 5)


@pytest.mark.parametrize(
    "tail", [b"", b"\x00", b"\x00\x05abc", b"\xff\xfe", b"\x00\x02\xff\xfe\x00", b"\x00\x02ab", b"\x00\x02ab\x01\x00\x09"]
)
def test_a_broken_header_is_a_violation(tail: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        framing.decode_request_header(struct.pack(">hhi", ApiKey.METADATA, 12, 1) + tail)


def test_response_headers_are_flexible_with_the_version_but_never_for_api_versions() -> None:
    assert not framing.response_header_is_flexible(ApiKey.METADATA, 8)
    assert framing.response_header_is_flexible(ApiKey.METADATA, 9)
    assert not any(framing.response_header_is_flexible(ApiKey.API_VERSIONS, version) for version in range(100))
    assert not framing.response_header_is_flexible(ApiKey.SASL_HANDSHAKE, 1)
    assert framing.request_header_is_flexible(ApiKey.API_VERSIONS, 3)


def test_a_response_frame_is_the_same_whichever_way_it_is_made() -> None:
    body = MetadataResponse(cluster_id="c", controller_id=1)
    for version, flexible in ((8, False), (12, True)):
        data = body.encode(version)
        frame = framing.encode_response(9, flexible, data)
        assert frame == framing.encode_response_message(9, ApiKey.METADATA, version, body)
        assert frame == framing.response_prefix(9, flexible, len(data)) + data
        assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
        correlation_id, pos = framing.decode_response_header(frame[4:], flexible)
        assert (correlation_id, frame[4 + pos :]) == (9, data)


def test_a_cut_response_header_is_a_violation() -> None:
    for data, flexible in ((b"\0\0\0", False), (b"\0\0\0\1", True)):
        with pytest.raises(ProtocolViolation, match="cut off"):
            framing.decode_response_header(data, flexible)


def test_a_request_frame_is_read_back() -> None:
    header = RequestHeader(ApiKey.METADATA, 12, 3, "c")
    (frame,) = FrameReader().feed(framing.encode_request(header, MetadataRequest(topics=None)))
    found, pos = framing.decode_request_header(frame)
    assert found == header
    assert MetadataRequest.decode(frame[pos:], 12).topics is None
    assert header != RequestHeader(ApiKey.METADATA, 12, 4, "c")
    assert ApiVersionsRequest.API_KEY == ApiKey.API_VERSIONS


def frame_of(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=12), st.data())
def test_frames_do_not_depend_on_how_the_stream_is_cut(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(frame_of, bodies))
    reader = FrameReader(initial=16)
    frames = []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        frames += reader.feed(stream[:count])
        stream = stream[count:]
    assert frames == bodies
    assert reader.pending == 0
    assert reader.capacity <= 4 * max([16, *(len(b) + 4 for b in bodies)])


def test_frames_lie_in_the_buffer_and_can_be_patched() -> None:
    reader = FrameReader()
    room = reader.writable()
    room[:14] = frame_of(b"abc") + frame_of(b"def")
    reader.received(14)
    first, second = reader.next_frame(), reader.next_frame()
    assert first is not None and second is not None and reader.next_frame() is None
    first[0] = ord("z")
    assert (bytes(first), bytes(second)) == (b"zbc", b"def")


def test_an_announced_size_takes_no_memory_until_the_bytes_come() -> None:
    reader = FrameReader()
    assert reader.feed(struct.pack(">i", 100_000_000) + b"x" * 1000) == []
    assert reader.capacity == 4096
    reader.feed(b"x" * 100_000)
    assert reader.capacity <= 4 * 101_004
    assert reader.pending == 101_004


@pytest.mark.parametrize("size", [-1, 1001, -(2**31), 2**31 - 1])
def test_a_size_that_is_negative_or_too_large_is_a_violation(size: int) -> None:
    reader = FrameReader(max_frame_bytes=1000)
    with pytest.raises(ProtocolViolation, match=r"socket\.request\.max\.bytes"):
        reader.feed(struct.pack(">i", size))


def test_the_largest_allowed_and_the_empty_frame_pass() -> None:
    assert FrameReader(max_frame_bytes=1000).feed(frame_of(b"x" * 1000) + frame_of(b"")) == [b"x" * 1000, b""]


def test_only_produce_may_be_larger_than_the_limit_of_other_requests() -> None:
    for key, passes in ((ApiKey.PRODUCE, True), (ApiKey.METADATA, False)):
        body = struct.pack(">h", key) + b"x" * 999
        reader = FrameReader(max_frame_bytes=2000, max_plain_bytes=1000)
        assert reader.feed(frame_of(body)[:5]) == []
        if passes:
            assert reader.feed(frame_of(body)[5:]) == [body]
        else:
            with pytest.raises(ProtocolViolation, match="API key 3"):
                reader.feed(frame_of(body)[5:6])
        assert FrameReader(max_plain_bytes=1001).feed(frame_of(body)) == [body]


def test_an_idle_connection_gives_back_what_a_large_frame_took() -> None:
    reader = FrameReader()
    reader.feed(frame_of(b"x" * 100_000) + b"\0")
    reader.shrink()
    assert reader.capacity > 100_000, "a byte of the next frame is pending"
    reader.feed(b"\0\0\0")
    reader.shrink()
    assert reader.capacity == 4096
    assert reader.feed(frame_of(b"next")) == [b"next"]


def fill(reader: FrameReader, stream: bytes) -> int:
    """One read from a socket that holds ``stream``: how many bytes of it fit."""
    room = reader.writable()
    count = min(len(room), len(stream))
    room[:count] = stream[:count]
    reader.received(count)
    return count


def test_a_buffer_that_frames_in_a_row_fill_grows_to_the_read_ahead() -> None:
    frame = frame_of(b"x" * 1000)
    stream = frame * 100
    reader = FrameReader(read_ahead=20_000)
    seen, reads = 0, []
    while stream:
        reads.append(fill(reader, stream))
        stream = stream[reads[-1] :]
        while (found := reader.next_frame()) is not None:
            assert found == frame[4:]
            seen += 1
    assert seen == 100
    assert reads[0] == 4096 and max(reads) > 18_900, "most of the buffer, which holds the rest of a frame besides"
    assert reader.capacity == 20_000
    reader.shrink()
    assert reader.capacity == 4096


def test_a_buffer_that_was_never_full_does_not_grow() -> None:
    reader = FrameReader(read_ahead=20_000)
    for _ in range(100):
        assert reader.feed(frame_of(b"x" * 3000)) == [b"x" * 3000]
    assert reader.capacity == 4096
    plain = FrameReader()
    plain.feed(frame_of(b"x" * 1000) * 100)
    assert plain.capacity == 4096


def test_what_is_pending_can_be_taken_and_outlives_the_reader() -> None:
    reader = FrameReader()
    room = reader.writable()
    room[:9] = b"\0\0\0\x01a\0\0\0\x02"
    reader.received(9)
    frame = reader.next_frame()
    rest = reader.take_pending()
    assert (bytes(frame or b""), bytes(rest)) == (b"a", b"\0\0\0\x02")
    assert reader.pending == 0
