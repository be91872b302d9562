"""Which damaged ranges may be replaced, and which answers of a donor are believed."""

from __future__ import annotations

import pytest

from sim.workload import append, batch, new_log
from tests.unit.replication.world import World
from tests.unit.server.replica_pair import placed
from tidelog.records.batch import iter_headers
from tidelog.replication import repair
from tidelog.replication.repair import Damage, Readiness, Refusal, Replacement
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.unified_log import UnifiedLog

SMALL = LogConfig(segment_bytes=700)


def written(*, producer: int = -1) -> tuple[UnifiedLog, bytes, RottenRange]:
    """A log of batches of two records, several to a segment; the bytes of its first segment; a range of the second and third
    batch there."""
    log = new_log(config=SMALL)
    for number in range(10):
        append(log, batch(2, value=bytes(40), producer=(producer, 0, number * 2)), leader_epoch=number // 4)
    log.flush()
    raw = log.segments[0].file.read(0, log.segments[0].size)
    first, last = list(iter_headers(raw))[1:3]
    return log, raw, RottenRange(first.position, last.end_position, first.base_offset, last.last_offset + 1)


def test_a_range_is_filled_by_one_answer_or_by_several() -> None:
    log, raw, rotten = written()
    whole, parts = Replacement(log, rotten), Replacement(log, rotten)
    whole.take(raw[rotten.position :])
    assert whole.complete and whole.data == raw[rotten.position : rotten.end] and not whole.has_producers
    for header in list(iter_headers(raw))[1:3]:
        assert not parts.complete and parts.next_offset == header.base_offset
        parts.take(raw[header.position : header.end_position + 20])  # the answer ends within the next batch
    assert parts.complete and parts.data == whole.data


def changed(raw: bytes, position: int, value: int) -> bytes:
    return raw[:position] + bytes([value]) + raw[position + 1 :]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("checksum", "wrong checksum"),
        ("epoch", "leader epoch 5"),
        ("base offset", "does not lie between"),
        ("begins before", "does not lie between"),
        ("reaches past", "does not lie between"),
        ("longer", "longer"),
        ("shorter", "shorter"),
        ("nothing", "no batch from offset 2"),
        ("garbage", "does not read"),
    ],
)
def test_answers_that_do_not_fit_are_refused(what: str, reason: str) -> None:
    log, raw, rotten = written()
    sent = raw[rotten.position :]
    size = next(iter_headers(sent)).size
    if what == "checksum":
        sent = changed(sent, size - 1, sent[size - 1] ^ 1)
    elif what == "epoch":
        sent = changed(sent, 15, 5)
    elif what == "base offset":
        sent = changed(sent, 7, 0)
    elif what == "begins before":
        sent = raw
    elif what == "reaches past":
        rotten = RottenRange(rotten.position, rotten.end, rotten.first_offset, rotten.next_offset - 1)
    elif what == "longer":
        rotten = rotten._replace(end=rotten.end - 1)
    elif what == "shorter":
        rotten = rotten._replace(end=rotten.end + 1)
    elif what == "nothing":
        sent = b""
    else:
        sent = bytes(100)
    with pytest.raises(Refusal, match=reason):
        Replacement(log, rotten).take(sent)


def test_a_gap_that_compaction_left_is_no_error_when_the_bytes_are_as_many() -> None:
    log, raw, rotten = written()
    wide = rotten._replace(next_offset=rotten.next_offset + 1)
    found = Replacement(log, wide)
    found.take(raw[rotten.position : rotten.end])
    assert not found.complete
    after = batch(2, base_offset=wide.next_offset, leader_epoch=0)
    found.take(after)
    assert found.complete and found.data == raw[rotten.position : rotten.end]


def test_only_what_is_committed_and_closed_and_flushed_is_replaced() -> None:
    log, _, rotten = written()
    damage = Damage(log.segments[0], rotten)
    assert repair.readiness(log, damage) is Readiness.READY
    log.segments[0].sealed = False
    assert repair.readiness(log, damage) is Readiness.FLUSH
    log.high_watermark = log.segments[0].next_offset - 1
    assert repair.readiness(log, damage) is Readiness.WAIT, "a cut could reach into the segment"
    log.high_watermark = rotten.next_offset - 1
    assert repair.readiness(log, damage) is Readiness.WAIT
    log.high_watermark = log.log_end_offset
    end = log.log_end_offset
    assert repair.readiness(log, Damage(log.active, RottenRange(0, 10, end - 2, end))) is Readiness.ROLL


def test_damage_below_the_log_start_is_left() -> None:
    log, _, rotten = written()
    log.segments[0].rotten = (rotten,)
    assert repair.damages(log) == [Damage(log.segments[0], rotten)]
    log.delete_records_before(rotten.next_offset)
    assert repair.damages(log) == []


def test_the_leader_is_asked_first_then_the_others_in_sync() -> None:
    world = World(broker_id=2)
    world.create("t", placed(1))
    partition = world.partition("t")
    partition.replicas, partition.isr, partition.leader = (4, 3, 2, 1), (1, 2, 3), 1
    assert repair.donors(partition) == [1, 3, 4]


def test_producers_are_rebuilt_when_a_replay_skipped_the_range_or_the_donor_knows_other_aborts() -> None:
    log, raw, rotten = written()
    plain = Replacement(log, rotten)
    plain.take(raw[rotten.position :], [(7, 2)])
    assert not plain.changes_state(log.segments[0]), "no producer wrote these"
    log, raw, rotten = written(producer=7)
    segment = log.segments[0]
    found, other = Replacement(log, rotten), Replacement(log, rotten)
    found.take(raw[rotten.position :], [(9, rotten.next_offset)])
    other.take(raw[rotten.position :], [(7, 2)])
    assert not found.changes_state(segment) and other.changes_state(segment)
    unasked = Replacement(log, rotten)
    unasked.take(raw[rotten.position :], None)
    assert unasked.changes_state(segment), "the donor was not asked what it knows as aborted"
    segment.aborted.incomplete = True
    assert found.changes_state(segment)
