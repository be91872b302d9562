"""The cluster, its metadata quorum and its finalized features."""

from __future__ import annotations

from typing import Any

from tidelog.client.admin.results import ClusterDescription, NodeDescription, QuorumDescription, QuorumReplica
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call
from tidelog.model.ids import METADATA_TOPIC, NO_BROKER


def describe(*, include_fenced: bool = False) -> Call[ClusterDescription]:
    """Cluster id, active controller and brokers; ``include_fenced`` adds registered brokers that are fenced. KafkaError."""
    from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

    response = yield Ask(DescribeClusterRequest(include_fenced_brokers=include_fenced))
    check(response.error_code, response.error_message)
    controller = None if response.controller_id == NO_BROKER else response.controller_id
    nodes = [NodeDescription(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in response.brokers]
    return ClusterDescription(response.cluster_id, controller, tuple(sorted(nodes, key=lambda each: each.node_id)))


def quorum() -> Call[QuorumDescription]:
    """The metadata quorum. KafkaError."""
    from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData

    asked = RequestTopicData(topic_name=METADATA_TOPIC, partitions=[RequestPartitionData(partition_index=0)])
    response = yield Ask(DescribeQuorumRequest(topics=[asked]))
    check(response.error_code, response.error_message)
    found = response.topics[0].partitions[0]
    check(found.error_code, found.error_message)
    return QuorumDescription(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        tuple(_replica(each) for each in found.current_voters),
        tuple(_replica(each) for each in found.observers),
    )


def features() -> Call[dict[str, int]]:
    """The level of each finalized feature (KIP-584). KafkaError."""
    from tidelog.protocol.messages.api_versions import ApiVersionsRequest

    response = yield Ask(ApiVersionsRequest(client_software_name="tidelog", client_software_version="0"))
    check(response.error_code)
    return {each.name: each.max_version_level for each in response.finalized_features}


def _replica(state: Any) -> QuorumReplica:
    return QuorumReplica(state.replica_id, state.log_end_offset, state.last_fetch_timestamp, state.last_caught_up_timestamp)
