"""The metadata log of three Apache Kafka 4.3.1 nodes, decided again by our controller.

While it was written, brokers were killed, restarted and stopped in order, partitions moved, leaders went back to the preferred
replicas, and ``min.insync.replicas`` changed, all with ELR. Each group of records that a controller decides is decided here from
the state before it, and has to come out the same, in every byte.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.controller.conftest import Rules
from tidelog.controller import broker_lifecycle, leader_moves
from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import Wanted, change_partition
from tidelog.controller.partition_rules import online_leader_check
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerSettings
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import decode_record, encode_record
from tidelog.records.batch import read_header
from tidelog.records.record import iter_records

LOG = Path(__file__).parents[2] / "golden" / "controller" / "three-nodes.log.gz"
Record = Any
Found = tuple[str, int]
"""What the next records are, and how many they are."""


def records_of(data: memoryview) -> Iterator[Record]:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        if not header.is_control:
            for record in iter_records(data[position : position + header.size]):
                yield decode_record(record.value)
        position += header.size


class Again:
    """The log up to some point, and the controller that would go on from there."""

    def __init__(self) -> None:
        self.records = list(records_of(memoryview(gzip.decompress(LOG.read_bytes()))))
        self.position = 0
        self.controller = QuorumController(
            ClusterImage(cluster_id="again"), rng=random.Random(1), rules=Rules(), settings=ControllerSettings()
        )

    def take(self, count: int) -> None:
        taken = self.records[self.position : self.position + count]
        self.controller.replay(taken, self.controller.next_offset + count - 1, 1, 0)
        self.position += count

    def comes_next(self, ours: Sequence[Record]) -> bool:
        """Are these the next records? Kafka goes through partitions in the order of a hash table."""
        level = self.controller.image.metadata_version
        theirs = self.records[self.position : self.position + len(ours)]
        return sorted(encode_record(each, level) for each in ours) == sorted(encode_record(each, level) for each in theirs)

    def run_of_changes(self) -> int:
        end = self.position
        while end < len(self.records) and self.records[end].NAME == "PartitionChangeRecord":
            end += 1
        return end - self.position

    def decided(self) -> Found | None:
        """What a controller of ours decides here, if it comes to the next records."""
        changes = self.run_of_changes()
        after = self.position + changes
        cause = self.records[after] if after < len(self.records) else None
        for kind, ours in self._about_a_broker(cause, changes):
            if ours and self.comes_next(ours):
                return kind, len(ours)
        if changes:
            for kind, wanted in self._wishes(self.records[self.position]):
                if self.comes_next([self._changed(wanted)]):
                    return kind, 1
        return None

    def _about_a_broker(self, cause: Record | None, changes: int) -> Iterator[tuple[str, list[Record]]]:
        decision = self.controller._decision
        if cause is None:
            return
        if cause.NAME == "RegisterBrokerRecord" and changes:
            for clean in (True, False):
                yield "restarted", leader_moves.when_restarted(decision, cause.broker_id, clean=clean)
        if cause.NAME == "BrokerRegistrationChangeRecord":
            broker = decision.image.brokers[cause.broker_id]
            if cause.fenced == broker_lifecycle.FENCE:
                yield "fenced", broker_lifecycle.fence(decision, broker)
            elif not changes and cause.fenced == broker_lifecycle.UNFENCE:
                yield "unfenced", broker_lifecycle._unfence(decision, broker)
            elif not changes and cause.in_controlled_shutdown:
                yield "shutting down", broker_lifecycle._begin_shutdown(decision, broker)

    def _wishes(self, record: Record) -> Iterator[tuple[str, Wanted]]:
        """What may have been asked for, that this change is the answer to."""
        before = self.controller.image.topics.by_id[record.topic_id].partitions[record.partition_id]
        recovery = record.leader_recovery_state
        if record.replicas is None:
            yield "ISR", Wanted(isr=record.isr, leader_recovery_state=None if recovery < 0 else recovery)
            yield "elected", Wanted(election=Election.PREFERRED)
            return
        adding, removing = record.adding_replicas or None, record.removing_replicas or None
        yield "move begun", Wanted(replicas=record.replicas, adding=adding, removing=removing)
        for member in before.replicas:
            yield "move ended", Wanted(isr=[*before.isr, member])

    def _changed(self, wanted: Wanted) -> Record:
        record = self.records[self.position]
        decision = self.controller._decision
        topic = decision.image.topics.by_id[record.topic_id]
        before = topic.partitions[record.partition_id]
        acceptable = online_leader_check(decision.image, before)
        ours = change_partition(topic.id, record.partition_id, before, wanted, decision.change_rules(topic), acceptable)
        return record.__class__() if ours is None else ours


def is_decision(record: Record) -> bool:
    """About partitions, or about whether a broker is in service; not what was only said of log dirs."""
    if record.NAME == "BrokerRegistrationChangeRecord":
        return bool(record.fenced or record.in_controlled_shutdown)
    return bool(record.NAME == "PartitionChangeRecord")


def test_what_apaches_controllers_decided_is_decided_again() -> None:
    again = Again()
    counts: Counter[str] = Counter()
    while again.position < len(again.records):
        record = again.records[again.position]
        if record.NAME == "BeginTransactionRecord":
            names = [each.NAME for each in again.records[again.position :]]
            again.take(names.index("EndTransactionRecord") + 1)
        elif not is_decision(record):
            again.take(1)
        else:
            found = again.decided()
            if found is None:
                pytest.fail(f"record {again.position}, {record}, is not what our controller writes")
            counts[found[0]] += 1
            again.take(found[1])
    wanted = {"fenced", "unfenced", "restarted", "shutting down", "ISR", "elected", "move begun", "move ended"}
    assert wanted <= set(counts), counts
    assert sum(counts.values()) > 60
