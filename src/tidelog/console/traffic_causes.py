"""Causes that nodes' metrics show: quotas that throttle, partitions that are not fetched, or fetched by consumers that cannot
commit; and members that take each other's place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidelog.client.calls import Partition
from tidelog.console.group_facts import GroupFacts, MemberFacts, PartitionFacts, Sample
from tidelog.console.node_facts import FETCH_RATE, FETCH_THROTTLE, FETCHES, REQUEST_THROTTLE, NodeFacts
from tidelog.console.quoting import word
from tidelog.console.verdict import Finding
from tidelog.console.wording import SHOWN, count, each_line

BUSY: Final = 0.8
"""Of the time, from which on a loop's requests wait."""


def fenced(facts: GroupFacts) -> Finding | None:
    """G6: processes with one group.instance.id put each other out again and again."""
    looks = (facts.first, *facts.between, facts.last)
    holders: dict[str, list[MemberFacts]] = {}
    for look in looks:
        for member in look.members:
            if member.instance_id is None:
                continue
            known = holders.setdefault(member.instance_id, [])
            if not known or known[-1].member_id != member.member_id:
                known.append(member)
    # A restart of a static member changes its id once.
    found = {instance: members for instance, members in holders.items() if len(members) > 2}
    if not found:
        return None
    return Finding(
        "G6",
        f"{count(found, 'group.instance.id')} with several processes, which fence each other",
        tuple(
            f"{instance}: {len(members)} members in {facts.seconds:.0f} s, from "
            + ", ".join(sorted({f"{each.client_id} at {each.host.lstrip('/')}" for each in members})[:SHOWN])
            for instance, members in sorted(found.items())[:SHOWN]
        ),
        "Each one that joins gets the place of the one before, which fails with FENCED_INSTANCE_ID and is started again. Give "
        "each process a group.instance.id of its own.",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)} --members --verbose",
    )


def throttled(facts: GroupFacts) -> Finding | None:
    """R3: a quota holds back the answers to a member."""
    if not any(part.lag and facts.before(at).lag for at, part in facts.last.partitions.items()):
        return None
    ids = {member.client_id for member in facts.last.members}
    texts = []
    for node in facts.last.nodes:
        for (name, labels), delay in sorted((node.metrics or {}).items(), key=str):
            entity = dict(labels)
            if name not in (FETCH_THROTTLE, REQUEST_THROTTLE) or delay <= 0 or entity.get("client_id") not in ids:
                continue
            rate = node.value(FETCH_RATE, **entity)
            sent = "" if rate is None or name != FETCH_THROTTLE else f", {rate:.0f} bytes/s"
            quota = "consumer_byte_rate" if name == FETCH_THROTTLE else "request_percentage"
            texts.append(f"broker {node.node_id}: {entity['client_id']} waits {delay:.0f} ms an answer for {quota}{sent}")
    if not texts:
        return None
    return Finding(
        "R3",
        "a quota throttles the group's consumers",
        tuple(texts[:SHOWN]),
        "The command shows the limit. Raise it, or let the application read less.",
        f"tidelog configs --describe --entity-type clients --entity-name {word(min(ids))}",
    )


def busy_leader(facts: GroupFacts) -> Finding | None:
    """R4: the group falls behind, and its leaders have no time left."""
    behind = {
        part.leader: at
        for at, part in facts.last.partitions.items()
        if part.lag and facts.before(at).lag and part.lag >= facts.before(at).lag
    }
    found = [node for node in facts.last.nodes if node.node_id in behind and (node.busy or 0) > BUSY]
    if not found or not facts.last.members:
        return None
    return Finding(
        "R4",
        f"{count(found, 'broker')} that lead partitions with a lag have no time left",
        tuple(
            f"broker {node.node_id}: its loop is busy {100 * (node.busy or 0):.0f} % of the time{_busiest(node)}"
            for node in found[:SHOWN]
        ),
        "The brokers are the limit, not the consumer: move leaders to others, or stop what asks them most.",
        "tidelog top",
    )


def paused(facts: GroupFacts) -> Finding | None:
    """R6: a member polls, and does not ask for one of its topics."""
    found: dict[Partition, PartitionFacts] = {}
    for member in facts.last.members:
        moves = {at[0] for at in member.assignment if _moved(facts, at)}
        for at in member.assignment:
            part = facts.last.partitions.get(at)
            if part is None or not part.lag or not facts.before(at).lag or _moved(facts, at) or at[0] in moves:
                continue
            if moves and _fetches(facts.last, at[0]) is not None and _fetches(facts.last, at[0]) == _fetches(facts.first, at[0]):
                found[at] = part
    if not found:
        return None
    return Finding(
        "R6",
        f"a member that goes on elsewhere does not fetch {count(found, 'partition')}",
        each_line(
            found, lambda part: f"committed {part.committed} at both looks, {part.lag} records behind, no Fetch of the topic"
        ),
        "It has paused the partition, or its queue for it is full: only the client knows. Look for pause() without resume().",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)} --members --verbose",
    )


def refused_commits(facts: GroupFacts) -> Finding | None:
    """G11: a topic of the group is read by a consumer that is not in it; commits of such a one are refused."""
    subscribed = {topic for member in facts.last.members for topic in member.subscription}
    owned = {at[0] for member in facts.last.members for at in member.assignment}
    found = {
        at: part
        for at, part in facts.last.partitions.items()
        if facts.last.members
        and not any(member.pattern for member in facts.last.members)
        and at[0] not in subscribed | owned
        and part.lag
        and facts.before(at).lag
        and not _moved(facts, at)
        and (_fetches(facts.last, at[0]) or 0) > (_fetches(facts.first, at[0]) or 0)
        and _fetches(facts.first, at[0]) is not None
    }
    if not found:
        return None
    return Finding(
        "G11",
        f"{count(found, 'partition')} with offsets of the group are fetched, and no member may commit for them",
        each_line(
            found, lambda part: f"committed {part.committed} at both looks, {part.lag} records behind; no member subscribes to it"
        ),
        "A consumer that assigns partitions itself cannot commit to a group that has members: it gets UNKNOWN_MEMBER_ID. Give it "
        "a group.id of its own. Another group may be what fetches the topic.",
        f"tidelog consumer-groups --describe --group {word(facts.group_id)}",
        certain=False,
    )


def _place(part: PartitionFacts) -> str:
    return f"committed {part.committed} at both looks, {part.lag} records behind"


def _busiest(node: NodeFacts) -> str:
    first = max(node.clients, key=lambda each: each.requests, default=None)
    return "" if first is None else f"; {first.client_id}: {first.requests} requests"


def _moved(facts: GroupFacts, at: Partition) -> bool:
    part = facts.last.partitions.get(at)
    return part is not None and part.committed != facts.before(at).committed


def _fetches(look: Sample, topic: str) -> float | None:
    """Fetch requests for the topic, on all nodes that were read; None without their metrics."""
    values = [node.value(FETCHES, topic=topic) for node in look.nodes if node.metrics is not None]
    return _sum(values) if values else None


def _sum(values: Iterable[float | None]) -> float:
    return sum(each or 0.0 for each in values)
