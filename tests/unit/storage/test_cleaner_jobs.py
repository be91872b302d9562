"""The jobs of a compaction: grouping, pace, errors kept for the loop. What they make is judged in test_cleaner.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.server.disk import DiskFileSystem
from tidelog.storage.cleaner_filter import OffsetMap, TransactionFilter
from tidelog.storage.cleaner_jobs import (
    MAX_OFFSET_SPAN,
    CheckpointJob,
    CleaningInterrupted,
    MapJob,
    RewriteJob,
    Source,
    SyncJob,
    aborted_between,
    group_sources,
    source_of,
)
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.unified_log import UnifiedLog


def source(base: int, end: int, size: int) -> Source:
    nothing: Any = None
    return Source(nothing, nothing, base, end, size)


def bases(
    sources: list[Source], segment_bytes: int = 100, index_bytes: int = 80, sizes: dict[int, tuple[int, int]] | None = None
) -> list[list[int]]:
    groups = group_sources(sources, segment_bytes, index_bytes, lambda found: (sizes or {}).get(found.base_offset, (0, 0)))
    return [[found.base_offset for found in group] for group in groups]


def test_groups_fill_one_segment_each() -> None:
    sources = [source(i, i + 1, size) for i, size in enumerate([40, 60, 1, 99, 1, 120, 5])]
    assert bases(sources) == [[0, 1], [2, 3], [4], [5], [6]]


def test_groups_fit_the_indexes() -> None:
    sources = [source(i, i + 1, 1) for i in range(4)]
    assert bases(sources, sizes={0: (40, 0), 1: (40, 0), 2: (8, 0), 3: (8, 0)}) == [[0, 1], [2, 3]]
    assert bases(sources, sizes={0: (0, 60), 1: (0, 24), 2: (0, 12), 3: (0, 48)}) == [[0], [1, 2], [3]]


def test_groups_span_no_more_offsets_than_an_index_can_say() -> None:
    far = MAX_OFFSET_SPAN + 1
    assert bases([source(0, 5, 1), source(5, far, 1), source(far, far + 1, 1)]) == [[0, 5], [far]]
    assert bases([source(0, 5, 1), source(5, far + 9, 1)]) == [[0], [5]]
    assert bases([source(0, 5, 1), source(5, far + 9, 0)]) == [[0, 5]], "an empty segment has no offsets to say"


def test_aborted_transactions_are_looked_for_until_all_is_decided() -> None:
    early = AbortedTransaction(1, 0, 4, 4)
    over = AbortedTransaction(2, 3, 12, 5)
    late = AbortedTransaction(3, 30, 31, 32)
    segments: Any = [SimpleNamespace(transactions=lambda found=found: found) for found in ([early], [over], [late], [late])]
    assert aborted_between(segments, 5, 10) == [over]
    assert aborted_between(segments, 0, 3) == [early]
    assert aborted_between(segments, 31, 40) == [late, late]


@pytest.fixture
def log(tmp_path: Path) -> UnifiedLog:
    """One closed segment of 100 batches, and an empty one."""
    made = create_log(DiskFileSystem(), f"{tmp_path}/t-0", TopicPartition("t", 0), None, LogConfig(), 0)
    for i in range(100):
        made.append_as_leader(build_batch([RecordData(b"%d" % (i % 10), bytes(2000), 1000)]), 0, 1000)
    made.roll(0)
    made.flush()
    return made


def map_job(log: UnifiedLog) -> MapJob:
    limits = {"segment_bytes": 1 << 20, "segment_index_bytes": 1 << 20}
    return MapJob(log.fs, log.segments, [source_of(log.segments[0])], OffsetMap(99), start=0, upper_bound=100, **limits)


def rewrite_job(log: UnifiedLog) -> RewriteJob:
    return RewriteJob(
        log.fs,
        log.dir,
        log.segments,
        [source_of(log.segments[0])],
        map_job(log).offsets,
        TransactionFilter(),
        {},
        upper_bound=100,
        now_ms=0,
        delete_retention_ms=0,
        index_interval_bytes=4096,
    )


def test_jobs_breathe_in_steps_of_the_bytes_they_read(log: UnifiedLog) -> None:
    for job in (map_job(log), rewrite_job(log)):
        breaths: list[int] = []
        job.run(breaths.append)
        assert job.error is None and job.corrupt is None
        assert len(breaths) == 12
        assert all(16 * 1024 <= breath < 19 * 1024 for breath in breaths)
        assert job.bytes_read == log.segments[0].size


def test_a_job_that_may_not_go_on_ends_at_its_next_breath(log: UnifiedLog) -> None:
    def stop(_bytes_read: int) -> None:
        raise CleaningInterrupted

    for job in (map_job(log), rewrite_job(log)):
        job.run(stop)
        assert job.interrupted and job.error is None and job.corrupt is None


def test_a_rewritten_segment_waits_beside_the_log_under_another_name(log: UnifiedLog) -> None:
    before = log.segments[0].file.read(0, log.segments[0].size)
    job = rewrite_job(log)
    job.run()
    names = [name for name in log.fs.listdir(log.dir) if name.endswith(".cleaned")]
    assert names == [f"{0:020d}{suffix}.cleaned" for suffix in (".index", ".log", ".timeindex")]
    assert log.segments[0].file.read(0, 1 << 30) == before
    assert job.cleaned.sealed and job.cleaned.next_offset == 100


def test_leftovers_of_an_earlier_cleaning_do_not_get_into_a_new_one(log: UnifiedLog) -> None:
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        file = log.fs.open(f"{log.dir}/{0:020d}{suffix}.cleaned", create=True)
        file.write(0, bytes(1 << 20))
    job = rewrite_job(log)
    job.run()
    assert log.fs.stat(f"{log.dir}/{0:020d}.log.cleaned").size == job.cleaned.size < 1 << 20
    assert log.fs.stat(f"{log.dir}/{0:020d}.index.cleaned").size < 1000
    assert not log.fs.exists(f"{log.dir}/{0:020d}.txnindex.cleaned")


@pytest.mark.parametrize(("byte", "bit"), [(7, 6), (6, 0), (14, 2)])
def test_batches_whose_offsets_or_epochs_do_not_fit_are_not_compacted(log: UnifiedLog, byte: int, bit: int) -> None:
    """The checksum does not cover them: a new segment would look healthy."""
    segment = log.segments[0]
    before = segment.file.read(byte, 1)[0]
    segment.file.write(byte, bytes([before ^ 1 << bit]))
    for job in (map_job(log), rewrite_job(log)):
        job.run()
        assert job.corrupt is not None


def test_a_log_with_a_rotten_range_is_not_compacted(log: UnifiedLog) -> None:
    log.segments[0].rotten = (RottenRange(0, 10, 0, 1),)
    for job in (map_job(log), rewrite_job(log)):
        job.run()
        assert job.corrupt is not None and "damaged at position 0" in job.corrupt


def test_damage_and_failing_disks_are_kept_for_the_loop(log: UnifiedLog) -> None:
    segment = log.segments[0]
    segment.file.write(16, b"\x09")
    job = map_job(log)
    job.run()
    assert job.error is None
    assert job.corrupt is not None and "position 0" in job.corrupt
    missing = SyncJob(log.fs, f"{log.dir}/not there")
    missing.run()
    assert isinstance(missing.error, FileNotFoundError)
    checkpoint = CheckpointJob(log.fs, f"{log.dir}/not there/checkpoint", b"")
    checkpoint.run()
    assert isinstance(checkpoint.error, FileNotFoundError)
