"""The log dir of each replica (KIP-858), and what follows when a dir fails or is cordoned (KIP-1066)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.controller.leader_moves import when_directories_fail, when_replicas_are_lost
from tidelog.controller.partition_change import Wanted, change_partition
from tidelog.controller.partition_index import PartitionId
from tidelog.controller.partition_rules import has_online_dir, online_leader_check
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import BrokerImage
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.supported_features import CORDONED_DIRS_MV, DIRECTORIES_MV
from tidelog.model.errors import ErrorCode, KafkaError
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
    """AssignReplicasToDirs from a broker. KafkaError STALE_BROKER_EPOCH, or UNSUPPORTED_VERSION while metadata.version has no
    dirs; per partition UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER when the broker has no replica."""
    if decision.image.metadata_version < DIRECTORIES_MV:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "Replicas have no directory ids at this metadata.version: raise it to 3.7-IV2."
        )
    broker = decision.known_broker(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    lost: list[PartitionId] = []
    directories = []
    for directory in request.directories:
        online = has_online_dir(broker, Uuid(directory.id))
        topics = []
        for topic in directory.topics:
            partitions = []
            for each in topic.partitions:
                code, record = _assign(decision, broker, Uuid(directory.id), Uuid(topic.topic_id), each.partition_index)
                if record is not None:
                    records.append(record)
                if code is ErrorCode.NONE and not online:
                    lost.append((Uuid(topic.topic_id), each.partition_index))
                partitions.append(ResponsePartitionData(partition_index=each.partition_index, error_code=code))
            topics.append(ResponseTopicData(topic_id=topic.topic_id, partitions=partitions))
        directories.append(ResponseDirectoryData(id=directory.id, topics=topics))
    records += when_replicas_are_lost(decision, broker.id, lost)
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
    known = dict(zip(partition.replicas, partition.directories, strict=True)) | {broker.id: directory}
    # The old dir may have failed while the new one is online: an operator moved the replica while the broker was down, so it can
    # lead again.
    there = replace(partition, directories=tuple(known[replica] for replica in partition.replicas))
    acceptable = online_leader_check(decision.image, there)
    wanted = Wanted(directories={broker.id: directory})
    return ErrorCode.NONE, change_partition(topic_id, number, partition, wanted, decision.change_rules(topic), acceptable)


def directory_changes(
    decision: Decision, broker: BrokerImage, offline: Sequence[bytes], cordoned: Sequence[bytes] | None
) -> list[MetadataRecord]:
    """Changes of log dirs reported by a heartbeat: failed dirs leave the registration, and their replicas lose leadership;
    cordoned dirs get no new replicas."""
    records: list[MetadataRecord] = []
    gone = newly_failed(decision, broker, offline)
    if gone:
        left = [directory for directory in broker.directories if directory not in gone]
        records += when_directories_fail(decision, broker.id, gone)
        records.append(BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=list(left)))
    if cordoned is not None and decision.image.metadata_version >= CORDONED_DIRS_MV:
        before = broker.cordoned_directories
        if before is None or set(before) != {Uuid(each) for each in cordoned}:
            records.append(
                BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned))
            )
    return records


def newly_failed(decision: Decision, broker: BrokerImage, offline: Sequence[bytes]) -> dict[Uuid, None]:
    """Log dirs of the registration that the heartbeat reports as failed."""
    if decision.image.metadata_version < DIRECTORIES_MV:
        return {}
    return dict.fromkeys(Uuid(each) for each in offline if Uuid(each) in broker.directories)
