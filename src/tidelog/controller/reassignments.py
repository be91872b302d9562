"""AlterPartitionReassignments: moves replicas of a partition to other brokers (KIP-455).

A move has up to three steps: the new replicas join the old ones, and both lists are remembered; the leader adds the new ones to
the ISR as they catch up; with the last of them the old ones are removed (``partition_change``). A change without copying is done
at once: another order, or fewer replicas.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import Wanted
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST, ControllerResult, Decision
from tidelog.controller.topics import Refused, check_manual_assignment
from tidelog.metadata.image import RECOVERING, ClusterImage, PartitionImage, TopicImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import alter_partition_reassignments as alter
from tidelog.protocol.messages import list_partition_reassignments as listing
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord


def alter_partition_reassignments(decision: Decision, request: alter.AlterPartitionReassignmentsRequest) -> ControllerResult:
    """Per partition: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR (another number of
    replicas where that is not allowed), NO_REASSIGNMENT_IN_PROGRESS (nothing to cancel), POLICY_VIOLATION (too many at once)."""
    records: list[MetadataRecord] = []
    responses: list[alter.ReassignableTopicResponse] = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partitions:
            code, message = ErrorCode.NONE, None
            try:
                if len(records) >= MAX_RECORDS_PER_REQUEST:
                    raise Refused(
                        ErrorCode.POLICY_VIOLATION,
                        f"The request would write more than {MAX_RECORDS_PER_REQUEST} metadata records: split it.",
                    )
                record = _reassigned(decision, topic.name, partition, request.allow_replication_factor_change)
                if record is not None:
                    records.append(record)
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
) -> PartitionChangeRecord | None:
    topic = decision.image.topics.by_name.get(name)
    number = request.partition_index
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
    if not 0 <= number < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} has no partition {number}.")
    partition = topic.partitions[number]
    if request.replicas is None:
        return _cancelled(decision, topic, number, partition)
    target = tuple(request.replicas)
    check_manual_assignment(decision.image, target, None)
    present = _size_when_done(partition)
    if not may_resize and len(target) != present:
        message = f"The replication factor is changed from {present} to {len(target)}"
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    removing = sorted(set(partition.replicas) - set(target))
    # An earlier reassignment may be in progress. Replicas that it was adding and this one keeps still have to catch up; those
    # that this one drops are not waited for; replicas that were to be removed and are wanted again stay.
    adding = sorted(set(target) - (set(partition.replicas) - set(partition.adding_replicas)))
    wanted = Wanted(replicas=[*target, *removing], removing=removing, adding=adding)
    return decision.change(topic, number, wanted)


def _size_when_done(partition: PartitionImage) -> int:
    """The number of replicas of the partition after its reassignment."""
    if not _is_moving(partition):
        return len(partition.replicas)
    return len({*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas))


def _cancelled(decision: Decision, topic: TopicImage, number: int, partition: PartitionImage) -> PartitionChangeRecord | None:
    """Back to the previous replicas: those being added are removed, those being removed stay."""
    if not _is_moving(partition):
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "This partition is not being reassigned: nothing to cancel.")
    before = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    isr = [replica for replica in partition.isr if replica not in partition.adding_replicas]
    if not before:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The reassignment adds every replica, so there is no earlier set to return to."
        )
    election = decision.election(topic)
    recovery = None
    if not isr:
        if election is not Election.UNCLEAN:
            message = (
                f"The reassignment of {topic.name}-{number} cannot be cancelled: no earlier replica is in the ISR, "
                "so a leader would have to be elected uncleanly."
            )
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        # Kafka writes an ISR of the first replica, whatever state that has: if it is down, it counts as in sync when it returns,
        # even before the eligible replicas. Here eligible replicas come first, and the first replica has to recover.
        if not set(before) & {*partition.elr, *partition.last_known_elr}:
            isr, recovery = [before[0]], RECOVERING
    wanted = Wanted(isr=isr, replicas=before, removing=[], adding=[], election=election, leader_recovery_state=recovery)
    return decision.change(topic, number, wanted)


def _is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def list_partition_reassignments(
    image: ClusterImage, request: listing.ListPartitionReassignmentsRequest
) -> listing.ListPartitionReassignmentsResponse:
    """The partitions being reassigned, of the requested topics or (null) of all. Unknown topics are left out."""
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
