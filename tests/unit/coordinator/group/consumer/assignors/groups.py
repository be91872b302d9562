"""Groups in a short notation: topics are digits, ``"12"`` is a subscription to topics 1 and 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, TopicSpec

Owned = Mapping[str, Iterable[int]]


def topic_id(digit: str) -> bytes:
    return bytes(15) + bytes([int(digit)])


def member(subscription: str, owned: Owned | None = None, *, instance: str | None = None) -> MemberSpec:
    return MemberSpec(
        instance_id=instance,
        rack_id=None,
        subscribed_topic_ids=frozenset(topic_id(digit) for digit in subscription),
        owned={topic_id(digit): frozenset(partitions) for digit, partitions in (owned or {}).items()},
    )


def group(topics: Mapping[str, int], **members: MemberSpec) -> GroupSpec:
    return GroupSpec(
        members=members,
        subscription_homogeneous=len({spec.subscribed_topic_ids for spec in members.values()}) <= 1,
        topics={topic_id(digit): TopicSpec(f"topic{digit}", count) for digit, count in topics.items()},
    )


def shown(assignment: GroupAssignment) -> dict[str, dict[str, list[int]]]:
    """The assignment in the same notation, sorted."""
    return {
        member_id: {str(topic[-1]): sorted(partitions) for topic, partitions in sorted(mine.items())}
        for member_id, mine in sorted(assignment.items())
    }
