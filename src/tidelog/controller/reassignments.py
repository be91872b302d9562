"""Replicas of a partition move to other brokers (KIP-455), as far as that needs no replica to be copied.

A new replica catches up by fetching from the leader; brokers of this release do not follow each other, so an assignment with
a broker that has no replica yet is refused. What is left is done at once: another order, fewer replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.controller.partitions import elect, online_leader_check
from tidelog.controller.result import ControllerResult, Decision
from tidelog.controller.topics import Refused, manual_partition
from tidelog.metadata.features import DIRECTORIES_MV
from tidelog.metadata.image import ClusterImage, PartitionImage, TopicImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import alter_partition_reassignments as alter
from tidelog.protocol.messages import list_partition_reassignments as listing
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord


def alter_partition_reassignments(decision: Decision, request: alter.AlterPartitionReassignmentsRequest) -> ControllerResult:
    """Per partition: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR (another number of
    replicas where that is not allowed), NO_REASSIGNMENT_IN_PROGRESS (nothing to cancel)."""
    records: list[MetadataRecord] = []
    responses: list[alter.ReassignableTopicResponse] = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            code, message = ErrorCode.NONE, None
            try:
                records += _reassigned(decision, topic.name, partition, request.allow_replication_factor_change)
            except Refused as refused:
                code, message = refused.code, refused.message or None
            partitions.append(
                alter.ReassignablePartitionResponse(
                    partition_index=partition.partition_index, error_code=code, error_message=message
                )
            )
        responses.append(alter.ReassignableTopicResponse(name=topic.name, partitions=partitions))
    response = alter.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=responses
    )
    return ControllerResult.of(response, records)


def _reassigned(
    decision: Decision, name: str, request: alter.ReassignablePartition, may_resize: bool
) -> list[PartitionChangeRecord]:
    topic = decision.image.topics.by_name.get(name)
    number = request.partition_index
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= number < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{number}.")
    partition = topic.partitions[number]
    if request.replicas is None:
        return _cancelled(decision.image, topic, number, partition)
    target = tuple(request.replicas)
    manual_partition(decision.image, number, target, None)
    if not may_resize and len(target) != len(partition.replicas):
        message = f"The replication factor is changed from {len(partition.replicas)} to {len(target)}"
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    added = [broker for broker in target if broker not in partition.replicas]
    if added:
        named = ", ".join(map(str, added))
        message = (
            f"Partition {name}-{number} has no replica on broker {named}, and brokers of this release copy no replicas. "
            f"Choose among {', '.join(map(str, partition.replicas))}."
        )
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return _changed(decision.image, topic, number, partition, target)


def _cancelled(image: ClusterImage, topic: TopicImage, number: int, partition: PartitionImage) -> list[PartitionChangeRecord]:
    """Back to the replicas from before a reassignment that another controller began."""
    if not _is_moving(partition):
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "")
    before = tuple(replica for replica in partition.replicas if replica not in partition.adding_replicas)
    isr = tuple(replica for replica in partition.isr if replica in before)
    if not isr or partition.leader not in before:
        message = f"The replicas from before, {list(before)}, are not in sync. Wait for one of them, then cancel."
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [_record(image, topic, number, partition, before, isr)]


def _changed(
    image: ClusterImage, topic: TopicImage, number: int, partition: PartitionImage, target: tuple[int, ...]
) -> list[PartitionChangeRecord]:
    if target == partition.replicas and not _is_moving(partition):
        return []
    isr = tuple(replica for replica in partition.isr if replica in target)
    if not isr:
        message = f"None of the replicas {list(target)} is in sync ({list(partition.isr)} are). Choose one that is."
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    record = _record(image, topic, number, partition, target, isr)
    if partition.leader not in target:
        directories = tuple(partition.directory(replica) for replica in target)
        left = replace(partition, replicas=target, isr=isr, directories=directories)
        record.leader = elect(left, isr, online_leader_check(image, left), unclean_allowed=False).leader
    return [record]


def _record(
    image: ClusterImage,
    topic: TopicImage,
    number: int,
    partition: PartitionImage,
    replicas: Sequence[int],
    isr: Sequence[int],
) -> PartitionChangeRecord:
    record = PartitionChangeRecord(
        partition_id=number,
        topic_id=topic.id,
        replicas=list(replicas),
        isr=list(isr),
        adding_replicas=[],
        removing_replicas=[],
    )
    if image.metadata_version >= DIRECTORIES_MV:
        record.directories = [partition.directory(replica) for replica in replicas]
    return record


def _is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def list_partition_reassignments(
    image: ClusterImage, request: listing.ListPartitionReassignmentsRequest
) -> listing.ListPartitionReassignmentsResponse:
    """The partitions that are moving, of the topics asked for or (null) of all. What does not exist is left out."""
    wanted: list[tuple[str, Sequence[int]]]
    if request.topics is None:
        wanted = [(topic.name, range(len(topic.partitions))) for topic in image.topics.by_name.values()]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = []
    for name, numbers in wanted:
        moving = []
        for number in numbers:
            partition = image.topics.partition(name, number)
            if partition is not None and _is_moving(partition):
                moving.append(
                    listing.OngoingPartitionReassignment(
                        partition_index=number,
                        replicas=list(partition.replicas),
                        adding_replicas=list(partition.adding_replicas),
                        removing_replicas=list(partition.removing_replicas),
                    )
                )
        if moving:
            topics.append(listing.OngoingTopicReassignment(name=name, partitions=moving))
    return listing.ListPartitionReassignmentsResponse(error_message=None, topics=topics)
