"""The ``range`` assignor: each topic's partitions in contiguous ranges, with one order of members for all topics.

Because of that one order, members with the same subscriptions get the same partition numbers of topics with equal partition
counts, which joins need. Current ownership has no influence: the order alone decides the ranges. Static members come first, by
instance id, so that a restart under another member id changes nothing.
"""

from __future__ import annotations

from tidelog.coordinator.group.consumer.assignors.spec import (
    GroupAssignment,
    GroupSpec,
    MemberAssignment,
    MemberSpec,
    text_order,
    topic_order,
)


def assign_range(spec: GroupSpec) -> GroupAssignment:
    """The assignment of every member of the group. Raises ``PartitionAssignorError`` for a topic that does not exist."""
    subscribers: dict[bytes, list[MemberAssignment]] = {}
    result: GroupAssignment = {}
    for member_id, member in sorted(spec.members.items(), key=_member_order):
        result[member_id] = {}
        for topic_id in member.subscribed_topic_ids:
            subscribers.setdefault(topic_id, []).append(result[member_id])
    for topic_id in sorted(subscribers, key=topic_order):
        share, extras = divmod(spec.partitions_of(topic_id), len(subscribers[topic_id]))
        start = 0
        # The first members get one extra partition each until the remainder is used up; with few partitions the last members get
        # none.
        for turn, mine in enumerate(subscribers[topic_id]):
            end = start + share + (turn < extras)
            if start == end:
                break
            mine[topic_id] = frozenset(range(start, end))
            start = end
    return result


def _member_order(entry: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    member_id, member = entry
    return member.instance_id is None, text_order(member_id if member.instance_id is None else member.instance_id)
