"""CreatePartitions: adds partitions to a topic."""

from __future__ import annotations

from collections import Counter

from tidelog.controller.replica_placement import InvalidReplicationFactor, place, usable_brokers
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST, NO_QUOTA, ControllerResult, Decision, Quota
from tidelog.controller.topics import Refused, manual_partition, new_partition, take
from tidelog.metadata.image import PartitionImage, TopicImage
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.snapshot import partition_record
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(decision: Decision, request: CreatePartitionsRequest, quota: Quota = NO_QUOTA) -> ControllerResult:
    """``count`` is the total number wanted. Errors per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, INVALID_REQUEST (twice), POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED."""
    named = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    records: list[MetadataRecord] = []
    for topic in request.topics:
        code, message = ErrorCode.NONE, None
        try:
            if named[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _added(decision, topic, MAX_RECORDS_PER_REQUEST - len(records), quota)
        except Refused as refused:
            code, message = refused.code, refused.message
        results[topic.name] = CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message)
    response = CreatePartitionsResponse(results=list(results.values()))
    return ControllerResult(response) if request.validate_only else ControllerResult.of(response, records)


def _added(decision: Decision, request: CreatePartitionsTopic, room: int, quota: Quota) -> list[MetadataRecord]:
    topic = decision.image.topics.by_name.get(request.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    present = len(topic.partitions)
    if request.count == present:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if request.count < present:
        message = f"Topic {topic.name} has {present} partition(s), and {request.count} is not more."
        raise Refused(ErrorCode.INVALID_PARTITIONS, message)
    if request.count - present > room:
        raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    partitions = _partitions(decision, request, topic)
    take(quota, len(partitions))
    version = decision.image.metadata_version
    return [partition_record(topic.id, number, partition, version) for number, partition in enumerate(partitions, start=present)]


def _partitions(decision: Decision, request: CreatePartitionsTopic, topic: TopicImage) -> list[PartitionImage]:
    present = len(topic.partitions)
    additional = request.count - present
    replication_factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        usable = usable_brokers(decision.image.brokers.values())
        try:
            assignments = place(usable, additional, replication_factor, decision.rng)
        except InvalidReplicationFactor as error:
            message = f"New partitions need {replication_factor} replica(s) each: {error}"
            raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message) from error
        return [new_partition(decision.image, replicas) for replicas in assignments]
    if len(request.assignments) != additional:
        message = (
            f"{additional} partition(s) are to be added, but the request assigns replicas to {len(request.assignments)}: "
            "give one assignment for each, or none."
        )
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [
        manual_partition(decision.image, present + number, assignment.broker_ids, replication_factor)
        for number, assignment in enumerate(request.assignments)
    ]
