"""Partition changes when a broker stops, returns, or has lost records.

Only the partitions of that broker are looked at (``partition_index``); each change is one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import ChangeRules, Wanted, change_partition
from tidelog.controller.partition_index import PartitionId
from tidelog.controller.partition_rules import online_leader_check
from tidelog.controller.result import Decision
from tidelog.metadata.image import TopicImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.ids import NO_BROKER, Uuid


def when_gone(decision: Decision, broker_id: int) -> list[MetadataRecord]:
    """The broker is fenced: it leaves each ISR that has other members and leads no partition."""
    return list(leaving(decision, broker_id))


def leaving(decision: Decision, broker_id: int) -> Iterator[MetadataRecord]:
    """As ``when_gone``, one partition after another, for a broker that shuts down."""
    return _moves(decision, decision.partitions.with_in_isr(broker_id), without=broker_id)


def when_unregistered(decision: Decision, broker_id: int) -> list[MetadataRecord]:
    """The broker was unregistered."""
    return when_gone(decision, broker_id) + list(_moves(decision, decision.partitions.with_in_elr(broker_id), without=broker_id))


def when_back(decision: Decision, broker_id: int) -> list[MetadataRecord]:
    """The broker is in service: partitions without a leader may get one."""
    return list(_moves(decision, decision.partitions.without_leader, plus=broker_id))


def when_restarted(decision: Decision, broker_id: int, *, clean: bool) -> list[MetadataRecord]:
    """A new process of the broker registers. After an unclean shutdown it may have lost unflushed records (KIP-966): it is
    removed from ELR and, with ELR enabled, from the ISR."""
    if clean:
        return when_gone(decision, broker_id)
    index = decision.partitions
    in_sync = leaving(decision, broker_id)
    if decision.elr_enabled:
        in_sync = _moves(decision, index.with_in_isr(broker_id), unclean_shutdown=broker_id)
    return [*in_sync, *_moves(decision, index.with_in_elr(broker_id), unclean_shutdown=broker_id)]


def when_directories_fail(decision: Decision, broker_id: int, failed: Iterable[Uuid]) -> list[MetadataRecord]:
    """Log dirs of the broker failed: it leaves the ISR of the partitions in them."""
    records: list[MetadataRecord] = []
    for directory in failed:
        inside = (
            (topic_id, number)
            for topic_id, number in decision.partitions.with_in_isr(broker_id)
            if decision.image.topics.by_id[topic_id].partitions[number].directory(broker_id) == directory
        )
        records += _moves(decision, inside, without=broker_id)
    return records


def when_replicas_are_lost(decision: Decision, broker_id: int, partitions: Iterable[PartitionId]) -> list[MetadataRecord]:
    """The broker reports replicas in log dirs that it no longer has."""
    return list(_moves(decision, partitions, without=broker_id))


def _moves(
    decision: Decision,
    partitions: Iterable[PartitionId],
    *,
    without: int = NO_BROKER,
    plus: int = NO_BROKER,
    unclean_shutdown: int = NO_BROKER,
) -> Iterator[MetadataRecord]:
    """One record for each partition that changes when brokers leave the ISR and elections follow."""
    image = decision.image
    topic: TopicImage | None = None
    rules: ChangeRules
    election = Election.ONLINE
    leaving = (without, unclean_shutdown)
    for topic_id, number in partitions:
        if topic is None or topic.id != topic_id:
            topic = image.topics.by_id[topic_id]
            rules, election = decision.change_rules(topic), decision.election(topic)
        partition = topic.partitions[number]
        if plus != NO_BROKER and plus not in partition.replicas:
            continue
        wanted = Wanted(
            isr=[member for member in partition.isr if member not in leaving],
            election=election,
            unclean_shutdown=unclean_shutdown,
        )
        gone = without if without != NO_BROKER else unclean_shutdown
        acceptable = online_leader_check(image, partition, without=gone, plus=plus)
        change = change_partition(topic_id, number, partition, wanted, rules, acceptable)
        if change is not None:
            yield change
