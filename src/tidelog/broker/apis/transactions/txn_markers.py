"""WriteTxnMarkers: a transaction coordinator reports to partitions how transactions ended."""

from __future__ import annotations

from collections.abc import Awaitable

from tidelog.broker.authorization import allows_on_cluster, require_on_cluster
from tidelog.broker.coordinator_calls import close_all
from tidelog.broker.local_markers import write_marker
from tidelog.broker.node import BrokerContext
from tidelog.model.acl import AclOperation
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidelog.replication.marker_append import Marker

Outcome = ErrorCode | Awaitable[ErrorCode]


async def write_txn_markers(ctx: BrokerContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Sent by brokers, and by kafka-transactions to end a hanging transaction; answered when all markers are safe.

    v2 added the transaction version, which decides how a marker's epoch is checked (KIP-1228); v1 counts as version 0. Markers of
    one producer are answered once per partition, with the result of the last one. Errors per partition: 3, 6, 7, 19, 42 for
    impossible producer ids and epochs, 47, 52, 56; 31 without ALTER and without CLUSTER_ACTION on the cluster.
    """
    if not allows_on_cluster(ctx, AclOperation.ALTER, quiet=True):
        require_on_cluster(ctx, AclOperation.CLUSTER_ACTION)
    now_ms = ctx.now_ms()
    begun: dict[int, dict[TopicPartition, Outcome]] = {}
    try:
        for wanted in request.markers:
            marker = _marker(wanted)
            possible = wanted.producer_id >= 0 and wanted.producer_epoch >= 0
            outcomes = begun.setdefault(wanted.producer_id, {})
            for topic in wanted.topics:
                for index in topic.partition_indexes:
                    where = TopicPartition(topic.name, index)
                    earlier = outcomes.get(where)
                    if earlier is not None and not isinstance(earlier, ErrorCode):
                        await earlier
                    outcomes[where] = write_marker(ctx.node, where, marker, now_ms) if possible else ErrorCode.INVALID_REQUEST
        results = [await _result(producer_id, outcomes) for producer_id, outcomes in begun.items()]
    finally:
        close_all(outcome for outcomes in begun.values() for outcome in outcomes.values())
    return WriteTxnMarkersResponse(markers=results)


def _marker(wanted: WritableTxnMarker) -> Marker:
    return Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )


async def _result(producer_id: int, outcomes: dict[TopicPartition, Outcome]) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for where, outcome in outcomes.items():
        error = outcome if isinstance(outcome, ErrorCode) else await outcome
        if error is ErrorCode.UNKNOWN_TOPIC_ID:
            # The request names topics, not ids.
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = topics.setdefault(where.topic, WritableTxnMarkerTopicResult(name=where.topic))
        topic.partitions.append(WritableTxnMarkerPartitionResult(partition_index=where.partition, error_code=error))
    return WritableTxnMarkerResult(producer_id=producer_id, topics=list(topics.values()))
