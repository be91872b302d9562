"""Replicas: log dirs, reassignments, and leader elections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Node, Partition
from tidelog.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from tidelog.client.admin.results import LogDir, Reassignment

PREFERRED, UNCLEAN = 0, 1
"""Election types."""


def log_dirs(broker_id: int, topics: Iterable[str] | None = None) -> Call[list[LogDir]]:
    """The log dirs of a broker with the replicas of these topics, or of all. KafkaError."""
    from tidelog.client.admin.results import LogDir
    from tidelog.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    response = yield Ask(DescribeLogDirsRequest(topics=None), Node(broker_id))
    check(response.error_code)
    wanted = None if topics is None else set(topics)
    return [
        LogDir(
            each.log_dir,
            each.total_bytes,
            each.usable_bytes,
            {
                (topic.name, part.partition_index): part.partition_size
                for topic in each.topics
                for part in topic.partitions
                if (wanted is None or topic.name in wanted) and not part.is_future_key
            },
            ErrorCode(each.error_code).name if each.error_code else None,
        )
        for each in response.results
    ]


def reassignments(*, timeout_ms: int = 60_000) -> Call[dict[Partition, Reassignment]]:
    """All reassignments in progress (KIP-455). KafkaError."""
    from tidelog.client.admin.results import Reassignment
    from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

    response = yield Ask(ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None))
    check(response.error_code, response.error_message)
    return {
        (topic.name, part.partition_index): Reassignment(
            tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
        )
        for topic in response.topics
        for part in topic.partitions
    }


def reassign(
    wanted: Mapping[Partition, Sequence[int] | None], *, allow_factor_change: bool = True, timeout_ms: int = 60_000
) -> Call[dict[Partition, KafkaError]]:
    """Start a reassignment for each partition; None cancels the one in progress. Returns the partitions that failed."""
    from tidelog.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest,
        ReassignablePartition,
        ReassignableTopic,
    )

    topics: dict[str, list[ReassignablePartition]] = {}
    for (topic, index), replicas in sorted(wanted.items()):
        part = ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas))
        topics.setdefault(topic, []).append(part)
    if not topics:
        return {}
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=allow_factor_change,
        topics=[ReassignableTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    response = yield Ask(request)
    check(response.error_code, response.error_message)
    return {
        (topic.name, part.partition_index): _error(part.error_code, part.error_message)
        for topic in response.responses
        for part in topic.partitions
        if part.error_code != ErrorCode.NONE
    }


def elect_leaders(
    partitions: Iterable[Partition] | None, *, unclean: bool = False, timeout_ms: int = 60_000
) -> Call[dict[Partition, KafkaError]]:
    """Elect the preferred leaders of these partitions, or of all (None); returns the partitions that failed (KIP-460).

    ``unclean``: any live replica may be elected, and records that it does not have are lost. A partition that already has the
    right leader counts as done.
    """
    from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    asked: list[TopicPartitions] | None = None
    if partitions is not None:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        asked = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics.items()]
    kind = UNCLEAN if unclean else PREFERRED
    response = yield Ask(ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=timeout_ms))
    check(response.error_code)
    return {
        (topic.topic, part.partition_id): _error(part.error_code, part.error_message)
        for topic in response.replica_election_results
        for part in topic.partition_result
        if part.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    }


def _error(code: int, message: str | None) -> KafkaError:
    known = ErrorCode(code)
    return KafkaError(known, message or known.text)
