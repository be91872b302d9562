"""ConsumerGroupDescribe: read-only view of a group of the consumer protocol."""

from __future__ import annotations

from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerMember, Owned, Partitions
from tidelog.coordinator.group.consumer.target_assignment import preferred_assignor
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.coordinator.partition_for_key import table_order
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe_consumer_group(c: Coordination, group_id: str) -> DescribedGroup:
    """Describes one group. GROUP_ID_NOT_FOUND for an unknown group and for one of the classic protocol."""
    group = c.consumer(group_id)
    if group is None:
        text = f"Group {group_id} not found." if group_id not in c.groups else f"Group {group_id} is not a consumer group."
        return DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text, group_id=group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group.members, c.settings.consumer_assignors[0]),
        members=[_member(c.topics, group, group.members[member_id]) for member_id in table_order(group.members)],
    )


def _member(topics: TopicMetadata, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        # The member may still read the partitions that it is revoking.
        assignment=_assignment(topics, _joined(member.assigned, member.revoking)),
        target_assignment=_assignment(topics, group.target_of(member.member_id)),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _joined(assigned: Owned, revoking: Owned) -> Partitions:
    return {
        topic_id: frozenset(assigned.get(topic_id, {})) | frozenset(revoking.get(topic_id, {}))
        for topic_id in dict.fromkeys((*assigned, *revoking))
    }


def _assignment(topics: TopicMetadata, partitions: Partitions) -> Assignment:
    told = []
    for topic_id, numbers in partitions.items():
        name = topics.name_of(topic_id)
        if name is not None:
            told.append(TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(numbers)))
    return Assignment(topic_partitions=told)
