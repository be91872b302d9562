"""Every API that is served can be refused, at every version, with bytes that its clients can read."""

from __future__ import annotations

import logging
import random
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, run
from tests.unit.protocol.random_messages import Maker, message_named
from tidelog.broker.answer_types import CLOSE_CONNECTION
from tidelog.broker.api import Route
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.refusals import each_and_whole, first_error, regular
from tidelog.broker.request import Context
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request_header, response_header_is_flexible
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntityData,
    RequestEntryData,
)
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialDeletion
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.describe_quorum import DescribeQuorumResponse, ResponsePartitionData, ResponseTopicData
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest

CODE = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
WORDS = "the words of this refusal"


@pytest.fixture(scope="module")
def world() -> NodeWorld:
    made = NodeWorld()
    made.create("t")
    return made


def raising(error: Exception) -> Any:
    def handler(ctx: Context, request: Any) -> Any:
        raise error

    return handler


def answered(world: NodeWorld, route: Route, error: Exception, request: Any, version: int, *, later: bool = False) -> Any:
    """The decoded answer to a request whose handler raises."""
    handler = raising(error)
    if later:

        async def handler(ctx: Context, request: Any) -> Any:
            raise error

    header = encode_request_header(RequestHeader(route.api.key, version, 7, "me"))
    outgoing = Dispatcher(world.broker, {route.api.key: replace(route, handler=handler)}).handle(
        world.session(), memoryview(bytearray(header + request.encode(version)))
    )
    if isinstance(outgoing, Coroutine):
        outgoing = run(outgoing)
    if outgoing is CLOSE_CONNECTION:
        return outgoing
    data = b"".join(bytes(part) for part in outgoing)  # type: ignore[union-attr,arg-type]
    body = data[9 if response_header_is_flexible(route.api.key, version) else 8 :]
    return registry.response_class(route.api.key).decode(body, version)


def requests(key: int, version: int) -> list[Any]:
    """Some that could come."""
    cls = registry.request_class(key)
    return [Maker(message_named(cls.NAME), version, random.Random(seed), tame=True).make() for seed in range(6)]


@pytest.mark.parametrize(
    "route",
    [*BROKER_APIS.values(), *CONTROLLER_APIS.values()],
    ids=[*(f"broker-{ApiKey(key).name}" for key in BROKER_APIS), *(f"controller-{ApiKey(key).name}" for key in CONTROLLER_APIS)],
)
def test_each_api_says_the_error_of_its_handler_at_every_version(world: NodeWorld, route: Route) -> None:
    first, last = route.api.versions
    for version in range(first, last + 1):
        said = 0
        for request in requests(route.api.key, version):
            for later in (False, True):
                answer = answered(world, route, KafkaError(CODE, WORDS), request, version, later=later)
                if answer is CLOSE_CONNECTION:
                    assert getattr(request, "acks", 1) == 0
                    continue
                said += first_error(answer) is CODE
        assert said, f"version {version} does not say the error"


