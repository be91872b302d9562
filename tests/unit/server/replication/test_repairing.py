"""Damaged batches of a leader and of a follower come back from the other replica."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.unit.replication.world import NOW_MS, batch
from tests.unit.server.replica_pair import Pair, placed, run
from tidelog.model.errors import ErrorCode
from tidelog.records.batch import iter_headers
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch
from tidelog.replication.reads import read_partition
from tidelog.replication.repair import damages
from tidelog.replication.replica import Caller
from tidelog.server.replication.repairing import Repairing
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange, UndecidedRange
from tidelog.storage.segment import LogSegment
from tidelog.storage.verification_guard import NOT_REQUIRED

SMALL = LogConfig(segment_bytes=400)
RECORDS = 12


async def filled(pair: Pair, **placement: Any) -> None:
    """Two equal replicas of several segments, the leader is broker 1."""
    pair.create(placed(1, **placement), config=SMALL)
    pair.start()
    for number in range(RECORDS):
        pair.produce(b"value %d" % number)
    await pair.until(lambda: pair.log(1).high_watermark == RECORDS == pair.log(2).high_watermark)
    assert len(pair.log(1).segments) > 2


async def with_transactions(pair: Pair, *transactions: tuple[int, bool]) -> int:
    """Two equal replicas with transactions of producer 7, each of so many records and committed or not, and records without a
    producer behind them; returns an offset that all of the transactions are below."""
    pair.create(placed(1), config=SMALL)
    pair.start()
    partition, sequence = pair.worlds[1].partition("t"), 0
    for count, commit in transactions:
        for _ in range(count):
            records = batch(b"value", producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True)
            partition.append(records, NOW_MS, 1, proof=NOT_REQUIRED)
            sequence += 1
        marker = end_txn_marker_batch(EndTxnMarker(commit, 0), producer_id=7, producer_epoch=0, timestamp_ms=NOW_MS)
        partition.append_own(memoryview(marker), NOW_MS)
    for _ in range(8):
        pair.produce(b"value")
    end: int = pair.log(1).log_end_offset
    await pair.until(lambda: pair.log(2).log_end_offset == end)
    pair.produce(b"last")
    await pair.until(lambda: pair.log(2).high_watermark == end + 1)
    return end


def damage(log: Any, segment: LogSegment, number: int, *, known: bool = True) -> RottenRange:
    """Turns a bit in the segment's batch ``number``."""
    header = list(iter_headers(segment.file.read(0, segment.size)))[number]
    at = header.position + header.size - 1
    segment.file.write(at, bytes([segment.file.read(at, 1)[0] ^ 4]))
    rotten = RottenRange(header.position, header.position + header.size, header.base_offset, header.last_offset + 1)
    if known:
        segment.rotten = tuple(sorted((*segment.rotten, rotten)))
    return rotten


def files(log: Any) -> bytes:
    return b"".join(segment.file.read(0, segment.size) for segment in log.segments)


def due(repairing: Repairing) -> None:
    repairing._attempts = {key: last._replace(due_s=0.0) for key, last in repairing._attempts.items()}


async def mended(pair: Pair, broker: int) -> None:
    for _ in range(5):
        await pair.replications[broker].repairing.look()
        await pair.until(lambda: not pair.log(broker).flush_in_flight)


