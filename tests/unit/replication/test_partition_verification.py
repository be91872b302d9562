"""When a transaction's coordinator has to be asked, and what is kept of a no."""

from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.model.errors import ErrorCode
from tidelog.replication.partition import Partition
from tidelog.replication.partition_verification import begin_verification, refuse_verification
from tidelog.storage.verification_guard import Verification


def ask(partition: Partition, epoch: int = 0) -> Verification | None:
    return begin_verification(partition, 7, epoch, 0, starts_at_zero=False, transactional_id="pay", now_ms=NOW_MS)


def one_partition() -> Partition:
    world = World()
    world.create("t")
    return world.partition("t")


def kept(partition: Partition) -> int:
    assert partition.log is not None
    return len(partition.log.producers.verifications)


def test_nobody_is_asked_where_the_transaction_is_open() -> None:
    partition = one_partition()
    proof = ask(partition)
    records = batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append(records, NOW_MS, 1, proof=proof)
    assert ask(partition) is None
    assert ask(partition, epoch=1) is not None, "a newer epoch has no transaction yet"


def test_nobody_is_asked_where_nothing_can_be_appended() -> None:
    partition = one_partition()
    partition.update_metadata(led_by_us(leader=2, leader_epoch=3))
    assert ask(partition) is None
    partition.update_metadata(led_by_us(leader_epoch=4))
    partition.go_offline()
    assert ask(partition) is None


def test_a_no_is_counted_and_a_producer_that_nobody_knows_forgotten() -> None:
    partition = one_partition()
    for error, left in ((ErrorCode.NOT_ENOUGH_REPLICAS, 1), (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 0)):
        proof = ask(partition)
        assert proof is not None
        assert refuse_verification(partition, 7, proof, error, 100).error is error
        assert kept(partition) == left
    assert (partition.stats.failed_produce_requests, partition.stats.bytes_rejected) == (2, 200)
