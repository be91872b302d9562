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
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.describe_groups import DescribeGroupsRequest
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

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
