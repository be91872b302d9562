"""AlterPartition: a leader asks for another ISR (KIP-497). The leader decides which followers are caught up; the controller
checks and writes it.

To protect acknowledged records, a request is accepted only from the leader of the current epoch, against the partition epoch it
has seen, and only if every member of the new ISR is in service under the broker epoch that the leader knows.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.controller.partition_change import Wanted
from tidelog.controller.partition_rules import has_online_dir
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import RECOVERED, RECOVERING, PartitionImage, TopicImage
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.topics_delta import NO_LEADER_CHANGE, merge
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

ANY_EPOCH = -1
"""In a request: accept any epoch of the broker."""


class _Change(NamedTuple):
    """What happens to one partition of a request."""

    code: ErrorCode
    record: PartitionChangeRecord | None = None
    partition: PartitionImage | None = None
    """The partition as it will be; None with an error."""


def alter_partition(decision: Decision, request: AlterPartitionRequest) -> ControllerResult:
    """KafkaError STALE_BROKER_EPOCH for an old process. Per partition:

    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION; NOT_CONTROLLER when the leader knows newer epochs than this controller;
    FENCED_LEADER_EPOCH; INVALID_UPDATE_VERSION for an older partition epoch; INVALID_REQUEST for an ISR that cannot be, or from
    a broker that does not lead; INELIGIBLE_REPLICA when a member is not in service, or another process by now, or
    its replica lies in a log dir that failed;
    NEW_LEADER_ELECTED when the change was made, ended a reassignment, and elected another leader.
    """
    decision.known_broker(request.broker_id, request.broker_epoch)
    records: list[MetadataRecord] = []
    topics = []
    named: set[tuple[Uuid, int]] = set()
    for asked in request.topics:
        topic = decision.image.topics.by_id.get(Uuid(asked.topic_id))
        partitions = []
        for each in asked.partitions:
            if topic is None:
                change = _Change(ErrorCode.UNKNOWN_TOPIC_ID)
            elif (topic.id, each.partition_index) in named:
                change = _Change(ErrorCode.INVALID_REQUEST)  # The second change was made against the state before the first.
            else:
                named.add((topic.id, each.partition_index))
                change = _changed(decision, request.broker_id, topic, each)
            if change.record is not None:
                records.append(change.record)
            partitions.append(_response(each.partition_index, change))
        topics.append(ResponseTopicData(topic_id=asked.topic_id, partitions=partitions))
    return ControllerResult.of(AlterPartitionResponse(topics=topics), records)


def _response(number: int, change: _Change) -> ResponsePartitionData:
    partition = change.partition
    if partition is None:
        return ResponsePartitionData(partition_index=number, error_code=change.code)
    return ResponsePartitionData(
        partition_index=number,
        error_code=change.code,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _changed(decision: Decision, broker_id: int, topic: TopicImage, asked: RequestPartitionData) -> _Change:
    number = asked.partition_index
    if not 0 <= number < len(topic.partitions):
        return _Change(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = topic.partitions[number]
    isr = _wanted_isr(asked)
    code = _problem(decision, broker_id, partition, asked, isr)
    if code is not ErrorCode.NONE:
        return _Change(code)
    wanted = Wanted(
        isr=[member for member, _ in isr],
        leader_recovery_state=asked.leader_recovery_state,
        election=decision.election(topic),
    )
    record = decision.change(topic, number, wanted)
    if record is None:
        return _Change(ErrorCode.NONE, None, partition)
    if record.leader not in (NO_LEADER_CHANGE, broker_id):
        # This ISR completed a reassignment that removes the requesting leader; it learns its successor from the metadata.
        return _Change(ErrorCode.NEW_LEADER_ELECTED, record)
    return _Change(ErrorCode.NONE, record, merge(partition, record))


def _wanted_isr(asked: RequestPartitionData) -> list[tuple[int, int]]:
    """(broker id, broker epoch) of each member; version 2 of the request has no epochs."""
    if asked.new_isr_with_epochs:
        return [(each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs]
    return [(broker_id, ANY_EPOCH) for broker_id in asked.new_isr]


def _problem(
    decision: Decision, broker_id: int, partition: PartitionImage, asked: RequestPartitionData, isr: list[tuple[int, int]]
) -> ErrorCode:
    """Checks in Kafka's order, because the leader's reaction depends on the first error."""
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member for member, _ in isr]
    if len(set(members)) != len(members) or not set(members) <= set(partition.replicas) or broker_id not in members:
        return ErrorCode.INVALID_REQUEST
    recovery = asked.leader_recovery_state
    if recovery not in (RECOVERED, RECOVERING) or (recovery == RECOVERING and len(members) > 1):
        return ErrorCode.INVALID_REQUEST
    if recovery == RECOVERING and partition.leader_recovery_state == RECOVERED:
        return ErrorCode.INVALID_REQUEST
    for member, epoch in isr:
        broker = decision.image.brokers.get(member)
        if broker is None or not broker.active or epoch not in (ANY_EPOCH, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
        if not has_online_dir(broker, partition.directory(member)):
            # The leader does not know yet that the replica's log dir failed.
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
