from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.cluster import describe, features, quorum
from tidelog.client.admin.results import NodeDescription, QuorumReplica
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)


def test_a_cluster_without_a_controller_and_nodes_in_order() -> None:
    rows = [DescribeClusterBroker(broker_id=each, host="h", port=each, is_fenced=each == 2) for each in (2, 1)]
    found = answered(describe(), Table(DescribeClusterResponse(cluster_id="c", controller_id=-1, brokers=rows)))
    assert (found.cluster_id, found.controller_id) == ("c", None)
    assert found.nodes == (NodeDescription(1, "h", 1, None, False), NodeDescription(2, "h", 2, None, True))


def test_the_quorum_as_its_leader_sees_it() -> None:
    state = ReplicaState(replica_id=1, log_end_offset=9, last_fetch_timestamp=5, last_caught_up_timestamp=4)
    part = ResponsePartitionData(leader_id=1, leader_epoch=3, high_watermark=8, current_voters=[state])
    found = answered(quorum(), Table(DescribeQuorumResponse(topics=[ResponseTopicData(partitions=[part])])))
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 3, 8)
    assert (found.voters, found.observers) == ((QuorumReplica(1, 9, 5, 4),), ())
    with pytest.raises(KafkaError, match="NOT_LEADER"):
        answered(quorum(), Table(DescribeQuorumResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)))


def test_finalized_features() -> None:
    row = FinalizedFeatureKey(name="group.version", max_version_level=1)
    assert answered(features(), Table(ApiVersionsResponse(finalized_features=[row]))) == {"group.version": 1}
