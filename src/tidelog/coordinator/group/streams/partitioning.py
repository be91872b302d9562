"""Partition counts of a topology's internal topics: repartition topics first, then copartitioned groups, then changelogs.

A count that the client fixed stays. Any other repartition topic gets the highest count among the inputs of a subtopology that
writes to it; topics that are joined with external ones take their count, and a changelog has one partition for each task. An
existing topic counts as it is, so that the caller can compare it with what the topology needs. Source: KIP-1071.

Where several subtopologies influence one count the order decides, and counts outlive the coordinator that chose them; so the
order is Kafka's, that of a Java map of subtopology ids. Kafka also compares the fixed counts of the whole topology, not of one
group, whenever a group has repartition topics only; the same topology has to get the same answer from both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from tidelog.coordinator.partition_for_key import map_order
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages import streams_group_heartbeat, streams_group_topology_value

Subtopology: TypeAlias = streams_group_heartbeat.Subtopology | streams_group_topology_value.Subtopology
TopicInfo: TypeAlias = streams_group_heartbeat.TopicInfo | streams_group_topology_value.TopicInfo
CountOf: TypeAlias = Callable[[str], int | None]
"""The partition count of a topic by name; None when there is none."""


class IncorrectlyPartitioned(Exception):
    """Topics that must have equal partition counts differ; the text names them."""


def invalid(detail: str) -> KafkaError:
    """The error for a topology that no set of topics can satisfy."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, detail)


def in_kafkas_order(subtopologies: Iterable[Subtopology]) -> list[Subtopology]:
    """Subtopologies in the order in which Kafka decides. Raises KafkaError 130 when two have the same id."""
    known = list(subtopologies)
    by_id = {each.subtopology_id: each for each in known}
    if len(by_id) != len(known):
        raise invalid("Two subtopologies have the same id.")
    return [by_id[each] for each in map_order(by_id)]


class PartitionCounts:
    """Counts decided so far, beside those of existing topics."""

    def __init__(self, existing: CountOf) -> None:
        self._existing = existing
        self._decided: dict[str, int] = {}

    @property
    def decided(self) -> Mapping[str, int]:
        """What each internal topic should have."""
        return self._decided

    def of(self, topic: str) -> int | None:
        """The count of an existing topic, else the decided one, else None."""
        count = self._existing(topic)
        return self._decided.get(topic) if count is None else count

    def known(self, topic: str) -> int:
        """The count of a topic that must have one by now. Raises KafkaError 130."""
        count = self.of(topic)
        if count is None:
            raise invalid(f"Topic {topic} is joined with others, but its partition count follows from nothing.")
        return count

    def tasks_of(self, subtopology: Subtopology) -> int:
        """The highest count among the inputs. Raises KafkaError 130 when there are none."""
        inputs = [*subtopology.source_topics, *(each.name for each in subtopology.repartition_source_topics)]
        if not inputs:
            raise invalid(f"Subtopology {subtopology.subtopology_id} reads no topic.")
        return max(map(self.known, inputs))

    def decide(self, counts: Mapping[str, int]) -> None:
        """Sets or replaces counts."""
        self._decided.update(counts)


def decide(subtopologies: Sequence[Subtopology], existing: CountOf) -> PartitionCounts:
    """The counts of all internal topics; every external source topic exists. ``subtopologies`` in Kafka's order.

    Raises KafkaError 130 for a topology that cannot work, IncorrectlyPartitioned when counts contradict each other.
    """
    counts = PartitionCounts(existing)
    counts.decide(_repartition_counts(subtopologies, existing))
    infos = [info for each in subtopologies for info in each.repartition_source_topics]
    fixed = {info.name for info in infos if info.partitions}
    fixed_counts = frozenset(map(counts.known, fixed))  # once: a topology may have thousands of them and of groups
    repartition = {info.name for info in infos}
    for each in subtopologies:
        for group in copartition_groups(each):
            counts.decide(_copartitioned(group, fixed, fixed_counts, repartition, counts))
    for each in subtopologies:
        tasks = counts.tasks_of(each)
        counts.decide({info.name: tasks for info in each.state_changelog_topics})
    return counts


