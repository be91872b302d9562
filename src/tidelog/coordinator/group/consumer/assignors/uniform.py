"""The ``uniform`` assignor for a group whose members all want the same topics; others go to ``mixed_subscriptions``.

Balance first: shares differ by one partition at most. Then stickiness: a member keeps what it has up to its share, and who
already holds a partition more than the others keeps that as well, as far as there are such places. What nobody holds goes
to members with room, one member after the other.

Kafka goes through members and topics in the order of its hash tables; here it is the order of their ids, so that one
group has one assignment.
"""

from __future__ import annotations

from tidelog.coordinator.group.consumer.assignors.mixed_subscriptions import assign_mixed_subscriptions
from tidelog.coordinator.group.consumer.assignors.spec import (
    GroupAssignment,
    GroupSpec,
    MemberAssignment,
    text_order,
    topic_order,
)

_Partition = tuple[bytes, int]


def assign_uniform(spec: GroupSpec) -> GroupAssignment:
    """The assignment, with every member of the group in it. Raises ``PartitionAssignorError`` for a topic that does not exist."""
    if not spec.members:
        return {}
    if not spec.subscription_homogeneous:
        return assign_mixed_subscriptions(spec)
    member_ids = sorted(spec.members, key=text_order)
    topics = sorted(spec.members[member_ids[0]].subscribed_topic_ids, key=topic_order)
    held = _held(spec, member_ids, topics)
    taken = {partition for partitions in held.values() for partition in partitions}
    everything = [(topic_id, number) for topic_id in topics for number in range(spec.partitions_of(topic_id))]
    free = [partition for partition in everything if partition not in taken]
    room: list[tuple[str, int]] = []
    share, extras = divmod(len(everything), len(member_ids))
    for index, member_id in enumerate(member_ids):
        mine = held[member_id]
        # Who holds a partition too many for an even share may go on so. The others leave that to members further on, until
        # there are only as many left as have to take one.
        larger = extras > 0 and (len(mine) > share or len(member_ids) - index <= extras)
        quota = share + larger
        extras -= larger
        free += mine[quota:]
        del mine[quota:]
        if len(mine) < quota:
            room.append((member_id, quota - len(mine)))
    start = 0
    for member_id, missing in room:
        held[member_id] += free[start : start + missing]
        start += missing
    assert start == len(free), "shares add up to the number of partitions"
    return {member_id: _by_topic(held[member_id]) for member_id in member_ids}


def _held(spec: GroupSpec, member_ids: list[str], topics: list[bytes]) -> dict[str, list[_Partition]]:
    """What each member owns of what still exists and is still wanted; of two owners the first one counts."""
    seen: set[_Partition] = set()
    held: dict[str, list[_Partition]] = {}
    for member_id in member_ids:
        owned = spec.members[member_id].owned
        held[member_id] = mine = []
        for topic_id in topics:
            count = spec.partitions_of(topic_id)
            for number in sorted(owned.get(topic_id, ())):
                partition = (topic_id, number)
                if 0 <= number < count and partition not in seen:
                    mine.append(partition)
        seen.update(mine)
    return held


def _by_topic(partitions: list[_Partition]) -> MemberAssignment:
    numbers: dict[bytes, list[int]] = {}
    for topic_id, number in partitions:
        numbers.setdefault(topic_id, []).append(number)
    return {topic_id: frozenset(mine) for topic_id, mine in numbers.items()}
