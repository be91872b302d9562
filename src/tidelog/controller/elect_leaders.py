"""ElectLeaders: elections that an operator requests (KIP-183, KIP-460)."""

from __future__ import annotations

from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import Wanted
from tidelog.controller.result import ControllerResult, Decision
from tidelog.controller.topics import Refused
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

PREFERRED = 0
"""The first replica of the assignment becomes leader, if it is in sync."""
UNCLEAN = 1
"""A partition without a leader gets one; records that only the lost replicas had are lost."""


def elect_leaders(decision: Decision, request: ElectLeadersRequest) -> ControllerResult:
    """Per partition: ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST (unknown election type).

    The answer to a request for all partitions names every topic, but only the partitions that needed an election.
    """
    topics = decision.image.topics.by_name
    asked: list[tuple[str, list[int]]]
    if request.topic_partitions is None:
        asked = [(topic.name, list(range(len(topic.partitions)))) for topic in topics.values()]
    else:
        asked = [(each.topic, each.partitions) for each in request.topic_partitions]
    known = request.election_type in (PREFERRED, UNCLEAN)
    if not known and request.topic_partitions is None:
        return ControllerResult(ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))
    records: list[MetadataRecord] = []
    results: list[ReplicaElectionResult] = []
    for name, numbers in asked:
        partitions: list[PartitionResult] = []
        for number in numbers:
            code, message = ErrorCode.NONE, None
            try:
                records.append(_elected(decision, request.election_type, name, number))
            except Refused as refused:
                code, message = refused.code, refused.message
            if request.topic_partitions is not None or code is not ErrorCode.ELECTION_NOT_NEEDED:
                partitions.append(PartitionResult(partition_id=number, error_code=code, error_message=message))
        results.append(ReplicaElectionResult(topic=name, partition_result=partitions))
    top = ErrorCode.NONE if known or not results else ErrorCode.INVALID_REQUEST
    return ControllerResult.of(ElectLeadersResponse(error_code=top, replica_election_results=results), records)


def _elected(decision: Decision, kind: int, name: str, number: int) -> PartitionChangeRecord:
    if kind not in (PREFERRED, UNCLEAN):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
    topic = decision.image.topics.by_name.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= number < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{number}")
    partition = topic.partitions[number]
    settled = partition.leader == partition.replicas[0] if kind == PREFERRED else partition.has_leader
    if settled:
        raise Refused(ErrorCode.ELECTION_NOT_NEEDED, "The partition already has the leader that this election would choose.")
    election = Election.PREFERRED if kind == PREFERRED else Election.UNCLEAN
    record = decision.change(topic, number, Wanted(election=election))
    if record is not None:
        return record
    if kind == PREFERRED:
        raise Refused(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    raise Refused(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica that may lead this partition is alive.")
