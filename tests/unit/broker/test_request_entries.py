from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker import request_entries
from tidelog.broker.answer_types import NO_RESPONSE
from tidelog.broker.apis.topics.metadata import Question
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.request import Context
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.arrays import read_at_most, read_count
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

REQUESTS = (
    (4, lambda count: FindCoordinatorRequest(coordinator_keys=[""] * count)),
    (5, lambda count: DescribeGroupsRequest(groups=[""] * count)),
    (2, lambda count: DeleteGroupsRequest(groups_names=[""] * count)),
    (12, lambda count: MetadataRequest(topics=[MetadataRequestTopic(name="")] * count)),
    (7, lambda count: ListOffsetsRequest(topics=[ListOffsetsTopic(name="")] * count)),
)


def handled(ctx: Context, request: Any) -> Any:
    if isinstance(request, Question):
        request.read()
    return NO_RESPONSE


def send(request: Any, version: int) -> None:
    world = NodeWorld()
    frame = bytearray(encode_request(RequestHeader(request.API_KEY, version, 1, "me"), request)[4:])
    apis = {key: replace(route, handler=handled) for key, route in BROKER_APIS.items()}
    assert Dispatcher(world.broker, apis).handle(world.session(), memoryview(frame)) is NO_RESPONSE


@pytest.mark.parametrize(("version", "made"), REQUESTS, ids=lambda each: str(each)[:2])
def test_a_request_with_too_many_entries_is_not_handled(version: int, made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_entries, "MOST_ENTRIES", 50)
    send(made(50), version)
    with pytest.raises(ProtocolViolation, match=r"a request with 51 .*, allowed are 50"):
        send(made(51), version)


def test_what_any_client_may_send_is_bounded_and_what_nodes_and_administrators_send_is_not() -> None:
    world = NodeWorld()
    for apis in (BROKER_APIS, CONTROLLER_APIS):
        dispatcher = Dispatcher(world.broker, apis)
        for key, route in apis.items():
            ctx = world.context()
            ctx.api_key = key
            read = dispatcher._serve(ctx).read
            exempt = bool(route.read or route.needs.on_cluster or route.api.between_brokers_from is not None)
            assert (read.__name__ == "read_bounded") is not exempt, ApiKey(key).name


NESTED = (
    (9, lambda count: OffsetFetchRequest(groups=[_group(10) for _ in range(count)])),
    (
        9,
        lambda count: ProduceRequest(
            topic_data=[TopicProduceData(name="", partition_data=[PartitionProduceData()] * 10)] * count
        ),
    ),
    (12, lambda count: FetchRequest(topics=[FetchTopic(topic="", partitions=[FetchPartition()] * 10)] * count)),
    (12, lambda count: MetadataRequest(topics=[MetadataRequestTopic(name="")] * (10 * count))),
    (1, lambda count: WriteTxnMarkersRequest(markers=[WritableTxnMarker(topics=[WritableTxnMarkerTopic()] * 10)] * count)),
)


def _group(topics: int) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(topics=[OffsetFetchRequestTopics(partition_indexes=[1])] * topics)


@pytest.mark.parametrize(("version", "made"), NESTED, ids=lambda each: str(each)[:2])
def test_all_arrays_of_a_request_together_are_bounded_while_they_are_decoded(
    version: int, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_entries, "MOST_ELEMENTS", 150)
    send(made(5), version)
    with pytest.raises(ProtocolViolation, match=r"a message with an array of \d+ elements where \d+ more are allowed"):
        send(made(16), version)


def test_another_buffer_is_read_without_the_limit_of_the_first() -> None:
    inner = bytes([0, 0, 0, 9, *range(9)])

    def read(buf: memoryview, pos: int, version: int) -> int:
        return read_count(inner, 0, 1, False)[0] + read_count(buf, pos, 1, False)[0]

    assert read_at_most(9, read, memoryview(inner), 0, 0) == 18
    with pytest.raises(ProtocolViolation):
        read_at_most(8, read, memoryview(inner), 0, 0)
    assert read_count(inner, 0, 1, False) == (9, 4)