@pytest.mark.parametrize("broker", [1, 2], ids=["leader", "follower"])
@pytest.mark.parametrize("active", [False, True], ids=["closed", "active"])
def test_a_damaged_batch_comes_back_and_the_log_is_equal_again(
    broker: int, active: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        log, before = pair.log(broker), files(pair.log(broker))
        segment = log.active if active else log.segments[1]
        rotten = damage(log, segment, 0)
        wrong = segment.file.read(rotten.position, rotten.end - rotten.position)
        reported: list[Any] = []
        pair.worlds[broker].manager.on_mended = reported.append
        assert reading.read(log, rotten.first_offset, 10, upto=RECORDS, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
        with caplog.at_level(logging.WARNING):
            await mended(pair, broker)
        assert files(log) == before == files(pair.log(3 - broker))
        assert damages(log) == [] and pair.replications[broker].repairing.mended == 1 and reported == [log]
        assert reading.read(log, rotten.first_offset, 10, upto=RECORDS, min_one=True).error is ErrorCode.NONE
        assert log.high_watermark == log.log_end_offset == RECORDS and pair.worlds[1].partition("t").isr == (1, 2)
        (kept,) = [name for name in log.fs.listdir(log.dir) if name.endswith(".cut")]
        aside = log.fs.open(f"{log.dir}/{kept}", write=False)
        assert aside.read(0, aside.size()) == wrong
        assert not [name for name in log.fs.listdir(log.dir) if name.endswith(".tmp")]
        (line,) = [record.getMessage() for record in caplog.records if "are replaced by those of broker" in record.getMessage()]
        assert kept in line
        log.check()

    run(story)


def test_both_replicas_are_mended_when_they_are_damaged_at_different_offsets() -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        before = files(pair.log(1))
        for broker, number in ((1, 0), (2, 1)):
            damage(pair.log(broker), pair.log(broker).segments[1], number)
        await mended(pair, 1)
        await mended(pair, 2)
        assert files(pair.log(1)) == before == files(pair.log(2))

    run(story)


@pytest.mark.parametrize("known", [True, False], ids=["the donor knows", "the donor does not know"])
def test_what_is_damaged_on_both_stays_damaged_and_is_said_once(known: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        damage(pair.log(1), pair.log(1).segments[1], 0, known=known)
        damage(pair.log(2), pair.log(2).segments[1], 0)
        before = files(pair.log(2))
        repairing = pair.replications[2].repairing
        for _ in range(2):
            due(repairing)
            await repairing.look()
        assert files(pair.log(2)) == before and len(damages(pair.log(2))) == 1
        lines = [record.getMessage() for record in caplog.records if "cannot be mended" in record.getMessage()]
        assert len(lines) == 1 and ("it cannot read its own copy" if known else "wrong checksum") in lines[0]

    run(story)


def test_a_range_that_could_not_be_mended_waits_before_the_next_attempt() -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        damage(pair.log(2), pair.log(2).segments[1], 0)
        pair.down = True
        await pair.replications[2].repairing.look()
        pair.down = False
        count = len(pair.asked)
        await pair.replications[2].repairing.look()
        assert not any(each.isolation_level for each in pair.asked[count:] if hasattr(each, "isolation_level"))
        due(pair.replications[2].repairing)
        await mended(pair, 2)
        assert damages(pair.log(2)) == []

    run(story)


def consumer_gets(pair: Pair, broker: int, offset: int) -> ErrorCode:
    return read_partition(pair.worlds[broker].partition("t"), offset, 10, min_one=True, any_replica=True).error


def committed_reader_gets(pair: Pair, broker: int, offset: int) -> ErrorCode:
    partition = pair.worlds[broker].partition("t")
    return read_partition(partition, offset, 10, min_one=True, any_replica=True, committed=True).error


@pytest.mark.parametrize("broker", [1, 2], ids=["leader", "follower"])
def test_consumers_wait_for_a_replica_that_cannot_be_reached_and_read_on_once_it_has_helped(broker: int) -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        rotten = damage(pair.log(broker), pair.log(broker).segments[1], 0)
        assert consumer_gets(pair, broker, rotten.first_offset) is ErrorCode.KAFKA_STORAGE_ERROR
        pair.down = True
        await pair.replications[broker].repairing.look()
        assert consumer_gets(pair, broker, rotten.first_offset) is ErrorCode.KAFKA_STORAGE_ERROR
        pair.down = False
        due(pair.replications[broker].repairing)
        await mended(pair, broker)
        assert consumer_gets(pair, broker, rotten.first_offset) is ErrorCode.NONE

    run(story)


def test_consumers_get_an_error_once_no_replica_has_the_batch_and_followers_at_once() -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        rotten = damage(pair.log(1), pair.log(1).segments[1], 0)
        damage(pair.log(2), pair.log(2).segments[1], 0)
        follower = Caller(2, 5, NOW_MS)
        leader = pair.worlds[1].partition("t")
        read = read_partition(leader, rotten.first_offset, 10, min_one=True, caller=follower, leader_epoch=0)
        assert read.error is ErrorCode.CORRUPT_MESSAGE
        for broker in (1, 2):
            assert consumer_gets(pair, broker, rotten.first_offset) is ErrorCode.KAFKA_STORAGE_ERROR
            await pair.replications[broker].repairing.look()
            assert consumer_gets(pair, broker, rotten.first_offset) is ErrorCode.CORRUPT_MESSAGE

    run(story)


def test_ranges_that_are_gone_are_forgotten() -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        for broker in (1, 2):
            damage(pair.log(broker), pair.log(broker).segments[1], 0)
        repairing, partition = pair.replications[2].repairing, pair.worlds[2].partition("t")
        await repairing.look()
        assert len(repairing._attempts) == 1 == len(partition.unmended.hopeless)
        pair.log(2).segments[1].rotten = ()
        await repairing.look()
        assert not repairing._attempts and not partition.unmended.hopeless
        damage(pair.log(2), pair.log(2).segments[1], 1)
        pair.down = True
        await repairing.look()
        assert len(repairing._attempts) == 1
        partition.deleted = True
        await repairing.look()
        assert not repairing._attempts

    run(story)


@pytest.mark.parametrize("what", ["cut", "epoch", "deleted"])
def test_a_log_that_changes_under_the_copy_is_left_alone(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        log, repairing = pair.log(2), pair.replications[2].repairing
        damage(log, log.segments[1], 0)
        before = files(log)
        copied = repairing._run

        async def change(steps: Any) -> None:
            await copied(steps)
            if what == "cut":
                log.files.segments.cuts += 1
            elif what == "epoch":
                pair.worlds[2].partition("t").leader_epoch += 1
            else:
                pair.worlds[2].partition("t").deleted = True

        monkeypatch.setattr(repairing, "_run", change)
        await repairing.look()
        assert files(log) == before and repairing.mended == 0
        assert not [name for name in log.fs.listdir(log.dir) if name.endswith(".tmp")]
        assert ("cannot be mended" in caplog.text) == (what != "deleted")

    run(story)


def test_records_of_an_aborted_transaction_stay_hidden_when_their_batch_comes_back() -> None:
    """A start that replayed the log without the first batch of a transaction has the wrong first offset in its index."""

    async def story(pair: Pair) -> None:
        end = await with_transactions(pair, (3, False))
        log = pair.log(2)
        right = reading.aborted_transactions(log, 0, end)
        assert [(each.producer_id, each.first_offset) for each in right] == [(7, 0)]
        damage(log, log.segments[0], 0)
        for segment in log.segments:
            segment.aborted.reset(log.fs, segment.path(".txnindex"))
        log.rebuild_producers(NOW_MS, [])
        assert [each.first_offset for each in reading.aborted_transactions(log, 0, end)] == [1]
        await mended(pair, 2)
        assert damages(log) == []
        assert reading.aborted_transactions(log, 0, end) == right
        assert log.producers.entries[7].last_sequence == 2
        log.check()

    run(story)


def test_replicas_that_cannot_say_what_was_aborted_mend_one_another() -> None:
    """Each lacks a marker of a transaction that was open where the other one is damaged."""

    async def story(pair: Pair) -> None:
        end = await with_transactions(pair, (1, False), (1, True))
        right, before = reading.aborted_transactions(pair.log(1), 0, end), files(pair.log(1))
        for broker, number in ((1, 1), (2, 0)):
            log = pair.log(broker)
            damage(log, log.segments[0], number)
            for segment in log.segments:
                segment.aborted.reset(log.fs, segment.path(".txnindex"))
            log.rebuild_producers(NOW_MS, [])
            log.producers.high_watermark_moved(log.high_watermark)
            log.files.leave_undecided([UndecidedRange(0, 0, 2)])
            assert committed_reader_gets(pair, broker, 0) is ErrorCode.KAFKA_STORAGE_ERROR
            assert consumer_gets(pair, 1, 0) is ErrorCode.NONE, "readers of uncommitted data have them"
        await mended(pair, 1)
        await mended(pair, 2)
        for broker in (1, 2):
            assert files(pair.log(broker)) == before
            assert reading.aborted_transactions(pair.log(broker), 0, end) == right
            assert committed_reader_gets(pair, broker, 0) is ErrorCode.NONE

    run(story)


def test_a_read_of_committed_data_ends_before_what_is_undecided() -> None:
    async def story(pair: Pair) -> None:
        await filled(pair)
        log = pair.log(1)
        damage(log, log.segments[0], 2)
        log.files.leave_undecided([UndecidedRange(0, 1, 2)])
        read = read_partition(pair.worlds[1].partition("t"), 0, 10_000, min_one=True, committed=True)
        uncommitted = read_partition(pair.worlds[1].partition("t"), 0, 10_000, min_one=True)
        assert (read.error, 2 * read.size) == (ErrorCode.NONE, uncommitted.size)

    run(story)
