"""Streams groups at the level of messages: internal topics are created for the client, and what a client may not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.broker.allowing import Permission
from tests.unit.broker.apis.guarded import Guarded, guarded
from tests.unit.broker.apis.live import Talk
from tests.unit.coordinator.group.streams.streams_driver import COUNTS, IN, WORDS, active, statuses, word_count
from tidelog.broker.apis.groups import streams_groups
from tidelog.coordinator.group.streams.streams_answer import StatusCode, status
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.delete_groups import DeleteGroupsRequest
from tidelog.protocol.messages.list_groups import ListGroupsRequest
from tidelog.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from tidelog.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tidelog.testing import Broker

READ, DESCRIBE, CREATE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.CREATE
GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC


def join(group: str = "g", topology: Topology | None = None) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        rebalance_timeout_ms=60_000,
        topology=word_count() if topology is None else topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )


def until_ready(talk: Talk, group: str, epoch: int) -> Any:
    """Heartbeats until the answer has tasks."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        answer = talk.ask(StreamsGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=epoch), 0)
        assert answer.error_code == 0, answer
        if answer.active_tasks:
            return answer
        epoch = answer.member_epoch
        time.sleep(0.02)
    raise AssertionError("no tasks in 20 s")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    config = {"group.streams.initial.rebalance.delay.ms": 0, "group.streams.assignment.interval.ms": 0}
    with Broker(config=config) as running:
        running.create_topic(IN, partitions=2)
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    talk.find("g")
    yield talk
    talk.close()


def test_internal_topics_are_created_and_then_there_are_tasks(talk: Talk) -> None:
    first = talk.ask(join(), 0)
    assert (first.error_code, statuses(first), active(first)) == (0, [3], {})
    ready = until_ready(talk, "g", first.member_epoch)
    assert active(ready) == {"0": [0, 1], "1": [0, 1]}
    (described,) = talk.ask(StreamsGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True), 0).groups
    assert (described.error_code, described.group_state, len(described.members)) == (0, "Stable", 1)
    assert {each.name: each.partitions for each in described.topology.subtopologies[1].state_changelog_topics} == {COUNTS: 2}
    assert described.authorized_operations > 0
    (listed,) = talk.ask(ListGroupsRequest(types_filter=["streams"]), 5).groups
    assert (listed.group_id, listed.group_type, listed.protocol_type) == ("g", "streams", "streams")
    (refused,) = talk.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert refused.error_code == E.NON_EMPTY_GROUP
    assert talk.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1), 0).error_code == 0
    (deleted,) = talk.ask(DeleteGroupsRequest(groups_names=["g"]), 2).results
    assert deleted.error_code == 0


def test_what_keeps_topics_from_being_created_is_told(talk: Talk) -> None:
    topology = word_count()
    for info in (topology.subtopologies[1].repartition_source_topics[0], topology.subtopologies[1].state_changelog_topics[0]):
        info.name = f"other-{info.name}"
        info.topic_configs = [KeyValue("cleanup.policy", "nonsense")]
    topology.subtopologies[0].repartition_sink_topics = [f"other-{WORDS}"]
    epoch = talk.ask(join("wrong", topology), 0).member_epoch
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        answer = talk.ask(StreamsGroupHeartbeatRequest(group_id="wrong", member_id="m", member_epoch=epoch), 0)
        (told,) = [each.status_detail for each in answer.status if each.status_code == 3]
        epoch = answer.member_epoch
        if "Creation failed" in told:
            break
        time.sleep(0.02)
    assert f"other-{COUNTS} (" in told, told
    assert f"other-{WORDS} (" in told, told


@pytest.mark.parametrize("name", ["__consumer_offsets", "no/topic", ""])
def test_topics_that_no_application_may_have(talk: Talk, name: str) -> None:
    assert talk.ask(join("names", word_count(source=name)), 0).error_code == E.STREAMS_INVALID_TOPOLOGY


def test_unknown_groups_are_described_as_such(talk: Talk) -> None:
    answer = talk.ask(StreamsGroupDescribeRequest(group_ids=["none", ""]), 0)
    assert [each.error_code for each in answer.groups] == [E.GROUP_ID_NOT_FOUND, E.INVALID_GROUP_ID]
    assert [each.topology for each in answer.groups] == [None, None]


