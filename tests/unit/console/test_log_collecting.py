"""What leaders' logs are asked; whole samples are taken from brokers in tests/node/test_why.py and tests/causes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.console.group_samples import AT, HEALTHY
from tidelog.client.calls import Ask, Call
from tidelog.console.log_collecting import DEBUGGING_REPLICA, log_ends, with_epochs, with_next
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse
from tidelog.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tidelog.records.builder import RecordData, build_batch

BEHIND = replace(HEALTHY, committed=99, committed_epoch=4)


def result(call: Call[Any], *answers: Any) -> Any:
    """Of the call with these answers; an error is raised in it."""
    with pytest.raises(StopIteration) as end:
        next(call)
        for answer in answers:
            if isinstance(answer, Exception):
                call.throw(answer)
            else:
                call.send(answer)
    return end.value.value


def test_the_end_of_a_log_is_asked_as_a_debugging_replica_does() -> None:
    call = log_ends(1, [AT])
    asked = next(call)
    assert isinstance(asked, Ask) and asked.request.replica_id == DEBUGGING_REPLICA
    part = ListOffsetsPartitionResponse(partition_index=0, offset=120)
    with pytest.raises(StopIteration) as end:
        call.send(ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[part])]))
    assert end.value.value == {AT: 120}
    assert result(log_ends(1, [AT]), KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)) == {}


def test_the_epoch_of_a_committed_offset_is_looked_up() -> None:
    part = EpochEndOffset(partition=0, leader_epoch=3, end_offset=60)
    answer = OffsetForLeaderEpochResponse(topics=[OffsetForLeaderTopicResult(topic="orders", partitions=[part])])
    assert result(with_epochs({AT: BEHIND}), answer)[AT].epoch_end == (3, 60)
    with pytest.raises(StopIteration) as nothing_to_ask:
        next(with_epochs({AT: HEALTHY}))
    assert nothing_to_ask.value.value == {AT: HEALTHY}


def fetched(records: bytes, code: int = 0) -> FetchResponse:
    part = PartitionData(partition_index=0, error_code=code, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[part])])


def test_the_next_record_comes_with_those_before_it() -> None:
    batch = bytes(build_batch([RecordData(None, b"{}")] * 9, base_offset=91))
    found = result(with_next({AT: BEHIND}, {}), fetched(batch), fetched(batch))[AT].next
    assert (found.offset, found.kind, found.before) == (99, "JSON", ("JSON",) * 8)


def test_a_leader_may_call_the_batch_corrupt_or_refuse_to_show_it() -> None:
    corrupt = result(with_next({AT: BEHIND}, {}), fetched(b"", ErrorCode.CORRUPT_MESSAGE))[AT].next
    assert corrupt.corrupt == "the leader answers CORRUPT_MESSAGE"
    refused = fetched(b"", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert result(with_next({AT: BEHIND}, {}), refused)[AT].next is None
