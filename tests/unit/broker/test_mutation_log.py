from __future__ import annotations

from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.topics.partitions import create_partitions
from tidelog.broker.apis.topics.topics import create_topics, delete_topics
from tidelog.broker.mutation_log import SHOWN
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tidelog.broker.mutation_log")


def create(world: NodeWorld, *names: str, **fields: Any) -> None:
    wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    run(create_topics(world.context(7), CreateTopicsRequest(topics=wanted, timeout_ms=1000, **fields)))


def test_the_client_behind_each_change_of_topics_is_named(caplog: pytest.LogCaptureFixture) -> None:
    world = NodeWorld()
    create(world, "a", "b", "no/name")
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=2, assignments=None)], timeout_ms=1000)
    run(create_partitions(world.context(3), more))
    run(delete_topics(world.context(6), DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1000)))
    assert caplog.messages == [
        "client tester at 10.0.0.1 created topics a, b",
        "client tester at 10.0.0.1 added partitions to topic a",
        "client tester at 10.0.0.1 deleted topic a",
    ]


def test_nothing_is_logged_for_what_was_refused_or_only_validated(caplog: pytest.LogCaptureFixture) -> None:
    world = NodeWorld()
    create(world, "no/name")
    create(world, "a", validate_only=True)
    assert caplog.messages == []


def test_only_the_first_topics_are_named(caplog: pytest.LogCaptureFixture) -> None:
    create(NodeWorld(), *(f"t{number}" for number in range(SHOWN + 2)))
    assert caplog.messages[0].endswith("t9 and 2 more")
