"""Handlers that are imported at their first request."""

from __future__ import annotations

from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.api import Route
from tidelog.broker.apis.cluster import scram
from tidelog.broker.apis.topics import reassignments
from tidelog.broker.deferred import DeferredFunction, deferred, loaded
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.table import API_TABLE, BROKER_APIS, CONTROLLER_APIS
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

OFTEN = {
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.SYNC_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.API_VERSIONS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.VOTE,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
}
"""Between a client's records and their acknowledgement, or between nodes: no import may delay them."""


def routes() -> list[Route]:
    return [*BROKER_APIS.values(), *CONTROLLER_APIS.values()]


def is_deferred(route: Route) -> bool:
    return isinstance(route.handler, DeferredFunction)


def test_a_deferred_function_is_the_one_of_its_module() -> None:
    (module,) = deferred("topics", "reassignments")
    function = module.list_partition_reassignments
    assert loaded(function) is reassignments.list_partition_reassignments
    ctx = NodeWorld().context(0)
    assert function(ctx, ListPartitionReassignmentsRequest(topics=None)).error_code == 0


def test_what_is_not_deferred_stays_as_it_is() -> None:
    assert loaded(test_what_is_not_deferred_stays_as_it_is) is test_what_is_not_deferred_stays_as_it_is


def test_all_deferred_functions_of_the_table_exist() -> None:
    found = [loaded(route.handler) for route in routes()] + [loaded(row.refuse) for row in API_TABLE]
    assert all(callable(each) and not isinstance(each, DeferredFunction) for each in found)
    route = BROKER_APIS[ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS]
    assert is_deferred(route)
    assert loaded(route.handler) is scram.describe_user_scram_credentials


def test_requests_between_a_record_and_its_acknowledgement_wait_for_no_import() -> None:
    assert [route.api.key.name for route in routes() if route.api.key in OFTEN and is_deferred(route)] == []


def test_the_dispatcher_calls_a_deferred_handler() -> None:
    broker = NodeWorld().broker
    request = ListPartitionReassignmentsRequest(topics=None)
    header = RequestHeader(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 7, "c")
    frame = memoryview(bytearray(encode_request(header, request)[4:]))
    dispatcher = Dispatcher(broker, broker.apis)
    for _ in range(2):
        assert isinstance(dispatcher.handle(NodeWorld().session(), frame), list)