def test_what_no_handler_foresaw_is_an_unknown_server_error_with_its_traceback_in_the_log(
    world: NodeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
    with caplog.at_level(logging.ERROR):
        answer = answered(world, BROKER_APIS[ApiKey.CREATE_TOPICS], ZeroDivisionError("secret"), request, 7)
    assert (answer.topics[0].error_code, answer.topics[0].error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert caplog.records[0].exc_info is not None and "secret" in str(caplog.records[0].exc_info[1])


def test_a_log_dir_that_fails_is_a_storage_error_without_its_path(world: NodeWorld) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a")])
    answer = answered(world, BROKER_APIS[ApiKey.CREATE_TOPICS], StorageFailure("/secret", "full"), request, 7)
    assert (answer.topics[0].error_code, answer.topics[0].error_message) == (ErrorCode.KAFKA_STORAGE_ERROR, None)


def refused(world: NodeWorld, key: ApiKey, request: Any, version: int, refusal: Any = None) -> Any:
    ctx = world.context(version)
    ctx.api_key = key
    return (refusal or BROKER_APIS[key].api.refuse)(ctx, request, KafkaError(CODE, WORDS))


def test_each_thing_that_was_asked_for_is_named_in_its_order_with_the_words(world: NodeWorld) -> None:
    request = CreatePartitionsRequest()
    both = DeleteTopicsRequest(topics=[DeleteTopicState("a", b"i" * 16), DeleteTopicState(None, b"j" * 16)])
    answer = refused(world, ApiKey.DELETE_TOPICS, both, 6)
    assert [(each.name, each.topic_id, each.error_code, each.error_message) for each in answer.responses] == [
        ("a", b"i" * 16, CODE, WORDS),
        (None, b"j" * 16, CODE, WORDS),
    ]
    assert refused(world, ApiKey.CREATE_PARTITIONS, request, 3).results == []


def test_things_that_are_named_by_a_bare_name_are_named_in_the_answer(world: NodeWorld) -> None:
    answer = refused(world, ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["g", "h"]), 2)
    assert [(each.group_id, each.error_code) for each in answer.results] == [("g", CODE), ("h", CODE)]
    old = refused(world, ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a"]), 4)
    assert [(each.name, each.error_code) for each in old.responses] == [("a", CODE)]


def test_an_entry_that_is_named_by_a_structure_is_named_by_the_same_one_of_the_answer(world: NodeWorld) -> None:
    request = AlterClientQuotasRequest(
        entries=[RequestEntryData([RequestEntityData("user", "anna"), RequestEntityData("client-id", None)])]
    )
    answer = refused(world, ApiKey.ALTER_CLIENT_QUOTAS, request, 1)
    assert isinstance(answer, AlterClientQuotasResponse)
    (entry,) = answer.entries
    assert [(each.entity_type, each.entity_name) for each in entry.entity] == [("user", "anna"), ("client-id", None)]
    assert AlterClientQuotasResponse.decode(answer.encode(1), 1) == answer


def test_what_is_said_twice_has_its_words_in_each_entry(world: NodeWorld) -> None:
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0, 1])])
    answer = refused(world, ApiKey.ELECT_LEADERS, request, 2, each_and_whole)
    (topic,) = answer.replica_election_results
    assert answer.error_code == CODE
    assert [(each.partition_id, each.error_message) for each in topic.partition_result] == [(0, WORDS), (1, WORDS)]


def test_a_refused_reassignment_says_so_at_the_top_and_for_each_partition(world: NodeWorld) -> None:
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t", [ReassignablePartition(0, None)])])
    answer = refused(world, ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, 1)
    (topic,) = answer.responses
    assert (answer.error_code, answer.error_message, topic.name) == (CODE, WORDS, "t")
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(0, CODE)]


def test_a_field_may_say_nothing_in_its_own_way(world: NodeWorld) -> None:
    answer = refused(world, ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(), 5, regular(producer_epoch=-1))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (CODE, -1, -1)


def test_the_first_error_of_an_answer_is_found_wherever_its_schema_says_it() -> None:
    whole = AlterPartitionReassignmentsResponse(error_code=CODE)
    inside = DescribeQuorumResponse(topics=[ResponseTopicData(partitions=[ResponsePartitionData(error_code=CODE)])])
    assert first_error(whole) is CODE
    assert first_error(inside) is CODE
    assert first_error(DescribeQuorumResponse()) is ErrorCode.NONE


def test_an_entry_whose_name_has_another_name_in_the_answer_is_named_by_its_first_field(world: NodeWorld) -> None:
    ctx = world.context(0)
    ctx.api_key = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    request = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("anna", 1)])
    answer: Any = regular()(ctx, request, KafkaError(CODE, WORDS))
    assert [(each.user, each.error_code) for each in answer.results] == [("anna", CODE)]
