"""Reading for share groups: whole batches, their offsets, and what was aborted."""

from __future__ import annotations

from tests.unit.replication.world import World, led_by_us
from tidelog.broker.shares.log_reading import ShareRead, aborted_batches, read_log
from tidelog.model.errors import ErrorCode
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication.partition import Partition


def data(count: int, base: int = 0, producer: int = -1) -> bytes:
    records = [RecordData(None, b"x" * 10, 1) for _ in range(count)]
    batch = build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=producer >= 0)
    return base.to_bytes(8, "big") + bytes(batch)[8:]


def partition(*counts: int) -> Partition:
    world = World()
    world.create("t", led_by_us())
    found = world.manager.by_name("t", 0)
    assert isinstance(found, Partition)
    for count in counts:
        assert found.append_own(memoryview(bytearray(data(count))), 1).error is ErrorCode.NONE
    return found


def test_whole_batches_are_read_from_the_one_that_holds_the_offset() -> None:
    read = read_log(partition(5, 5, 5), 7, 1 << 20, committed=False)
    assert (read.error, read.offsets) == (ErrorCode.NONE, [(5, 9), (10, 14)])
    assert [header.base_offset for header in iter_headers(read.between(12, 13))] == [10]
    assert read.between(30, 40) == b""
    assert read_log(partition(5, 5), 0, 1, committed=False).offsets == [(0, 4)]
    assert read_log(partition(5, 5), 0, 1, committed=False, min_one=False).offsets == []


def test_there_may_be_nothing_and_there_may_be_an_error() -> None:
    assert read_log(partition(5), 5, 100, committed=False) == ShareRead(ErrorCode.NONE)
    assert read_log(partition(5), 9, 100, committed=False).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_batches_of_aborted_transactions_are_found() -> None:
    raw = data(5, 0, producer=7) + data(5, 5, producer=8) + data(5, 10, producer=7) + data(5, 15)
    batches = list(iter_headers(raw))
    assert aborted_batches(raw, batches, [(7, 0)]) == [(0, 4), (10, 14)]
    assert aborted_batches(raw, batches, [(7, 10)]) == [(10, 14)]
    assert aborted_batches(raw, batches, []) == []
