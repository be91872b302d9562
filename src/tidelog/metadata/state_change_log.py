"""Log lines for committed metadata changes: brokers, topics, leaders, ISRs.

Each broker change has its own line, and so have some topics. Partition changes are counted (``PartitionNews``), because a
stopping broker changes thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import RECOVERING, BrokerImage, ClusterImage, PartitionImage
from tidelog.metadata.topics_delta import TopicDelta
from tidelog.model.ids import NO_BROKER

SHOWN_TOPICS = 10
"""Topics with their own line per step."""
SHOWN_PARTITIONS = 3
"""Partitions named in a summary."""

WhyFenced = Callable[[int], str | None]
"""Why a broker was fenced, as far as the active controller knows."""


class Names:
    """A count, and the first names."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if self.count <= SHOWN_PARTITIONS:
            self.first.append(name)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first)} more" if self.count > len(self.first) else ""
        return ", ".join(self.first) + more


def broker_lines(old: ClusterImage, new: ClusterImage, delta: ClusterDelta, why_fenced: WhyFenced) -> Iterator[str]:
    """Lines for brokers registered, unregistered, fenced, unfenced, and stopping."""
    for broker_id in delta.registrations.brokers.touched:
        before, after = old.brokers.get(broker_id), new.brokers.get(broker_id)
        if after is None:
            if before is not None:
                yield f"broker {broker_id} is unregistered"
            continue
        if before is None or before.epoch != after.epoch:
            yield f"broker {broker_id} is registered with epoch {after.epoch}{_place(after)}"
        if before is not None and after.fenced and not before.fenced:
            why = "it stops in order" if before.in_controlled_shutdown else why_fenced(broker_id)
            yield f"broker {broker_id} is fenced{'' if why is None else f': {why}'}{_handed_over(old, delta, broker_id)}"
        elif not after.fenced and (before is None or before.fenced):
            yield f"broker {broker_id} is unfenced"
        elif before is not None and after.in_controlled_shutdown and not before.in_controlled_shutdown:
            yield f"broker {broker_id} stops: its leaderships move to other brokers"


def _place(broker: BrokerImage) -> str:
    points = ", ".join(f"{each.name}://{each.host}:{each.port}" for each in broker.endpoints.values())
    return f" at {points}" + ("" if broker.rack is None else f", rack {broker.rack}")


def _handed_over(old: ClusterImage, delta: ClusterDelta, broker_id: int) -> str:
    """What happens to the partitions that a fenced broker led."""
    taken = lost = 0
    for _, before, after in _changed_partitions(old, delta):
        if before.leader == broker_id and after.leader != broker_id:
            taken += after.leader != NO_BROKER
            lost += after.leader == NO_BROKER
    if not taken and not lost:
        return ""
    text = f"; {_count(taken, 'partition')} {'gets' if taken == 1 else 'get'} another leader"
    return f"{text}, {lost} {'has' if lost == 1 else 'have'} none" if lost else text


def topic_lines(old: ClusterImage, delta: ClusterDelta) -> list[str]:
    """Lines for topics created, deleted, or given more partitions."""
    changed = list(delta.topics.changed.values())
    created = [_created(each) for each in changed if each.created]
    deleted = [
        f"topic {each.name} is deleted: {_count(len(each.partitions), 'partition')}" for each in delta.topics.deleted.values()
    ]
    grown = []
    for each in changed:
        before = None if each.created else old.topics.by_id.get(each.id)
        if before is not None and len(each.partitions) > len(before.partitions):
            grown.append(f"topic {each.name} has {len(each.partitions)} partitions, {len(before.partitions)} before")
    return [*_some(created, "created"), *_some(deleted, "deleted"), *_some(grown, "given more partitions")]


def _created(topic: TopicDelta) -> str:
    replicas = max((len(each.replicas) for each in topic.partitions.values()), default=0)
    return f"topic {topic.name} is created: {_count(len(topic.partitions), 'partition')}, replication factor {replicas}"


def _some(lines: list[str], what: str) -> list[str]:
    if len(lines) <= SHOWN_TOPICS:
        return lines
    return [*lines[:SHOWN_TOPICS], f"{len(lines) - SHOWN_TOPICS} more topics are {what}"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _changed_partitions(old: ClusterImage, delta: ClusterDelta) -> Iterator[tuple[str, PartitionImage, PartitionImage]]:
    """Name, old and new state of the partitions that existed before."""
    for topic_id, topic in delta.topics.changed.items():
        before = old.topics.by_id.get(topic_id)
        if before is None or topic.created:
            continue
        for number in sorted(topic.changed):
            if number < len(before.partitions):
                yield f"{topic.name}-{number}", before.partitions[number], topic.partitions[number]


class PartitionNews:
    """Counts changes of leaders and ISRs until ``take`` is called."""

    def __init__(self) -> None:
        self._moved: dict[tuple[int, int], Names] = {}
        self._left: dict[int, Names] = {}
        self._joined: dict[int, Names] = {}
        self._unclean: dict[int, Names] = {}
        self.elections = 0
        """Partitions that got another leader, since the start."""
        self.unclean_elections = 0
        self.eligible_elections = 0
        """Those whose leader was not in sync but an eligible leader replica (KIP-966)."""

    def __bool__(self) -> bool:
        return bool(self._moved or self._left or self._joined or self._unclean)

    def add(self, old: ClusterImage, delta: ClusterDelta) -> None:
        """Adds one metadata change."""
        for name, before, after in _changed_partitions(old, delta):
            if before.leader != after.leader:
                self._moved.setdefault((before.leader, after.leader), Names()).add(name)
                self.elections += after.leader != NO_BROKER
                self.eligible_elections += after.leader in before.elr
            if after.leader_recovery_state == RECOVERING != before.leader_recovery_state:
                self._unclean.setdefault(after.leader, Names()).add(name)
                self.unclean_elections += 1
            if before.isr != after.isr:
                self._note(self._left, set(before.isr).difference(after.isr), name)
                self._note(self._joined, set(after.isr).difference(before.isr), name)

    def _note(self, where: dict[int, Names], brokers: Iterable[int], name: str) -> None:
        for broker in brokers:
            where.setdefault(broker, Names()).add(name)

    def take(self) -> tuple[list[str], list[str]]:
        """The lines, and the warnings: partitions without a leader, elections that may have lost records."""
        lines, warnings = [], []
        for (before, after), names in self._moved.items():
            what = _count(names.count, "partition")
            if after == NO_BROKER:
                has = "has" if names.count == 1 else "have"
                warnings.append(f"{what} of leader {before} {has} no leader now: {names}")
            elif before == NO_BROKER:
                lines.append(f"broker {after} leads {what} that had no leader: {names}")
            else:
                lines.append(f"broker {after} leads {what} after broker {before}: {names}")
        lines += [f"broker {broker} left the ISR of {_count(n.count, 'partition')}: {n}" for broker, n in self._left.items()]
        lines += [f"broker {broker} joined the ISR of {_count(n.count, 'partition')}: {n}" for broker, n in self._joined.items()]
        warnings += [
            f"broker {broker} leads {_count(n.count, 'partition')} without having been in the ISR, records may be lost: {n}"
            for broker, n in self._unclean.items()
        ]
        for noted in (self._moved, self._left, self._joined, self._unclean):
            noted.clear()
        return lines, warnings
