"""In which log dir a broker keeps each replica (KIP-858), and what follows when a dir fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.controller.partitions import change_for, online_leader_check, unclean_allowed
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import BrokerImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord


def assign_replicas_to_dirs(decision: Decision, request: AssignReplicasToDirsRequest) -> ControllerResult:
    """A broker says where it put replicas. KafkaError STALE_BROKER_EPOCH; per partition UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER when it holds no replica."""
    broker = decision.known_broker(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    directories = []
    for directory in request.directories:
        topics = []
        for topic in directory.topics:
            partitions = []
            for each in topic.partitions:
                code, record = _assign(decision, broker, Uuid(directory.id), Uuid(topic.topic_id), each.partition_index)
                if record is not None:
                    records.append(record)
                partitions.append(ResponsePartitionData(partition_index=each.partition_index, error_code=code))
            topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=partitions))
        directories.append(ResponseDirectoryData(id=directory.id, topics=topics))
    return ControllerResult.of(AssignReplicasToDirsResponse(directories=directories), records)


def _assign(
    decision: Decision, broker: BrokerImage, directory: Uuid, topic_id: Uuid, number: int
) -> tuple[ErrorCode, PartitionChangeRecord | None]:
    topic = decision.image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    if not 0 <= number < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    partition = topic.partitions[number]
    if broker.id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
    if partition.directory(broker.id) == directory:
        return ErrorCode.NONE, None
    moved = [
        directory if replica == broker.id else old for replica, old in zip(partition.replicas, partition.directories, strict=True)
    ]
    record = PartitionChangeRecord(partition_id=number, topic_id=topic_id)
    if not partition.has_leader:
        # Where it lay is gone, where it lies now is not: somebody moved it while the broker was down, and it can lead again.
        there = replace(partition, directories=tuple(moved))
        acceptable = online_leader_check(decision.image, there)
        record = change_for(topic_id, number, there, isr=there.isr, acceptable=acceptable, unclean_allowed=False) or record
    record.directories = list(moved)
    return ErrorCode.NONE, record


def offline_directories(decision: Decision, broker: BrokerImage, offline: Sequence[bytes]) -> list[MetadataRecord]:
    """Log dirs of a broker failed: they leave its registration, and its replicas in them lead no more."""
    gone = {Uuid(each) for each in offline if Uuid(each) in broker.directories}
    if not gone:
        return []
    left = [directory for directory in broker.directories if directory not in gone]
    records: list[MetadataRecord] = [
        BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=list(left))
    ]
    default = decision.settings.unclean_leader_election_enable
    for topic in decision.image.topics.by_id.values():
        for number, partition in enumerate(topic.partitions):
            if broker.id not in partition.replicas or partition.directory(broker.id) not in gone:
                continue
            if partition.leader != broker.id and broker.id not in partition.isr:
                continue
            change = change_for(
                topic.id,
                number,
                partition,
                isr=tuple(member for member in partition.isr if member != broker.id),
                acceptable=online_leader_check(decision.image, partition, without=broker.id),
                unclean_allowed=unclean_allowed(decision.image, topic.name, default),
            )
            if change is not None:
                records.append(change)
    return records
