"""Compaction of whole logs on a real directory: which log, how far, what is left, and a crash at every file operation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import Buffer, File, FileStat, Lock
from tidelog.records.batch import BatchHeader, iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch
from tidelog.records.record import Record, iter_records
from tidelog.server.disk import DiskFileSystem
from tidelog.storage import reading
from tidelog.storage.checkpoints import CLEANER_OFFSETS, read_offsets
from tidelog.storage.cleanable_ratio import cleanable_range
from tidelog.storage.cleaner import Cleaning, LogCleaner
from tidelog.storage.cleaner_jobs import CleaningInterrupted
from tidelog.storage.log_config import LogConfig, Origin
from tidelog.storage.log_creation import create_log
from tidelog.storage.recovery import LoadRequest, load_log
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.verification_guard import NOT_REQUIRED

GOLDEN = Path(__file__).parents[2] / "golden" / "batches" / "compaction"
PARTITION = TopicPartition("t", 0)
DAY = 86_400_000
COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, file_delete_delay_ms=0)


def new_log(root: Path, config: LogConfig = COMPACT, fs: object = None) -> UnifiedLog:
    return create_log(fs or DiskFileSystem(), f"{root}/t-0", PARTITION, b"i" * 16, config, 0)  # type: ignore[arg-type]


def append(log: UnifiedLog, *records: tuple[str | None, str | None], now_ms: int = 1000, **settings: object) -> int:
    """One batch of (key, value); its base offset."""
    data = [RecordData(k and k.encode(), v and v.encode(), now_ms) for k, v in records]  # type: ignore[arg-type]
    result = log.append_as_leader(build_batch(data, **settings), 0, now_ms, proof=NOT_REQUIRED)  # type: ignore[arg-type]
    assert result.error == 0, result.error_message
    return result.first_offset


def end_transaction(log: UnifiedLog, producer_id: int, *, commit: bool, now_ms: int = 1000) -> None:
    marker = end_txn_marker_batch(EndTxnMarker(commit, 0), producer_id=producer_id, producer_epoch=0, timestamp_ms=now_ms)
    assert log.append_as_leader(marker, 0, now_ms, origin=Origin.COORDINATOR).error == 0


def roll(log: UnifiedLog) -> None:
    """Closes the active segment, makes it safe, and lets readers see all of it."""
    log.roll(0)
    log.flush()
    log.update_high_watermark(log.log_end_offset)


def run_jobs(cleaning: Cleaning, now_ms: int = 2000) -> None:
    while cleaning.job is not None:
        cleaning.job.run()
        cleaning.advance(now_ms)


def run(cleaning: Cleaning, now_ms: int = 2000) -> Cleaning:
    run_jobs(cleaning, now_ms)
    for removal in cleaning.removals:
        removal.remove()
    return cleaning


def clean(log: UnifiedLog, now_ms: int = 2000, cleaner: LogCleaner | None = None) -> Cleaning:
    cleaning = (cleaner or LogCleaner(log.fs)).begin([log], now_ms)
    assert cleaning is not None
    run(cleaning, now_ms)
    log.check()
    return cleaning


def batches(log: UnifiedLog) -> bytes:
    return b"".join(segment.file.read(0, segment.size) for segment in log.segments)


def records(log: UnifiedLog) -> list[Record]:
    data = batches(log)
    return [record for header in iter_headers(data) if not header.is_control for record in iter_records(data, header)]


def values(log: UnifiedLog) -> dict[str, str | None]:
    """What a reader of the whole log ends up with; tombstones show as None."""
    return {(r.key or b"").decode(): r.value if r.value is None else r.value.decode() for r in records(log)}


def names(log: UnifiedLog) -> list[str]:
    return log.fs.listdir(log.dir)


def test_the_latest_record_of_each_key_is_left_at_its_offset(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, ("a", "1"), ("b", "1"), ("a", "2"))
    append(log, ("c", "1"))
    roll(log)
    append(log, ("b", "2"), ("d", "1"))
    roll(log)
    append(log, ("a", "3"))
    clean(log)
    assert [(r.offset, r.key, r.value) for r in records(log)] == [
        (2, b"a", b"2"),
        (3, b"c", b"1"),
        (4, b"b", b"2"),
        (5, b"d", b"1"),
        (6, b"a", b"3"),
    ], "the active segment is never part of it, nor are its keys"
    assert [segment.base_offset for segment in log.segments] == [0, 6]


def test_the_directory_holds_nothing_but_the_new_segments_afterwards(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for value in "123":
        append(log, ("a", value))
        roll(log)
    clean(log)
    assert [name for name in names(log) if name.endswith((".log", ".index", ".timeindex"))] == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000003.log",
    ]
    assert not [name for name in names(log) if name.endswith((".cleaned", ".swap", ".deleted"))]
    assert [name for name in names(log) if name.endswith(".snapshot")] == ["00000000000000000003.snapshot"]


def test_indexes_of_a_cleaned_segment_lead_to_its_records(tmp_path: Path) -> None:
    log = new_log(tmp_path, replace(COMPACT, index_interval_bytes=100))
    for i in range(200):
        append(log, (f"key{i % 50}", f"value {i}"), now_ms=1000 + i)
    roll(log)
    clean(log)
    for offset in range(150, 200):
        found = reading.read(log, offset, 1 << 20, upto=log.log_end_offset, min_one=True).slice
        assert found is not None
        first = next(iter_records(found.read()))
        assert first.offset == offset
        at = reading.offset_for_timestamp(log, 1000 + offset)
        assert at is not None and at.offset == offset
    reloaded = load_log(log.fs, LoadRequest(log.dir, PARTITION, COMPACT, clean=True, recovery_point=200), 0)
    assert records(reloaded) == records(log)
    assert len(reloaded.segments[0].offset_index()) > 10


def test_a_tombstone_goes_when_delete_retention_has_passed_since_it_was_first_cleaned(tmp_path: Path) -> None:
    log, cleaner = new_log(tmp_path), LogCleaner(DiskFileSystem())
    append(log, ("a", "1"), ("b", "1"))
    append(log, ("a", None), now_ms=1500)
    roll(log)
    clean(log, 5000, cleaner)
    assert values(log) == {"b": "1", "a": None}
    stamped = [header for header in iter_headers(batches(log)) if header.has_delete_horizon]
    assert [header.delete_horizon_ms for header in stamped] == [5000 + DAY]
    assert [r.timestamp for r in records(log)] == [1000, 1500], "the horizon must not move timestamps"
    append(log, ("c", "1"))
    roll(log)
    clean(log, 5000 + DAY - 1, cleaner)
    assert values(log) == {"b": "1", "a": None, "c": "1"}
    append(log, ("d", "1"))
    roll(log)
    clean(log, 5000 + DAY, cleaner)
    assert values(log) == {"b": "1", "c": "1", "d": "1"}


def test_aborted_records_go_at_once_and_their_marker_a_retention_later(tmp_path: Path) -> None:
    log, cleaner = new_log(tmp_path), LogCleaner(DiskFileSystem())
    append(log, ("a", "stays"))
    append(log, ("a", "aborted"), ("x", "aborted"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 7, commit=False)
    append(log, ("b", "committed"), producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 8, commit=True)
    log.producers.entries.clear()  # expired: their last batches need not stay
    roll(log)
    first = [(h.base_offset, h.is_control, h.records_count) for h in headers(log)]
    assert first == [(0, False, 1), (1, False, 2), (3, True, 1), (4, False, 1), (5, True, 1)]
    clean(log, 10_000, cleaner)
    assert values(log) == {"a": "stays", "b": "committed"}
    assert [h.base_offset for h in headers(log) if h.is_control] == [3, 5], "readers may be inside the transaction"
    assert [entry.producer_id for entry in log.segments[0].transactions()] == [7]
    append(log, ("c", "1"))
    roll(log)
    clean(log, 20_000, cleaner)
    markers = [h for h in headers(log) if h.is_control]
    assert [(h.base_offset, h.delete_horizon_ms) for h in markers] == [(3, 20_000 + DAY), (5, None)]
    assert log.segments[0].transactions() == []
    append(log, ("d", "1"))
    roll(log)
    clean(log, 20_000 + DAY, cleaner)
    assert [h.base_offset for h in headers(log) if h.is_control] == [5]


def headers(log: UnifiedLog) -> list[BatchHeader]:
    return list(iter_headers(batches(log)))


def test_the_last_batch_of_an_active_producer_leaves_its_header_and_sequence(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, ("a", "1"), ("b", "1"), producer_id=7, producer_epoch=2, base_sequence=10)
    append(log, ("a", "2"), ("b", "2"))
    roll(log)
    clean(log)
    first, second = headers(log)
    assert (first.records_count, first.last_offset, first.last_sequence, first.producer_epoch) == (0, 1, 11, 2)
    assert second.records_count == 2
    reloaded = load_log(log.fs, LoadRequest(log.dir, PARTITION, COMPACT, clean=False), 0)
    assert append(reloaded, ("c", "1"), producer_id=7, producer_epoch=2, base_sequence=12) == 4


def test_the_last_batch_of_a_round_leaves_its_header_so_that_the_end_is_not_lost(tmp_path: Path) -> None:
    log = new_log(tmp_path, replace(COMPACT, delete_retention_ms=0))
    cleaner = LogCleaner(log.fs)
    append(log, ("a", "1"))
    append(log, ("a", None))
    roll(log)
    clean(log, 2000, cleaner)
    append(log, ("b", "1"))
    append(log, ("b", None))
    roll(log)
    clean(log, 3000, cleaner)
    append(log, ("c", None))
    roll(log)
    clean(log, 4000, cleaner)
    last = headers(log)[-1]
    assert last.next_offset == log.log_end_offset


def test_small_segments_are_merged_up_to_segment_bytes(tmp_path: Path) -> None:
    log = new_log(tmp_path, replace(COMPACT, segment_bytes=1000))
    for i in range(20):
        append(log, (f"k{i}", "v" * 20))
        roll(log)
    size = log.segments[0].size
    clean(log)
    per_group = 1000 // size
    assert [s.base_offset for s in log.segments[:-1]] == list(range(0, 20, per_group))
    assert all(s.size <= 1000 for s in log.segments)
    assert len(records(log)) == 20


def test_a_map_that_is_too_small_cleans_a_part_and_the_next_round_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidelog.storage.cleaner_filter.SMALLEST_LIMIT", 3)
    log = new_log(tmp_path)
    cleaner = LogCleaner(log.fs, dedupe_buffer_bytes=1)
    for key in "abcabcdefdef":
        append(log, (key, "v"))
    roll(log)
    clean(log, 2000, cleaner)
    assert cleaner.clean_offsets[str(tmp_path)] == {PARTITION: 6}
    assert [r.offset for r in records(log)] == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    clean(log, 2000, cleaner)
    assert [r.offset for r in records(log)] == [3, 4, 5, 9, 10, 11]
    assert cleaner.clean_offsets[str(tmp_path)] == {PARTITION: 12}


def test_a_map_that_holds_not_even_one_batch_says_which_setting_to_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.storage.cleaner_filter.SMALLEST_LIMIT", 1)
    log = new_log(tmp_path)
    cleaner = LogCleaner(log.fs, dedupe_buffer_bytes=1)
    append(log, ("a", "1"), ("b", "1"))
    roll(log)
    clean(log, 2000, cleaner)
    assert "log.cleaner.dedupe.buffer.size" in cleaner.uncleanable[PARTITION]
    assert cleaner.begin([log], 2000) is None
    assert len(records(log)) == 2


def test_the_filthiest_log_goes_first_if_it_is_dirty_enough(tmp_path: Path) -> None:
    config = replace(COMPACT, min_cleanable_dirty_ratio=0.5)
    cleaner = LogCleaner(DiskFileSystem())
    log = new_log(tmp_path, config)
    other = create_log(DiskFileSystem(), f"{tmp_path}/u-0", TopicPartition("u", 0), None, config, 0)
    for one in (log, other):
        append(one, ("a", "x" * 100))
        roll(one)
    run_of = cleaner.begin([log], 0)
    assert run_of is not None and run_of.range.dirty_ratio == 1.0
    assert cleaner.begin([log], 0) is None, "a log is cleaned by one at a time"
    run(run_of)
    append(log, ("b", "x"))
    roll(log)
    assert cleaner.begin([log], 0) is None, "less than half of it is dirty"
    assert 0.0 < cleaner.dirtiest_ratio < 0.5
    chosen = cleaner.begin([log, other], 0)
    assert chosen is not None and chosen.log is other


def test_logs_that_are_not_compacted_are_left_alone(tmp_path: Path) -> None:
    log = new_log(tmp_path, replace(COMPACT, cleanup_policy=frozenset({"delete"})))
    append(log, ("a", "1"))
    roll(log)
    assert LogCleaner(log.fs).begin([log], 0) is None


def test_records_older_than_max_compaction_lag_are_cleaned_whatever_the_ratio(tmp_path: Path) -> None:
    config = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    log = new_log(tmp_path, config)
    append(log, ("a", "1"), now_ms=1000)
    roll(log)
    assert LogCleaner(log.fs).begin([log], 6000) is None
    assert LogCleaner(log.fs).begin([log], 6001) is not None


def test_a_checkpoint_outside_the_log_starts_again_at_the_log_start(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(3):
        append(log, ("a", "1"))
        roll(log)
    for wrong in (99, -5):
        found = cleanable_range(log, wrong, 0)
        assert (found.first_dirty_offset, found.checkpoint_is_wrong) == (0, True)
    log.delete_records_before(2)
    assert cleanable_range(log, 1, 0).first_dirty_offset == 2


def test_the_checkpoint_survives_a_restart_and_forgets_what_is_gone(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, ("a", "1"))
    roll(log)
    clean(log)
    assert read_offsets(log.fs, f"{tmp_path}/{CLEANER_OFFSETS}") == {PARTITION: 1}
    cleaner = LogCleaner(log.fs)
    cleaner.load([str(tmp_path)])
    assert cleaner.begin([log], 0) is None
    gone = TopicPartition("gone", 3)
    cleaner.clean_offsets[str(tmp_path)][gone] = 5
    cleaner.begin([log], 0)
    assert gone not in cleaner.clean_offsets[str(tmp_path)]


def test_a_checkpoint_that_cannot_be_read_costs_a_cleaning_from_the_start(tmp_path: Path) -> None:
    (tmp_path / CLEANER_OFFSETS).write_text("7\nnonsense")
    cleaner = LogCleaner(DiskFileSystem())
    cleaner.load([str(tmp_path)])
    assert cleaner.clean_offsets == {str(tmp_path): {}}


def test_truncation_moves_the_checkpoint_back_and_ends_a_cleaning(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    cleaner = LogCleaner(log.fs)
    append(log, ("a", "1"))
    append(log, ("a", "2"))
    roll(log)
    clean(log, cleaner=cleaner)
    append(log, ("a", "3"))
    roll(log)
    cleaning = cleaner.begin([log], 0)
    assert cleaning is not None
    cleaner.truncated(log, 1)
    assert cleaner.clean_offsets[str(tmp_path)][PARTITION] == 1
    before = batches(log)
    run(cleaning)
    assert batches(log) == before
    assert PARTITION not in cleaner.cleanings


@pytest.mark.parametrize("steps", range(1, 6))
def test_a_cleaning_cancelled_at_any_step_leaves_a_whole_log_and_no_rubbish(tmp_path: Path, steps: int) -> None:
    log = new_log(tmp_path)
    cleaner = LogCleaner(log.fs)
    append(log, ("a", "1"), ("b", "1"))
    roll(log)
    append(log, ("a", "2"))
    roll(log)
    cleaning = cleaner.begin([log], 0)
    assert cleaning is not None
    for step in range(steps):
        assert cleaning.job is not None, step
        cleaning.job.run()
        if step == steps - 1:
            cleaner.cancel(PARTITION)
        cleaning.advance(0)
    run(cleaning)
    log.check()
    assert values(log) == {"a": "2", "b": "1"}
    assert not [name for name in names(log) if name.endswith((".cleaned", ".swap", ".deleted"))]


def test_an_interrupted_cleaning_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    def stop(_bytes_read: int) -> None:
        raise CleaningInterrupted

    log = new_log(tmp_path)
    append(log, ("a", "x" * 20_000), ("a", "y" * 20_000))
    roll(log)
    cleaner = LogCleaner(log.fs)
    for jobs_before in (0, 1):
        cleaning = cleaner.begin([log], 0)
        assert cleaning is not None and cleaning.job is not None
        for _ in range(jobs_before):
            cleaning.job.run()
            cleaning.advance(0)
        cleaning.job.run(stop)
        cleaning.advance(0)
        assert cleaning.job is None and not cleaner.cleanings
        assert len(records(log)) == 2
        assert not [name for name in names(log) if name.endswith((".cleaned", ".swap"))]


def test_retention_that_takes_a_segment_meanwhile_ends_the_cleaning(tmp_path: Path) -> None:
    log = new_log(tmp_path, replace(COMPACT, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10_000))
    append(log, ("a", "1"), now_ms=1000)
    roll(log)
    append(log, ("a", "2"), now_ms=20_000)
    roll(log)
    cleaner = LogCleaner(log.fs)
    cleaning = cleaner.begin([log], 20_000)
    assert cleaning is not None and cleaning.job is not None
    cleaning.job.run()
    cleaning.advance(20_000)
    assert len(log.retention_step(20_000).segments) == 1
    run(cleaning)
    assert values(log) == {"a": "2"}
    assert not [name for name in names(log) if name.endswith((".cleaned", ".swap"))]


def test_damaged_records_are_left_as_they_are_and_somebody_is_told(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, ("a", "1"), ("b", "1"))
    append(log, ("a", "2"))
    roll(log)
    segment = log.segments[0]
    segment.file.write(segment.size - 3, b"\xff")
    before = batches(log)
    cleaner = LogCleaner(log.fs)
    clean(log, cleaner=cleaner)
    assert PARTITION in cleaner.uncleanable
    assert batches(log) == before
    assert not [name for name in names(log) if name.endswith((".cleaned", ".swap"))]


def test_a_log_whose_damage_was_replaced_is_cleaned_again(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, ("a", "1"), ("b", "1"))
    append(log, ("a", "2"))
    roll(log)
    segment = log.segments[0]
    right = segment.file.read(segment.size - 3, 1)
    segment.file.write(segment.size - 3, b"\xff")
    cleaner = LogCleaner(log.fs)
    clean(log, cleaner=cleaner)
    segment.file.write(segment.size - 3, right)
    assert cleaner.begin([log], 2000) is None
    cleaner.mended(log)
    clean(log, cleaner=cleaner)
    assert not cleaner.uncleanable and values(log) == {"a": "2", "b": "1"}


def test_statistics_say_what_was_read_and_kept(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for i in range(10):
        append(log, ("a", str(i)))
    roll(log)
    size = log.segments[0].size
    stats = clean(log).stats
    assert (stats.map_bytes_read, stats.bytes_read, stats.bytes_written) == (size, size, log.segments[0].size)
    assert (stats.map_records_read, stats.records_read, stats.records_kept, stats.map_keys) == (10, 10, 1, 1)


class PowerLoss(BaseException):
    """Not an OSError: nothing may catch it."""


class FragileFile:
    """A file of FragileFileSystem."""

    def __init__(self, fs: FragileFileSystem, file: File) -> None:
        self.fs = fs
        self.file = file

    @property
    def path(self) -> str:
        return self.file.path

    def size(self) -> int:
        return self.file.size()

    def read(self, position: int, length: int) -> bytes:
        return self.file.read(position, length)

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        self.fs.step()
        return self.file.write(position, data)

    def truncate(self, length: int) -> None:
        self.fs.step()
        self.file.truncate(length)

    def sync(self) -> None:
        self.fs.step()
        self.file.sync()

    def close(self) -> None:
        self.file.close()

    def fileno(self) -> int:
        return self.file.fileno()


class FragileFileSystem:
    """A real disk that fails, in one way or another, at the n-th change."""

    def __init__(self) -> None:
        self.disk = DiskFileSystem()
        self.steps_left = 1 << 30
        self.failure: type[BaseException] = PowerLoss

    def step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise self.failure(5, "Input/output error")

    def open(self, path: str, *, create: bool = False, write: bool = True) -> FragileFile:
        if create:
            self.step()
        return FragileFile(self, self.disk.open(path, create=create, write=write))

    def exists(self, path: str) -> bool:
        return self.disk.exists(path)

    def stat(self, path: str) -> FileStat:
        return self.disk.stat(path)

    def listdir(self, path: str) -> list[str]:
        return self.disk.listdir(path)

    def make_dirs(self, path: str) -> None:
        self.step()
        self.disk.make_dirs(path)

    def rename(self, source: str, target: str) -> None:
        self.step()
        self.disk.rename(source, target)

    def remove(self, path: str) -> None:
        self.step()
        self.disk.remove(path)

    def remove_tree(self, path: str) -> None:
        self.step()
        self.disk.remove_tree(path)

    def sync_dir(self, path: str) -> None:
        self.step()
        self.disk.sync_dir(path)

    def set_mode(self, path: str, mode: int) -> None:
        self.disk.set_mode(path, mode)

    def lock(self, path: str) -> Lock:
        return self.disk.lock(path)

    def boot_id(self) -> str:
        return self.disk.boot_id()

    def usage(self, path: str) -> tuple[int, int]:
        return self.disk.usage(path)


def log_to_clean(root: Path) -> tuple[FragileFileSystem, UnifiedLog]:
    """Two groups of two segments, tombstones and an aborted transaction."""
    fs = FragileFileSystem()
    log = new_log(root, replace(COMPACT, segment_bytes=420), fs)
    append(log, ("a", "1"), ("b", "1"))
    append(log, ("x", "aborted"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 7, commit=False)
    roll(log)
    append(log, ("a", "2"), ("c", "1"))
    roll(log)
    append(log, ("b", None), ("d", "1"))
    append(log, ("d", "2"))
    roll(log)
    append(log, ("e", "1"))
    roll(log)
    append(log, ("f", "active"))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return fs, log


def committed(log: UnifiedLog) -> dict[str, str | None]:
    """What a reader of committed data ends up with, tombstones applied."""
    aborted = [(a.producer_id, a.first_offset, a.last_offset) for s in log.segments for a in s.transactions()]
    found: dict[str, str | None] = {}
    data = batches(log)
    for header in iter_headers(data):
        if header.is_control or any(p == header.producer_id and f <= header.base_offset <= e for p, f, e in aborted):
            continue
        for record in iter_records(data, header):
            found[(record.key or b"").decode()] = record.value and record.value.decode()  # type: ignore[assignment]
    return {key: value for key, value in found.items() if value is not None}


def steps_of_a_cleaning(root: Path) -> int:
    fs, log = log_to_clean(root)
    before = fs.steps_left
    clean(log)
    assert len(log.segments) == 3, [segment.base_offset for segment in log.segments]
    return before - fs.steps_left


def test_power_loss_at_every_step_leaves_every_committed_record(tmp_path: Path) -> None:
    steps = steps_of_a_cleaning(tmp_path / "count")
    assert steps > 60
    wanted = {"a": "2", "c": "1", "d": "2", "e": "1", "f": "active"}
    for step in range(steps + 1):
        fs, log = log_to_clean(tmp_path / str(step))
        end = log.log_end_offset
        assert committed(log) == wanted
        cleaning = LogCleaner(fs).begin([log], 2000)
        assert cleaning is not None
        fs.steps_left = step
        try:
            run(cleaning)
        except PowerLoss:
            pass
        else:
            assert step == steps
        request = LoadRequest(log.dir, PARTITION, log.config, clean=False, recovery_point=log.recovery_point, high_watermark=end)
        loaded = load_log(DiskFileSystem(), request, 0)
        loaded.check()
        assert committed(loaded) == wanted, f"after step {step}"
        assert loaded.log_end_offset == end
        offsets = [header.base_offset for header in iter_headers(batches(loaded))]
        assert offsets == sorted(set(offsets)), f"offsets twice after step {step}"
        rubbish = [name for name in names(loaded) if name.endswith((".cleaned", ".swap", ".deleted"))]
        assert not rubbish, f"after step {step}"
        for segment in loaded.segments[:-1]:
            for relative, position in zip(segment.offset_index().relative_offsets, segment.offset_index().positions, strict=True):
                span = segment.span_at(position)
                assert span is not None and span.last_offset == segment.base_offset + relative


def test_a_failing_disk_takes_the_log_out_of_service_at_every_step(tmp_path: Path) -> None:
    fs, log = log_to_clean(tmp_path / "count")
    counted = LogCleaner(fs).begin([log], 2000)
    assert counted is not None
    before = fs.steps_left
    run_jobs(counted)
    steps = before - fs.steps_left
    for step in range(0, steps, 3):
        fs, log = log_to_clean(tmp_path / str(step))
        fs.failure = OSError
        cleaner = LogCleaner(fs)
        cleaning = cleaner.begin([log], 2000)
        assert cleaning is not None
        fs.steps_left = step
        with pytest.raises(StorageFailure):
            run_jobs(cleaning)
        assert log.failure is not None
        assert PARTITION not in cleaner.cleanings
        fs.steps_left = 1 << 30
        assert cleaner.begin([log], 2000) is None


@pytest.mark.parametrize("seed", range(8))
def test_many_rounds_keep_what_a_reader_would_have_seen(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    log = new_log(tmp_path, replace(COMPACT, segment_bytes=2000, delete_retention_ms=50))
    cleaner = LogCleaner(log.fs)
    wanted: dict[str, str] = {}
    now_ms = 1000
    for _ in range(6):
        for _ in range(rng.randrange(1, 30)):
            now_ms += rng.randrange(10)
            batch = [
                (f"k{rng.randrange(12)}", None if rng.random() < 0.2 else str(rng.random())) for _ in range(rng.randrange(1, 5))
            ]
            append(log, *batch, now_ms=now_ms, codec=rng.randrange(5))
            for key, value in batch:
                wanted.pop(key, None)
                if value is not None:
                    wanted[key] = value
        roll(log)
        cleaning = cleaner.begin([log], now_ms)
        if cleaning is not None:
            run(cleaning, now_ms)
        log.check()
        assert committed(log) == wanted
        assert log.log_end_offset == log.high_watermark
    left = [record.key for record in records(log)]
    assert len(left) <= 12


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("case", ["21", "22"])
def test_the_result_is_byte_for_byte_that_of_kafkas_cleaner(tmp_path: Path, case: str, rounds: int) -> None:
    source = (GOLDEN / f"{case}.source.log").read_bytes()
    bases = [int(base) for base in (GOLDEN / f"{case}.segments.txt").read_text().split()]
    directory = tmp_path / "t-0"
    directory.mkdir()
    parts: dict[int, bytearray] = {base: bytearray() for base in bases}
    for header in iter_headers(source):
        home = max(base for base in bases if base <= header.base_offset)
        parts[home] += source[header.position : header.end_position]
    for base, part in parts.items():
        (directory / f"{base:020d}.log").write_bytes(part)
    config = replace(COMPACT, segment_bytes=4000, index_interval_bytes=300)
    end = bases[-1]
    request = LoadRequest(str(directory), PARTITION, config, clean=False, high_watermark=end)
    log = load_log(DiskFileSystem(), request, 1_700_000_500_000)
    log.flush()
    cleaner = LogCleaner(log.fs)
    for number in range(rounds):
        cleaner.clean_offsets = {}
        clean(log, 1_800_000_000_000 + number * DAY, cleaner)
    assert batches(log) == (GOLDEN / f"{case}.round{rounds}.log").read_bytes()