def test_a_request_that_is_not_well_formed_is_refused(talk: Talk) -> None:
    answer = talk.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="", member_epoch=1), 0)
    assert answer.error_code == E.INVALID_REQUEST


def test_without_the_feature_the_answer_is_unsupported_and_the_connection_goes_on() -> None:
    with Broker() as other:
        alone = Talk(other.port)
        off = FeatureUpdateKey(feature="streams.version", max_version_level=0, upgrade_type=2)
        alone.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[off]), 1)
        assert alone.ask(join(), 0).error_code == E.UNSUPPORTED_VERSION
        assert alone.ask(StreamsGroupDescribeRequest(group_ids=["g"]), 0).groups[0].error_code == E.UNSUPPORTED_VERSION
        on = FeatureUpdateKey(feature="streams.version", max_version_level=1, upgrade_type=1)
        assert alone.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[on]), 1).error_code == 0
        alone.find("g")
        assert alone.ask(join(), 0).error_code == 0
        alone.close()
    with Broker(config={"group.coordinator.rebalance.protocols": "classic,consumer"}) as other:
        alone = Talk(other.port)
        assert alone.ask(join(), 0).error_code == E.UNSUPPORTED_VERSION
        alone.close()


# -- permissions ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[Guarded]:
    with guarded() as found:
        found.broker.create_topic(IN, partitions=2)
        yield found


def may(operation: AclOperation, kind: ResourceType, *names: str) -> list[Permission]:
    return [(operation, kind, name) for name in names]


JOINS = [*may(READ, GROUP, "acl"), *may(DESCRIBE, TOPIC, IN, WORDS, COUNTS)]


def test_a_member_needs_read_on_the_group_and_describe_on_its_topics(running: Guarded) -> None:
    for index, error in ((0, E.GROUP_AUTHORIZATION_FAILED), (2, E.TOPIC_AUTHORIZATION_FAILED)):
        left = [each for number, each in enumerate(JOINS) if number != index]
        assert running.ask(join("acl"), 0, *left).error_code == error


def test_topics_are_created_with_the_permissions_of_the_client(running: Guarded) -> None:
    denied = running.ask(join("acl"), 0, *JOINS)
    (told,) = [each.status_detail for each in denied.status if each.status_code == 3]
    assert told.endswith(f"; Unauthorized to CREATE on topics {COUNTS}, {WORDS}.")
    partly = running.ask(join("acl"), 0, *JOINS, *may(CREATE, TOPIC, WORDS))
    (told,) = [each.status_detail for each in partly.status if each.status_code == 3]
    assert told.endswith(f"; Unauthorized to CREATE on topics {COUNTS}.")
    by_cluster = running.ask(join("acl"), 0, *JOINS, *may(CREATE, ResourceType.CLUSTER, CLUSTER_NAME))
    (told,) = [each.status_detail for each in by_cluster.status if each.status_code == 3]
    assert "Unauthorized" not in told
    until_ready(running.talk, "acl", by_cluster.member_epoch)


def test_a_group_with_a_hidden_topic_is_not_described(running: Guarded) -> None:
    request = StreamsGroupDescribeRequest(group_ids=["acl"])
    topics = may(DESCRIBE, TOPIC, IN, WORDS, COUNTS)
    group = may(DESCRIBE, GROUP, "acl")
    assert running.ask(request, 0, *group, *topics).groups[0].error_code == 0
    assert running.ask(request, 0, *topics).groups[0].error_code == E.GROUP_AUTHORIZATION_FAILED
    (hidden,) = running.ask(request, 0, *group, *topics[1:]).groups
    assert (hidden.error_code, hidden.members, hidden.topology) == (E.TOPIC_AUTHORIZATION_FAILED, [], None)


def test_what_keeps_many_topics_from_being_created_can_be_sent() -> None:
    answer = StreamsGroupHeartbeatResponse(status=[status(StatusCode.MISSING_INTERNAL_TOPICS, "Internal topics do not exist")])
    streams_groups._explain(answer, f"Unauthorized to CREATE on topics {', '.join('t' * 110 for _ in range(300))}.")
    (told,) = StreamsGroupHeartbeatResponse.decode(answer.encode(0), 0).status or ()
    assert told.status_detail.startswith("Internal topics do not exist; Unauthorized to CREATE on topics ttt")
    assert streams_groups._refused(E.STREAMS_INVALID_TOPOLOGY, "x" * 40_000).encode(0)
