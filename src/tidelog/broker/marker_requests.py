"""WriteTxnMarkers as a coordinator's broker sends it: which markers share a request, and what its answer says of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidelog.replication.marker_append import Marker

Errors = dict[tuple[int, TopicPartition], ErrorCode]
"""By producer id and partition."""


class PartitionMarker(NamedTuple):
    """One marker for one partition."""

    partition: TopicPartition
    marker: Marker

    @property
    def key(self) -> tuple[int, TopicPartition]:
        """The key of a result; answers do not contain the epoch."""
        return self.marker.producer_id, self.partition


def markers_request(wanted: Iterable[PartitionMarker]) -> WriteTxnMarkersRequest:
    """One request for all of them; each marker once, with its partitions by topic."""
    topics: dict[Marker, dict[str, WritableTxnMarkerTopic]] = {}
    for each in wanted:
        by_name = topics.setdefault(each.marker, {})
        topic = by_name.setdefault(each.partition.topic, WritableTxnMarkerTopic(name=each.partition.topic))
        topic.partition_indexes.append(each.partition.partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=list(by_name.values()),
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker, by_name in topics.items()
        ]
    )


def errors_of(response: WriteTxnMarkersResponse) -> Errors:
    """The result of each partition. If a broker reports success and failure for the same partition, the failure counts."""
    errors: Errors = {}
    for result in response.markers:
        for topic in result.topics:
            for each in topic.partitions:
                key = result.producer_id, TopicPartition(topic.name, each.partition_index)
                error = _known(each.error_code)
                errors[key] = errors.get(key) or error
    return errors


def _known(code: int) -> ErrorCode:
    error = ErrorCode(code)
    # Only this broker's own image proves that a partition was deleted; the other broker's may be behind.
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is ErrorCode.UNKNOWN_TOPIC_ID else error
