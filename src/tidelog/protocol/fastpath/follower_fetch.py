"""A follower's Fetch: requests written and answers read at once where both name one partition, which nearly all do under load.

Anything else goes through the generated classes, malformed answers too; a property test compares both ways.
"""

from __future__ import annotations

import struct

from tidelog.model.ports import Buffer
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from tidelog.protocol.primitives import ZERO_UUID, read_uvarint

_STATE_IN_TAG_FROM = 15
_BY_ID_FROM = 13
_NO_HIGH_WATERMARK = 0x7FFFFFFFFFFFFFFF
_ONE_WANTED = struct.Struct(">iiibiiB16sBiiqiqiBBBBBBBiqB")
"""From the longest wait to the tag with the follower's id and epoch, which has 13 bytes."""
_ONE_FOUND = struct.Struct(">ihiB16sBihqqqBi")
"""From the throttle time to the preferred replica."""
_SHORTEST = _ONE_FOUND.size + 8
"""Shorter answers have no records."""


def write_follower_fetch(request: FetchRequest, out: bytearray, version: int) -> None:
    """As ``request.encode_into``."""
    topics, state = request.topics, request.replica_state
    if (
        version >= _STATE_IN_TAG_FROM
        and version <= FetchRequest.MAX_VERSION
        and len(topics) == 1
        and len(wanted := topics[0].partitions) == 1
        and len(topics[0].topic_id) == 16
        and wanted[0].high_watermark == _NO_HIGH_WATERMARK
        and wanted[0].replica_directory_id == ZERO_UUID
        and state.replica_id != -1
        and request.replica_id == -1
        and request.cluster_id is None
        and not request.forgotten_topics_data
        and not request.rack_id
    ):
        (one,) = wanted
        try:
            out += _ONE_WANTED.pack(
                request.max_wait_ms,
                request.min_bytes,
                request.max_bytes,
                request.isolation_level,
                request.session_id,
                request.session_epoch,
                2,
                topics[0].topic_id,
                2,
                one.partition,
                one.current_leader_epoch,
                one.fetch_offset,
                one.last_fetched_epoch,
                one.log_start_offset,
                one.partition_max_bytes,
                # No tags of the partition and of the topic, no forgotten topics, no rack; one tag.
                0,
                0,
                1,
                1,
                1,
                1,
                13,
                state.replica_id,
                state.replica_epoch,
                0,
            )
        except struct.error:
            pass  # the generated class says which value does not fit
        else:
            return
    request.encode_into(out, version)


def read_follower_fetch(buf: Buffer, version: int) -> FetchResponse:
    """As ``FetchResponse.decode``; records are a view of ``buf``. ProtocolViolation when it is malformed."""
    length = len(buf)
    if _BY_ID_FROM <= version <= FetchResponse.MAX_VERSION and length >= _SHORTEST:
        throttle_ms, error, session_id, topics, topic_id, partitions, index, code, high, stable, start, aborted, preferred = (
            _ONE_FOUND.unpack_from(buf)
        )
        if topics == 2 and partitions == 2 and aborted <= 1:
            size, pos = read_uvarint(buf, _ONE_FOUND.size)
            end = pos + size - 1
            if size and end + 3 == length and not (buf[end] or buf[end + 1] or buf[end + 2]):
                found = PartitionData(
                    index,
                    code,
                    high,
                    stable,
                    start,
                    aborted_transactions=[] if aborted else None,
                    preferred_read_replica=preferred,
                    records=memoryview(buf)[pos:end],
                )
                return FetchResponse(throttle_ms, error, session_id, [FetchableTopicResponse("", topic_id, [found])], [])
    return FetchResponse.decode(buf, version)
