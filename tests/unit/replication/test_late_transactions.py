"""Transactions whose producer will not end them are logged, once, with the command that ends them."""

from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.replication.late_transactions import GRACE_MS, LateTransactions, late_transaction
from tidelog.replication.marker_append import Marker, write_marker
from tidelog.replication.partition import Partition
from tidelog.replication.partition_verification import begin_verification
from tidelog.storage.verification_guard import Verification

LONGEST_MS = 900_000
LATE_MS = NOW_MS + LONGEST_MS + GRACE_MS + 1


def with_open_transaction(name: str | None = "pay") -> Partition:
    world = World()
    world.create("t")
    partition = world.partition("t")
    assert partition.log is not None
    proof: Verification | None = begin_verification(
        partition, 7, 0, 0, starts_at_zero=False, transactional_id=name or "", now_ms=NOW_MS
    )
    partition.append(batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True), NOW_MS, 1, proof=proof)
    if name is None:
        partition.log.producers.entries[7].transactional_id = None
    return partition


def test_a_transaction_is_late_when_none_may_last_so_long() -> None:
    partition = with_open_transaction()
    assert late_transaction(partition, LATE_MS - 1, LONGEST_MS) is None
    late = late_transaction(partition, LATE_MS, LONGEST_MS)
    assert late is not None and (late.producer_id, late.transactional_id, late.first_offset) == (7, "pay", 0)
    partition.update_metadata(led_by_us(leader=2, leader_epoch=4))
    assert late_transaction(partition, LATE_MS, LONGEST_MS) is None, "its leader says so"


def test_a_late_transaction_is_named_once_and_counted_until_it_ends() -> None:
    partition = with_open_transaction()
    late = LateTransactions(lambda producer_id: None)
    (line,) = late.look([partition], LATE_MS, LONGEST_MS)
    assert "producer 7, epoch 0 (transactional id pay)" in line and "--topic t --partition 0 --start-offset 0" in line
    assert late.look([partition], LATE_MS + 10_000, LONGEST_MS) == [] and late.count == 1
    write_marker(partition, Marker(7, 0, False, 0), LATE_MS, LATE_MS)
    assert late.look([partition], LATE_MS, LONGEST_MS) == [] and late.count == 0


def test_a_name_that_the_partition_does_not_know_is_asked_of_the_coordinator() -> None:
    partition = with_open_transaction(None)
    (line,) = LateTransactions({7: "known"}.get).look([partition], LATE_MS, LONGEST_MS)
    assert "(transactional id known)" in line
    (line,) = LateTransactions({}.get).look([partition], LATE_MS, LONGEST_MS)
    assert "(transactional id unknown)" in line
