"""Power loss at every write and sync point: what was acknowledged is there, what is left is a clean prefix, and indexes, leader
epochs and producer state say what the log says.

One run of a random workload meets every moment: before each change to the disk, the test takes the image that a power loss then
would leave, and later starts from each of these images. ``TIDELOG_POWER_LOSS_SEEDS`` makes the run longer (default 3 per kind).
"""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass, field

import pytest

from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import BatchHeader, iter_headers, read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch
from tidelog.storage import checkpoints, reading
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.log_manager import LogManager
from tidelog.storage.producer_state import ProducerStateManager
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.verification_guard import NOT_REQUIRED
from tidelog.testing.simulation.disk import SimDisk

SEEDS = int(os.environ.get("TIDELOG_POWER_LOSS_SEEDS", "3"))
ROOT = "/data"
PARTITION = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
START_MS = 1_700_000_000_000


@dataclass
class Image:
    """A moment: what the disk would be, and what may and must be found on it."""

    disk: SimDisk
    moment: str
    histories: list[list[bytes]]
    """Batches the log may hold, in order: what it held before and after the step under way."""
    safe_end: int
    """Every record below was acknowledged as safe."""
    latest_start: int
    """Retention may have removed what is below, nothing above."""


@dataclass
class Workload:
    """Random steps on one partition, with a model of what is in it."""

    seed: int
    sync_each: bool
    disk: SimDisk = field(init=False)
    images: list[Image] = field(default_factory=list)
    history: list[bytes] = field(default_factory=list)
    histories: list[list[bytes]] = field(default_factory=list)
    safe_end: int = 0
    latest_start: int = 0
    now_ms: int = START_MS
    epoch: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.disk = SimDisk(self.seed)
        self.sequences: dict[int, int] = {}
        self.open_transactions: set[int] = set()
        self.disk.make_dirs(ROOT)
        checkpoints.replace_file(self.disk, f"{ROOT}/meta.properties", MetaProperties("cluster", 1, b"\x42" * 16).encode())
        self.disk.sync_dir("/")
        self.histories = [self.history]
        self.disk.on_operation = self.take_image
        self.start()

    def config(self) -> LogConfig:
        return LogConfig(
            segment_bytes=2500, index_interval_bytes=300, retention_bytes=6000, flush_messages=1 if self.sync_each else 1 << 60
        )

    def start(self) -> None:
        self.manager = manager(self.disk, self.config())
        self.manager.load_all(self.now_ms)
        self.log = self.manager.get_or_create(PARTITION, TOPIC_ID, self.now_ms)
        self.log.update_high_watermark(self.log.log_end_offset)

    def take_image(self, number: int, kind: str, path: str) -> None:
        image = self.disk.crash(self.seed * 100_003 + number)
        histories = [list(history) for history in self.histories]
        self.images.append(Image(image, f"{number}: {kind} {path}", histories, self.safe_end, self.latest_start))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.now_ms += self.rng.randint(1, 50)
            self.disk.now_ms = self.now_ms
            choice = self.rng.choices(
                [
                    self.append,
                    self.append_idempotent,
                    self.transaction,
                    self.flush,
                    self.roll,
                    self.retain,
                    self.truncate,
                    self.restart,
                    self.checkpoint,
                ],
                [30, 30, 12, 0 if self.sync_each else 6, 2, 4, 3, 2, 4],
            )[0]
            choice()
            self.histories = [self.history]

    def append(self) -> None:
        self.put(build_batch(self.records(), codec=self.rng.choice([0, 0, 1])))

    def append_idempotent(self, *, transactional: bool = False) -> None:
        producer = self.rng.choice([21, 22]) if transactional else self.rng.choice([11, 12, 13])
        records = self.records()
        sequence = self.sequences.get(producer, 0)
        self.put(
            build_batch(records, producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=transactional)
        )
        self.sequences[producer] = sequence + len(records)
        if transactional:
            self.open_transactions.add(producer)

    def transaction(self) -> None:
        if self.open_transactions and self.rng.random() < 0.6:
            producer = self.rng.choice(sorted(self.open_transactions))
            marker = EndTxnMarker(self.rng.random() < 0.5, 0)
            self.put(
                end_txn_marker_batch(marker, producer_id=producer, producer_epoch=0, timestamp_ms=self.now_ms), Origin.COORDINATOR
            )
            self.open_transactions.discard(producer)
        else:
            self.append_idempotent(transactional=True)

    def records(self) -> list[RecordData]:
        value = bytes([self.rng.randrange(256)]) * self.rng.randint(1, 250)
        return [RecordData(b"k", value, self.now_ms + self.rng.randint(-20, 20), ()) for _ in range(self.rng.randint(1, 4))]

    def put(self, batch: bytearray, origin: Origin = Origin.CLIENT) -> None:
        expected = bytearray(batch)
        expected[0:8] = self.log.log_end_offset.to_bytes(8, "big")
        expected[12:16] = self.epoch.to_bytes(4, "big")
        self.histories = [self.history, [*self.history, bytes(expected)]]
        result = self.log.append_as_leader(memoryview(batch), self.epoch, self.now_ms, origin=origin, proof=NOT_REQUIRED)
        assert result.error == 0, result.error_message
        self.history.append(bytes(expected))
        if result.needs_flush:
            self.flush()
        self.log.update_high_watermark(self.log.log_end_offset)

    def flush(self) -> None:
        self.log.flush(self.now_ms)
        self.safe_end = max(self.safe_end, self.log.recovery_point)

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def retain(self) -> None:
        # What goes is decided before the first file is touched: nothing above the high watermark.
        self.latest_start = max(self.latest_start, self.log.active.base_offset)
        self.manager.upkeep.retain(self.now_ms, self.now_ms)
        for job in self.manager.upkeep.removals_due(self.now_ms + 100_000):
            job.run()
            self.manager.upkeep.removed(job)

    def truncate(self) -> None:
        lowest = max(self.log.log_start_offset, self.log.log_end_offset - 12)
        offset = self.rng.randint(lowest, self.log.log_end_offset)
        keep = [batch for batch in self.history if read_header(batch).last_offset < offset]
        self.histories = [self.history, keep]
        self.safe_end = min(self.safe_end, offset, read_header(keep[-1]).next_offset if keep else 0)
        self.manager.truncate(self.log, offset, self.now_ms)
        self.history = keep
        self.epoch += 1
        self.resume_producers()

    def resume_producers(self) -> None:
        entries = self.log.producers.entries
        self.sequences = {producer: entry.last_sequence + 1 for producer, entry in entries.items()}
        self.open_transactions = {producer for producer, entry in entries.items() if entry.txn_first_offset >= 0}

    def restart(self) -> None:
        self.manager.close(7)
        self.safe_end = self.log.log_end_offset
        self.start()
        self.resume_producers()

    def checkpoint(self) -> None:
        for job in self.manager.upkeep.checkpoint_jobs():
            job.run()
            self.manager.upkeep.checkpointed(job)


