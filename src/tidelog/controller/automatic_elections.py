"""Elections that the controller starts by itself: leadership returns to preferred replicas, and partitions that allow unclean
election get a leader."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import Wanted
from tidelog.controller.partition_index import PartitionSet
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import PartitionImage
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

MAX_ELECTIONS = 1_000
"""Elections per batch; the rest follows at once in another batch."""


def balance_leaders(decision: Decision) -> ControllerResult:
    """Moves leadership back to in-sync preferred leaders. The response says whether there may be more to do."""
    return _elections(decision, decision.partitions.without_preferred_leader, Election.PREFERRED)


def elect_unclean_leaders(decision: Decision) -> ControllerResult:
    """Elects leaders for partitions without one where ``unclean.leader.election.enable`` is set. Response as above."""
    return _elections(decision, decision.partitions.without_leader, Election.UNCLEAN)


def _elections(decision: Decision, partitions: PartitionSet, election: Election) -> ControllerResult:
    records: list[PartitionChangeRecord] = []
    for record in _found(decision, partitions, election):
        records.append(record)
        if len(records) >= MAX_ELECTIONS:
            break
    return ControllerResult.of(len(records) >= MAX_ELECTIONS, records)


def _found(decision: Decision, partitions: PartitionSet, election: Election) -> Iterator[PartitionChangeRecord]:
    for topic_id, numbers in partitions.topics():
        topic = decision.image.topics.by_id[topic_id]
        if election is Election.UNCLEAN and decision.election(topic) is not Election.UNCLEAN:
            continue
        for number in numbers:
            if election is Election.PREFERRED and not _preferred_is_in_service(decision, topic.partitions[number]):
                continue
            record = decision.change(topic, number, Wanted(election=election))
            if record is not None:
                yield record


def _preferred_is_in_service(decision: Decision, partition: PartitionImage) -> bool:
    """A cheap check, because it runs for every partition whose preferred replica is down."""
    first = partition.replicas[0]
    broker = decision.image.brokers.get(first)
    return first in partition.isr and broker is not None and broker.active
