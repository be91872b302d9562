"""Others' transactions in the log of a machine: records that wait, markers that let them count, and both read again at load."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.coordinator.shard_world import Notebook, ShardWorld
from tests.unit.replication.world import led_by_us
from tidelog.coordinator.shard import Shard, Waiting, WithinTransaction
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.records.record import Record
from tidelog.replication.marker_append import Marker
from tidelog.storage.log_config import LogConfig
from tidelog.storage.verification_guard import NOT_REQUIRED

SYNCED = LogConfig(flush_messages=1)
PRODUCER = WithinTransaction(7, 0, NOT_REQUIRED)
COMMIT, ABORT = Marker(7, 0, True, 0), Marker(7, 0, False, 0)


class Ledger(Notebook):
    """A notebook that also keeps what producers wrote within transactions, until their markers come."""

    def __init__(self, now_ms: int) -> None:
        super().__init__(now_ms)
        self.waiting: dict[int, list[bytes]] = {}

    def replay_pending(self, record: Any, producer_id: int, now_ms: int) -> None:
        self.waiting.setdefault(producer_id, []).append(record)

    def replay_stored_pending(self, record: Record, producer_id: int, now_ms: int) -> None:
        self.replay_pending(bytes(record.value or b""), producer_id, now_ms)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        notes = self.waiting.pop(producer_id, [])
        if committed:
            self.notes += notes


class LedgerWorld(ShardWorld):
    def __init__(self, config: LogConfig | None = None) -> None:
        super().__init__(config=config)
        self.shards = Shards(OFFSETS_TOPIC, self.world.manager, Ledger, self)
        self.shards.follow()

    def shard(self) -> Shard[Notebook]:
        found = self.shards.find("g")
        assert isinstance(found, Shard)
        return found

    def ledger(self) -> Ledger:
        machine = self.shard().machine
        assert isinstance(machine, Ledger)
        return machine

    def write(self, *values: bytes, within: WithinTransaction = PRODUCER) -> Waiting:
        return self.shards.ask_within(self.shard(), within, lambda machine, token, _: machine.write(token, *values))[1]

    def end(self, marker: Marker) -> ErrorCode | Waiting:
        return self.shards.complete_transaction(0, marker)

    def flush(self) -> None:
        self.world.manager.flush(self.world.partition(OFFSETS_TOPIC))
        self.world.run_jobs()

    def load_again(self) -> None:
        self.shards = Shards(OFFSETS_TOPIC, self.world.manager, Ledger, self)
        self.shards.follow()


def test_records_of_a_transaction_count_with_its_marker() -> None:
    world = LedgerWorld()
    assert world.write(b"a", b"b").response == 2
    assert world.ledger().notes == [] and world.ledger().waiting == {7: [b"a", b"b"]}
    ended = world.end(COMMIT)
    assert isinstance(ended, Waiting) and ended.done and not ended.error
    assert world.ledger().notes == [b"a", b"b"]


@pytest.mark.parametrize(("marker", "notes"), [(COMMIT, [b"a"]), (ABORT, []), (None, [])], ids=["commit", "abort", "open"])
def test_a_new_shard_reads_transactions_and_their_markers(marker: Marker | None, notes: list[bytes]) -> None:
    world = LedgerWorld()
    world.write(b"a")
    if marker is not None:
        world.end(marker)
    world.load_again()
    assert world.ledger().notes == notes
    assert world.ledger().waiting == ({7: [b"a"]} if marker is None else {})


def test_a_marker_is_answered_when_it_is_safe() -> None:
    world = LedgerWorld(SYNCED)
    written = world.write(b"a")
    ended = world.end(COMMIT)
    assert isinstance(ended, Waiting) and not written.done and not ended.done
    world.flush()
    assert written.done and ended.done and not ended.error


def test_a_producer_that_the_partition_refuses_is_told_so_and_nothing_happened() -> None:
    world = LedgerWorld()
    refused = world.write(b"a", within=WithinTransaction(7, 0, None))
    assert (refused.done, refused.error) == (True, ErrorCode.INVALID_TXN_STATE)
    world.write(b"a", within=WithinTransaction(7, 3, NOT_REQUIRED))
    fenced = world.write(b"b", within=WithinTransaction(7, 2, NOT_REQUIRED))
    assert fenced.error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.ledger().waiting == {7: [b"a"]} and not world.shard().failed


def test_what_a_machine_refuses_needs_no_transaction() -> None:
    world = LedgerWorld()
    assert world.write(within=WithinTransaction(7, 0, None)).response == 0
    log = world.world.partition(OFFSETS_TOPIC).log
    assert log is not None and log.log_end_offset == 0


def test_a_late_marker_changes_nothing() -> None:
    world = LedgerWorld()
    world.write(b"a", within=WithinTransaction(7, 1, NOT_REQUIRED))
    late = Marker(7, 1, False, 0, transaction_version=2)
    assert world.end(late) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert world.ledger().waiting == {7: [b"a"]}


def test_a_marker_for_groups_that_are_not_loaded_or_not_here_is_to_be_sent_again() -> None:
    world = LedgerWorld()
    world.hold = True
    world.load_again()
    assert world.end(COMMIT) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.shards.complete_transaction(9, COMMIT) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.release()
    assert isinstance(world.end(COMMIT), Waiting)
    world.world.partition(OFFSETS_TOPIC).update_metadata(led_by_us(leader=2, leader_epoch=4))
    world.shards.follow()
    assert world.end(COMMIT) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_waits_for_a_marker_is_told_when_the_shard_moves() -> None:
    world = LedgerWorld(SYNCED)
    ended = world.end(COMMIT)
    assert isinstance(ended, Waiting)
    world.world.partition(OFFSETS_TOPIC).update_metadata(led_by_us(leader=2, leader_epoch=4))
    world.shards.follow()
    assert ended.done and ended.error is ErrorCode.NOT_COORDINATOR


def test_records_too_many_for_one_batch_become_several_of_the_same_transaction() -> None:
    world = LedgerWorld(LogConfig(max_message_bytes=400))
    values = [bytes([65 + n]) * 100 for n in range(8)]
    assert world.write(*values).response == 8
    assert world.ledger().waiting == {7: values}
    world.end(COMMIT)
    world.load_again()
    assert world.ledger().notes == values
