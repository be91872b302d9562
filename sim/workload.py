"""What goes into logs in tests: batches of known content, and logs on a simulated disk."""

from __future__ import annotations

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch
from tidelog.storage import reading
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.log_creation import create_log
from tidelog.storage.recovery import LoadRequest, load_log
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.verification_guard import NOT_REQUIRED
from tidelog.testing.simulation.disk import SimDisk

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))
PARTITION = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    timestamp_ms: int = NOW_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """``count`` records with the same value. ``producer``: id, epoch, first sequence."""
    producer_id, epoch, sequence = producer
    return build_batch(
        [RecordData(b"k", value, timestamp_ms, ()) for _ in range(count)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def new_log(disk: FileSystem | None = None, config: LogConfig | None = None) -> UnifiedLog:
    """An empty log, on a fresh simulated disk unless one is given."""
    return create_log(disk or SimDisk(), DIRECTORY, PARTITION, TOPIC_ID, config or LogConfig(), NOW_MS)


def load(
    disk: FileSystem, config: LogConfig | None = None, *, clean: bool = False, survived: bool = False, **known: int
) -> UnifiedLog:
    """The same log from what is on the disk. ``survived``: the kernel; ``known``: recovery_point, log_start_offset,
    high_watermark."""
    return load_log(disk, LoadRequest(DIRECTORY, PARTITION, config or LogConfig(), clean, survived, **known), NOW_MS)


def append(log: UnifiedLog, data: bytearray, *, leader_epoch: int = 0, now_ms: int = NOW_MS) -> AppendResult:
    """As a client's; the high watermark follows, as with one replica."""
    result = log.append_as_leader(memoryview(data), leader_epoch, now_ms, proof=NOT_REQUIRED)
    log.update_high_watermark(log.log_end_offset)
    return result


def end_transaction(
    log: UnifiedLog, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0
) -> AppendResult:
    """A marker as a coordinator of transaction version 1 appends it."""
    marker = EndTxnMarker(commit, coordinator_epoch)
    data = end_txn_marker_batch(marker, producer_id=producer_id, producer_epoch=epoch, timestamp_ms=NOW_MS)
    result = log.append_as_leader(memoryview(data), 0, NOW_MS, origin=Origin.COORDINATOR)
    log.update_high_watermark(log.log_end_offset)
    return result


def offsets(log: UnifiedLog) -> list[tuple[int, int]]:
    """(base offset, last offset) of every batch in the files."""
    found: list[tuple[int, int]] = []
    for segment in log.segments:
        found.extend((header.base_offset, header.last_offset) for header in iter_headers(segment.file.read(0, segment.size)))
    return found


def read_offsets(
    log: UnifiedLog, offset: int, max_bytes: int = 1 << 20, *, upto: int | None = None, min_one: bool = True
) -> list[tuple[int, int]]:
    """(base offset, last offset) of the batches that a read gives."""
    result = reading.read(log, offset, max_bytes, upto=log.log_end_offset if upto is None else upto, min_one=min_one)
    if result.slice is None:
        return []
    return [(header.base_offset, header.last_offset) for header in iter_headers(result.slice.read())]
