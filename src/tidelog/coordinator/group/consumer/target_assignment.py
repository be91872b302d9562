"""Computing who should read what, for a group as it will be after the request at hand.

Not more often than the assignment interval of the group allows (KIP-1263): until then members walk to the former target.
Records are made only for members whose target changes; that of the epoch comes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.coordinator.group.consumer.assignors.registry import assign
from tidelog.coordinator.group.consumer.assignors.spec import GroupSpec, MemberSpec, PartitionAssignorError
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember, Partitions
from tidelog.coordinator.group.consumer.consumer_records import target_epoch_record, target_record
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class NewTarget:
    """A target: for which epoch, what ``partitions`` the member at hand gets, and the records that make it the group's."""

    epoch: int
    partitions: Partitions
    records: tuple[GroupRecord, ...] = ()


def last_target(group: ConsumerGroup, member: ConsumerMember) -> NewTarget:
    """The target that the group has already."""
    return NewTarget(group.assignment_epoch, group.target_of(member.member_id, member.instance_id))


def may_compute(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the last target is old enough; one whose time is unknown is."""
    return group.assignment_timestamp_ms == 0 or interval_ms == 0 or now_ms >= group.assignment_timestamp_ms + interval_ms


def preferred_assignor(members: Mapping[str, ConsumerMember], default: str) -> str:
    """The assignor that most members ask for; among equals the one asked for first."""
    votes: dict[str, int] = {}
    for member in members.values():
        if member.assignor is not None:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(votes, key=lambda name: votes[name]) if votes else default


def compute_target(
    group: ConsumerGroup,
    epoch: int,
    updated: ConsumerMember,
    topics: TopicMetadata,
    default_assignor: str,
    now_ms: int,
) -> NewTarget:
    """A target for ``epoch`` with ``updated`` in the group. KafkaError UNKNOWN_SERVER_ERROR when the assignor fails."""
    members = group.members_with(updated)
    spec = group_spec(group, members, topics)
    try:
        assignment = assign(preferred_assignor(members, default_assignor), spec)
    except PartitionAssignorError as error:
        text = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
    records = []
    for member_id in members:
        wanted = {topic_id: partitions for topic_id, partitions in assignment.get(member_id, {}).items() if partitions}
        if group.target.get(member_id) != wanted:
            records.append(target_record(group.group_id, member_id, wanted))
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return NewTarget(epoch, assignment.get(updated.member_id, {}), tuple(records))


def group_spec(group: ConsumerGroup, members: Mapping[str, ConsumerMember], topics: TopicMetadata) -> GroupSpec:
    """What the assignor is told. A static member that came back under a new id owns what the former one did."""
    specs = {}
    for member_id, member in members.items():
        specs[member_id] = MemberSpec(
            member.instance_id,
            member.rack_id,
            topics.ids_of(group.topics_of(member)),
            group.target_of(member_id, member.instance_id),
        )
    wanted = {spec.subscribed_topic_ids for spec in specs.values()}
    every = frozenset[bytes]().union(*wanted)
    return GroupSpec(specs, len(wanted) <= 1, {topic_id: topics.spec_of(topic_id) for topic_id in every})