def manager(disk: SimDisk, config: LogConfig) -> LogManager:
    made = LogManager(disk, [ROOT], node_id=1, rng=random.Random(1), config_for=lambda _: config)
    made.open_dirs()
    return made


def batches_of(log: UnifiedLog) -> list[bytes]:
    found: list[bytes] = []
    for segment in log.segments:
        whole = segment.file.read(0, segment.size)
        found.extend(whole[header.position : header.end_position] for header in iter_headers(whole))
    return found


def check_prefix(image: Image, found: list[bytes], log: UnifiedLog) -> list[bytes]:
    """The history that the log is a prefix of, up to where the log ends; its start may be cut by retention."""
    for history in image.histories:
        for start in range(len(history) + 1):
            if history[start : start + len(found)] == found:
                first = read_header(found[0]).base_offset if found else log.log_end_offset
                assert first <= max(image.latest_start, 0) or start == 0, f"records from {image.latest_start} on are gone"
                return history[: start + len(found)]
    raise AssertionError(f"what is left is no piece of what was written: offsets {[read_header(b).base_offset for b in found]}")


def check_indexes(log: UnifiedLog) -> None:
    for segment in log.segments:
        ends = {header.position: header for header in iter_headers(segment.file.read(0, segment.size))}
        index = segment.offset_index()
        for relative, position in zip(index.relative_offsets, index.positions, strict=True):
            assert ends[position].last_offset == segment.base_offset + relative
        greatest, times = -1, segment.time_index()
        stamps = {}
        for header in ends.values():
            greatest = max(greatest, header.max_timestamp)
            stamps.setdefault(header.max_timestamp, header.last_offset)
        for timestamp, relative in zip(times.timestamps, times.relative_offsets, strict=True):
            assert stamps[timestamp] == segment.base_offset + relative
        assert segment.largest_timestamp()[0] == greatest
        for header in ends.values():
            result = reading.read(log, header.last_offset, 1, upto=log.log_end_offset, min_one=True)
            assert result.slice is not None and result.slice.position == header.position and result.slice.length == header.size


def replay(history: list[bytes]) -> tuple[ProducerStateManager, list[tuple[int, int]]]:
    """Producer state and aborted transactions (first, marker offset) by the book: from the first batch on."""
    state, aborted = ProducerStateManager(), []
    for batch in history:
        header = read_header(batch)
        if header.producer_id < 0:
            continue
        if not header.is_control:
            state.update(header)
            continue
        commit = _is_commit(batch, header)
        completed = state.update_marker(header, commit=commit, coordinator_epoch=0)
        if completed is not None:
            state.complete(completed)
            if completed.aborted:
                aborted.append((completed.first_offset, completed.last_offset))
    return state, aborted


def _is_commit(batch: bytes, header: BatchHeader) -> bool:
    from tidelog.records.record import iter_records

    return next(iter(iter_records(batch, header))).key == b"\0\0\0\1"


