"""The assignor of share groups, "simple": members share partitions evenly, and keep what they have as far as that allows.

With at least as many partitions as members each partition has one member; otherwise each member has at least one partition. The
rules are Kafka's, the order is ours: Kafka's follows from hash sets. Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidelog.coordinator.group.share.share_group import Partitions

Place = tuple[bytes, int]
"""Topic id and partition."""


def assign(
    subscriptions: Mapping[str, frozenset[bytes]], current: Mapping[str, Partitions], assignable: Partitions
) -> dict[str, Partitions]:
    """The partitions of each member. ``subscriptions``: topic ids by member; ``current``: what the members have."""
    held = {member: set(_places(current.get(member, {}))) for member in subscriptions}
    given: dict[str, set[Place]] = {member: set() for member in subscriptions}
    if len(set(subscriptions.values())) <= 1:
        topics = next(iter(subscriptions.values()), frozenset())
        places = list(_places({each: assignable[each] for each in sorted(topics & assignable.keys())}))
        _spread(sorted(subscriptions), places, held, given)
    else:
        for topic in sorted(frozenset[bytes]().union(*subscriptions.values()) & assignable.keys()):
            subscribers = sorted(member for member, topics in subscriptions.items() if topic in topics)
            _spread(subscribers, list(_places({topic: assignable[topic]})), held, given)
    return {member: _by_topic(places) for member, places in given.items()}


def _spread(
    members: Sequence[str], places: Sequence[Place], held: Mapping[str, set[Place]], given: Mapping[str, set[Place]]
) -> None:
    if not members or not places:
        return
    sharing = -(-len(members) // len(places))
    wanted = {}
    for index, member in enumerate(members):
        before, after = (-(-sharing * len(places) * each // len(members)) for each in (index, index + 1))
        wanted[member] = after - before
    count = dict.fromkeys(places, 0)
    kept: dict[str, list[Place]] = {}
    for member in members:
        kept[member] = []
        for place in places:
            if place in held[member] and len(kept[member]) < wanted[member] and count[place] < sharing:
                kept[member].append(place)
                count[place] += 1
    for member in members:
        given[member].update(kept[member])
        wanted[member] -= len(kept[member])
    at = 0
    for place in places:
        missed = 0
        while count[place] < sharing and missed < len(members):
            member = members[at % len(members)]
            at += 1
            if wanted[member] > 0 and place not in given[member]:
                given[member].add(place)
                wanted[member] -= 1
                count[place] += 1
                missed = 0
            else:
                missed += 1


def _places(partitions: Partitions) -> Iterable[Place]:
    for topic_id in partitions:
        for partition in sorted(partitions[topic_id]):
            yield topic_id, partition


def _by_topic(places: Iterable[Place]) -> dict[bytes, frozenset[int]]:
    topics: dict[bytes, set[int]] = {}
    for topic_id, partition in sorted(places):
        topics.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
