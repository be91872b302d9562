"""One flipped bit, anywhere in what a broker keeps of a partition, after a clean and an unclean stop.

Whatever is flipped: each record that was acknowledged is read as it was written, or its offset is refused with CORRUPT_MESSAGE,
or the node refuses to open the dir and names the file. No record is passed over in silence, and no file of records gets shorter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction
from tidelog.model.errors import ConfigError, ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import crc_is_valid, iter_headers
from tidelog.storage import checkpoints, reading
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_manager import LogManager
from tidelog.storage.scrub import SegmentCheck, segments_of
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

PARTITION = TopicPartition("orders", 0)
TOPIC = b"\5" * 16
SMALL = LogConfig(segment_bytes=1200, index_interval_bytes=200, retention_ms=-1)
HOME = "/a/orders-0"
KINDS = {
    ".log": HOME,
    ".index": HOME,
    ".timeindex": HOME,
    ".txnindex": HOME,
    ".snapshot": HOME,
    "leader-epoch-checkpoint": HOME,
    "partition.metadata": HOME,
    "recovery-point-offset-checkpoint": "/a",
    "replication-offset-checkpoint": "/a",
    "log-start-offset-checkpoint": "/a",
    "tidelog-flushed-checkpoint": "/a",
    "meta.properties": "/a",
    ".kafka_cleanshutdown": "/a",
    ".tidelog_boot": "/a",
}
NO_CHECKSUM = {"log-start-offset-checkpoint"}
"""A flip that raises an offset in it hides records: docs/robustness.md lists it."""
SEEDS = 25


@dataclass(frozen=True, slots=True)
class Stored:
    disk: SimDisk
    batches: dict[int, bytes]
    """By base offset."""
    end: int


def opened(disk: SimDisk) -> LogManager:
    if not disk.exists("/a/meta.properties"):
        disk.make_dirs("/a")
        checkpoints.replace_file(disk, "/a/meta.properties", MetaProperties("c", 1, b"\1" * 16).encode())
    made = LogManager(disk, ["/a"], node_id=1, rng=random.Random(1), config_for=lambda _: SMALL)
    made.open_dirs()
    made.load_all(NOW_MS)
    return made


def stored(*, clean: bool) -> Stored:
    """Several segments, with idempotent and aborted batches; all flushed, and checkpointed."""
    disk = SimDisk()
    logs = opened(disk)
    log = logs.get_or_create(PARTITION, TOPIC, NOW_MS)
    for number in range(14):
        data = batch(2, value=bytes([number]) * 120, producer=(7, 0, number * 2), timestamp_ms=NOW_MS + number)
        append(log, data)
        if number in {3, 9}:
            append(log, batch(1, producer=(8, 0, number // 9), transactional=True))
            end_transaction(log, 8, commit=number == 9)
    log.flush()
    for job in logs.upkeep.checkpoint_jobs():
        job.run()
        logs.upkeep.checkpointed(job)
    batches = batches_of(log)
    end = log.log_end_offset
    if clean:
        logs.close()
        return Stored(disk, batches, end)
    return Stored(disk.kill(), batches, end)


def batches_of(log: UnifiedLog) -> dict[int, bytes]:
    found = {}
    for segment in log.segments:
        data = segment.file.read(0, segment.size)
        found |= {h.base_offset: bytes(data[h.position : h.end_position]) for h in iter_headers(data)}
    return found


def damaged_somewhere(disk: SimDisk, kind: str, rng: random.Random) -> str | None:
    directory = KINDS[kind]
    paths = [f"{directory}/{name}" for name in disk.listdir(directory) if name.endswith(kind)]
    paths = [path for path in paths if disk.stat(path).size]
    if not paths:
        return None
    path = rng.choice(paths)
    disk.flip(path, rng.randrange(disk.stat(path).size), rng.randrange(8))
    return path


def scrub(log: UnifiedLog) -> None:
    for segment in segments_of(log):
        check: SegmentCheck | None = SegmentCheck(log, segment, segment.file)
        while check is not None:
            check.advance(1 << 20)
            check, done = check.again(segment.file), check
            if check is None:
                done.take()


def check_reads(log: UnifiedLog, was: Stored, *, scrubbed: bool) -> int:
    """Every offset, alone; how many are refused."""
    refused = 0
    for base, written in was.batches.items():
        result = reading.read(log, base, 1, upto=log.log_end_offset, min_one=True)
        if result.error is not ErrorCode.NONE:
            refused += 1
            continue
        assert result.slice is not None, f"offset {base} is passed over"
        data = result.slice.read()[: len(written)]
        if data[:8] + data[16:] != written[:8] + written[16:]:
            # A reader gets what is damaged, and its checksum or its length says so; after a scrub it does not even get that.
            assert not scrubbed, base
            header = next(iter_headers(data), None) if len(data) == len(written) and data[16] == 2 else None
            assert header is None or header.base_offset != base or not crc_is_valid(data, header)
            refused += 1
    return refused


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_flipped_bit_loses_records_in_silence(kind: str, clean: bool, seed: int) -> None:
    was = stored(clean=clean)
    path = damaged_somewhere(was.disk, kind, random.Random(seed))
    if path is None:
        return
    sizes = {name: was.disk.stat(f"{HOME}/{name}").size for name in was.disk.listdir(HOME) if name.endswith(".log")}
    try:
        logs = opened(was.disk)
        if not logs.online_dirs():
            raise StorageFailure("/a", str(logs.dirs[0].failure))
        log = logs.get_or_create(PARTITION, TOPIC, NOW_MS)
    except (StorageFailure, ConfigError) as refusal:
        assert path.rpartition("/")[2] in str(refusal) or "log.dirs" in str(refusal), refusal
        return
    after = {name: was.disk.stat(f"{HOME}/{name}").size for name in was.disk.listdir(HOME) if name.endswith(".log")}
    assert after == sizes
    log.check()
    if kind in NO_CHECKSUM and log.log_start_offset:
        return
    assert log.log_end_offset >= was.end
    before = check_reads(log, was, scrubbed=False)
    scrub(log)
    refused = check_reads(log, was, scrubbed=True)
    assert refused <= (2 if kind == ".log" else 0), (before, refused)