def _repartition_counts(subtopologies: Sequence[Subtopology], existing: CountOf) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in subtopologies:
        for info in each.repartition_source_topics:
            if info.partitions < 0:
                raise invalid(f"Repartition topic {info.name} is to have {info.partitions} partitions.")
            if info.partitions:
                counts[info.name] = info.partitions
    _pass_on(subtopologies, existing, counts)
    if any(sink not in counts for each in subtopologies for sink in each.repartition_sink_topics):
        raise invalid("Partition counts of repartition topics depend on each other in a loop.")
    unwritten = {info.name for each in subtopologies for info in each.repartition_source_topics} - counts.keys()
    if unwritten:
        raise invalid(f"Nothing writes to the repartition topics {', '.join(sorted(unwritten))}.")
    return counts


def _pass_on(subtopologies: Sequence[Subtopology], existing: CountOf, counts: dict[str, int]) -> None:
    """Counts go from the inputs of a subtopology to the topics that it writes. Kafka goes through all subtopologies, round by
    round, until a round changes nothing; one counts as soon as any of its inputs has a count. Here each is visited once, in the
    same order: a chain of thousands, against the order, would take millions of visits."""
    readers: dict[str, list[int]] = {}
    visits: list[tuple[int, int]] = []
    """Round and index."""
    scheduled: set[int] = set()
    external: list[int | None] = []
    for index, each in enumerate(subtopologies):
        external.append(max((count for count in map(existing, each.source_topics) if count is not None), default=None))
        inputs = {info.name for info in each.repartition_source_topics}
        for name in inputs:
            readers.setdefault(name, []).append(index)
        if external[index] is not None or not inputs.isdisjoint(counts):
            visits.append((0, index))
            scheduled.add(index)
    while visits:
        turn, index = heappop(visits)
        each = subtopologies[index]
        inputs_known = [counts[info.name] for info in each.repartition_source_topics if info.name in counts]
        count = max(*inputs_known, external[index] or 0, 0)
        for sink in each.repartition_sink_topics:
            if sink in counts:
                continue
            counts[sink] = count
            for reader in readers.get(sink, ()):
                if reader not in scheduled:
                    scheduled.add(reader)
                    heappush(visits, (turn if reader > index else turn + 1, reader))


def copartition_groups(subtopology: Subtopology) -> list[frozenset[str]]:
    """Topic names of each group. Raises KafkaError 130 for an index beyond the subtopology's topics."""
    try:
        return [
            frozenset(
                [subtopology.source_topics[_checked(index)] for index in group.source_topics]
                + [subtopology.repartition_source_topics[_checked(index)].name for index in group.repartition_source_topics]
            )
            for group in subtopology.copartition_groups
        ]
    except IndexError:
        raise invalid(f"A copartition group of subtopology {subtopology.subtopology_id} names a topic that it lacks.") from None


def _checked(index: int) -> int:
    if index < 0:
        raise IndexError(index)
    return index


def _copartitioned(
    group: frozenset[str], fixed: set[str], fixed_counts: frozenset[int], repartition: set[str], counts: PartitionCounts
) -> dict[str, int]:
    """The counts of the repartition topics in one group. ``fixed_counts``: those of the topics that are ``fixed``."""
    if not group:
        return {}
    internal = {topic: counts.known(topic) for topic in sorted(group & repartition)}
    external = {topic: counts.known(topic) for topic in sorted(group - repartition)}
    if external:
        count = _equal(frozenset(external.values()), external)
    elif fixed:
        count = _equal(fixed_counts, internal)
    else:
        count = max(internal.values())
    for topic, current in internal.items():
        if topic in fixed and current != count:
            raise IncorrectlyPartitioned(  # Kafka Streams gives its users this text in an exception
                f"Number of partitions [{current}] of repartition topic [{topic}] doesn't match "
                f"number of partitions [{count}] of the source topic."
            )
    return dict.fromkeys(internal, count)


def _equal(compared: frozenset[int], shown: Mapping[str, int]) -> int:
    if len(compared) > 1:
        named = ", ".join(f"{topic} has {count}" for topic, count in shown.items())
        raise IncorrectlyPartitioned(f"Joined topics need equal partition counts: {named}.")
    return next(iter(compared))