def check_producers(log: UnifiedLog, history: list[bytes], found: list[bytes]) -> None:
    expected, aborted = replay(history)
    present = {read_header(batch).producer_id for batch in found} - {-1}
    for producer, entry in log.producers.entries.items():
        known = expected.entries[producer]
        assert (entry.epoch, entry.last_sequence, entry.last_offset) == (known.epoch, known.last_sequence, known.last_offset), (
            producer
        )
        assert entry.txn_first_offset == known.txn_first_offset
    assert present <= set(log.producers.entries), "a producer whose batches are in the log is not known"
    assert log.producers.first_undecided_offset() == expected.first_undecided_offset()
    start = log.segments[0].base_offset
    indexed = [(entry.first_offset, entry.last_offset) for segment in log.segments for entry in segment.transactions()]
    assert indexed == [pair for pair in aborted if pair[1] >= start]


def check_start(image: Image) -> tuple[LogManager, UnifiedLog] | None:
    """Starts from the image and checks all that must hold; None when the partition did not exist yet."""
    restarted = manager(image.disk, LogConfig(segment_bytes=2500, index_interval_bytes=300))
    restarted.load_all(START_MS + 10_000_000)
    assert restarted.online_dirs(), restarted.dirs[0].failure
    log = restarted.get(PARTITION)
    if log is None:
        assert image.safe_end == 0, "the partition is gone"
        return None
    log.check()
    assert log.log_end_offset >= image.safe_end, f"acknowledged up to {image.safe_end}, found {log.log_end_offset}"
    found = batches_of(log)
    history = check_prefix(image, found, log)
    check_indexes(log)
    check_producers(log, history, found)
    assert [epoch for epoch, _ in log.leader_epochs.entries()] == sorted(
        {read_header(b).leader_epoch for b in found}
    ) or not found
    return restarted, log


def check_image(image: Image) -> None:
    started = check_start(image)
    if started is None:
        return
    restarted, log = started
    # It goes on from there, and a clean stop keeps it as it is.
    log.append_as_leader(memoryview(build_batch([RecordData(b"k", b"after", START_MS, ())])), 1000, START_MS)
    before = batches_of(log)
    restarted.close(8)
    again = manager(image.disk, LogConfig(segment_bytes=2500, index_interval_bytes=300))
    assert again.dirs[0].clean
    again.load_all(START_MS)
    log = again.get(PARTITION)
    assert log is not None and batches_of(log) == before
    check_indexes(log)


@pytest.mark.parametrize("sync_each", [True, False], ids=["flush.messages=1", "no flush"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_loss_at_every_operation_leaves_a_clean_prefix_with_all_that_was_acknowledged(seed: int, sync_each: bool) -> None:
    workload = Workload(seed, sync_each)
    workload.run(70)
    assert len(workload.images) > 100
    for image in workload.images:
        try:
            check_image(image)
        except Exception as failure:
            raise AssertionError(f"seed {seed}, sync_each {sync_each}, power lost before operation {image.moment}") from failure


@pytest.mark.parametrize("seed", range(SEEDS))
def test_power_loss_during_recovery_is_recovered_from(seed: int) -> None:
    workload = Workload(1000 + seed, sync_each=seed % 2 == 0)
    workload.run(40)
    for image in workload.images[::25]:
        second: list[Image] = []

        def take(number: int, kind: str, path: str, image: Image = image, second: list[Image] = second) -> None:
            disk = image.disk.crash(number)
            second.append(
                Image(disk, f"{image.moment}, then {number}: {kind} {path}", image.histories, image.safe_end, image.latest_start)
            )

        image.disk.on_operation = take
        check_start(image)
        image.disk.on_operation = None
        for moment in second:
            try:
                check_image(moment)
            except Exception as failure:
                raise AssertionError(f"seed {seed}, power lost before operation {moment.moment}") from failure


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.ESTALE])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_disk_that_fails_at_any_operation_takes_the_log_down_with_all_that_was_acknowledged(seed: int, code: int) -> None:
    total = Workload(2000 + seed, sync_each=True)
    total.run(30)
    for failing in range(40 + seed, total.disk.operations, 23):
        workload = Workload(2000 + seed, sync_each=True)

        def fail(number: int, kind: str, path: str, failing: int = failing, workload: Workload = workload) -> None:
            if number >= failing:
                raise OSError(code, os.strerror(code), path)

        workload.disk.on_operation = fail
        with pytest.raises(StorageFailure):
            workload.run(30)
        workload.disk.on_operation = None
        histories = [list(history) for history in workload.histories]
        for disk in (workload.disk.kill(), workload.disk.crash(seed)):
            try:
                check_image(Image(disk, str(failing), histories, workload.safe_end, workload.latest_start))
            except Exception as failure:
                raise AssertionError(f"seed {seed}, operations from {failing} on failed with {code}") from failure


def test_a_killed_process_loses_nothing_that_was_written() -> None:
    workload = Workload(77, sync_each=False)
    workload.run(60)
    image = Image(workload.disk.kill(), "kill", [workload.history], workload.log.log_end_offset, workload.latest_start)
    check_image(image)
