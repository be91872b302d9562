from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NOW_MS, NodeWorld
from tidelog.broker.apis.quorum import describe_quorum
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from tidelog.raft.description import QuorumDescription, ReplicaDescription
from tidelog.records.control import Endpoint

QUORUM = QuorumDescription(1, 5, 70, (ReplicaDescription(1, Uuid(b"D" * 16), 72, (Endpoint("CONTROLLER", "h", 9093),)),))


class Controller:
    def describe_quorum(self) -> QuorumDescription:
        return QUORUM


def ask(version: int, *asked: tuple[str, list[int]]) -> DescribeQuorumResponse:
    world = NodeWorld()
    world.broker.controller = Controller()  # type: ignore[assignment]
    topics = [RequestTopicData(name, [RequestPartitionData(index) for index in indexes]) for name, indexes in asked]
    response = describe_quorum(world.context(version), DescribeQuorumRequest(topics=topics))
    return DescribeQuorumResponse.decode(response.encode(version), version)


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_described_as_far_as_the_version_can_tell(version: int) -> None:
    response = ask(version, ("__cluster_metadata", [0]))
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 5, 70)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset, partition.observers) == (1, 72, [])
    assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == (NOW_MS if version >= 1 else -1)
    assert voter.replica_directory_id == (b"D" * 16 if version >= 2 else bytes(16))
    nodes = [(node.node_id, [(at.name, at.host, at.port) for at in node.listeners]) for node in response.nodes]
    assert nodes == ([(1, [("CONTROLLER", "h", 9093)])] if version >= 2 else [])


@pytest.mark.parametrize("asked", [("t", [0]), ("__cluster_metadata", [1]), ("__cluster_metadata", [0, 1])])
def test_any_other_partition_is_unknown(asked: tuple[str, list[int]]) -> None:
    response = ask(2, asked)
    assert [each.error_code for each in response.topics[0].partitions] == [3] * len(asked[1])
    assert response.nodes == []


def test_nothing_asked_is_nothing_answered() -> None:
    assert ask(2).topics == []
