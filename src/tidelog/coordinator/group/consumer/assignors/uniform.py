"""The ``uniform`` assignor for a group whose members subscribe to the same topics; other groups use ``mixed_subscriptions``.

Balance comes first: shares differ by at most one partition. Then stickiness: a member keeps its partitions up to its share, and
as long as there are larger shares to give, a member that owns one more than the even share keeps it. Unowned partitions go to
members below their share, one member after the other.

Kafka iterates over members and topics in hash table order; we use the order of ids, so that a group always gets the same
assignment.
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
    """The assignment of every member of the group. Raises ``PartitionAssignorError`` for a topic that does not exist."""
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
        # A member that owns more than the even share gets one of the larger shares. The other members leave those to later ones,
        # until only as many members are left as there are larger shares.
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
    """The partitions that each member owns, that still exist and are still subscribed to. If two members own one, the first
    counts."""
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
