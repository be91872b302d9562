"""Computes the target assignment of a group as it will be after the current request.

It is computed at most once per assignment interval of the group (KIP-1263); until then members reconcile with the previous
target. Only members whose target changes get records; the record of the epoch comes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.coordinator.group.consumer.assignors.registry import assign
from tidelog.coordinator.group.consumer.assignors.spec import GroupSpec, MemberSpec, PartitionAssignorError
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember, Partitions
from tidelog.coordinator.group.consumer.consumer_records import target_epoch_record, target_record
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.model.errors import ErrorCode, KafkaError


class NewTarget(NamedTuple):
    """A target: its epoch, the ``partitions`` of the member at hand, and the records that store it."""

    epoch: int
    partitions: Partitions
    records: tuple[GroupRecord, ...] = ()


def last_target(group: ConsumerGroup, member: ConsumerMember) -> NewTarget:
    """The group's current target."""
    return NewTarget(group.assignment_epoch, group.target_of(member.member_id, member.instance_id))


def may_compute(group: ConsumerGroup, interval_ms: int, now_ms: int) -> bool:
    """Whether the assignment interval has passed; it has when the time of the last target is unknown, or later than now: another
    coordinator, whose clock was ahead, has computed it."""
    return group.assignment_timestamp_ms == 0 or not 0 <= now_ms - group.assignment_timestamp_ms < interval_ms


def preferred_assignor(members: Mapping[str, ConsumerMember], default: str) -> str:
    """The assignor that most members ask for; on a tie, the one asked for first."""
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
        text = f"The assignor failed for group epoch {epoch}: {error}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
    records = []
    for member_id in members:
        wanted = {topic_id: partitions for topic_id, partitions in assignment.get(member_id, {}).items() if partitions}
        if group.target.get(member_id) != wanted:
            records.append(target_record(group.group_id, member_id, wanted))
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return NewTarget(epoch, assignment.get(updated.member_id, {}), tuple(records))


def group_spec(group: ConsumerGroup, members: Mapping[str, ConsumerMember], topics: TopicMetadata) -> GroupSpec:
    """The assignor's input. A static member that came back under a new id owns the partitions of the former one."""
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
