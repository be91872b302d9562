import os
from pathlib import Path

import pytest

from tests.unit.raft.written import CHANGE, NO_OP, SEGMENT, append, flip, flip_in_batch, flush, headers
from tidelog.metadata.records import MetadataLogError, decode_record
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.raft.log_changes import log_shape
from tidelog.raft.log_opening import open_log
from tidelog.raft.log_shape import Fit, LogEnd
from tidelog.raft.mark_files import read_flushed
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.snapshots import SnapshotId, encode_snapshot, write_snapshot
from tidelog.server.disk import DiskFileSystem

FS = DiskFileSystem()


def opened(path: Path, config: MetadataLogConfig | None = None) -> MetadataLog:
    return open_log(FS, str(path), config or MetadataLogConfig(), 1000)


def snapshot(log: MetadataLog, offset: int, epoch: int = 1) -> None:
    snapshot_id = SnapshotId(offset, epoch)
    batches = encode_snapshot((), metadata_version=30, epoch=epoch, now_ms=1000, last_timestamp_ms=900)
    write_snapshot(FS, log.dir, snapshot_id, batches)
    log.snapshot_written(snapshot_id)


def test_a_new_log_is_an_ordinary_partition_with_the_reserved_topic_id(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert (log.end_offset, log.last_epoch, log.newest_snapshot) == (0, 0, None)
    metadata = tmp_path / "__cluster_metadata-0" / "partition.metadata"
    assert metadata.read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_what_was_appended_is_read_back_batch_by_batch_after_a_restart(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert log.append_control([CHANGE], 1, 5000) == 0
    assert log.append_values([NO_OP, NO_OP, NO_OP], 1, 6000) == 3
    assert log.append_control([CHANGE], 2, 7000) == 4
    assert flush(log) == 5
    log.close()
    again = opened(tmp_path)
    assert (again.end_offset, again.last_epoch) == (5, 2)
    batches = list(again.batches_from(0))
    assert [(h.base_offset, h.last_offset, h.leader_epoch, h.is_control, h.max_timestamp) for h, _ in batches] == [
        (0, 0, 1, True, 5000),
        (1, 3, 1, False, 6000),
        (4, 4, 2, True, 7000),
    ]
    assert [decode_record(record.value).NAME for record in batches[1][1]] == ["NoOpRecord"] * 3
    assert [header.base_offset for header, _ in again.batches_from(2)] == [1, 4]
    assert list(again.batches_from(5)) == []


def test_a_torn_tail_is_cut_at_the_next_start(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1)
    flush(log)
    log.note_opened()
    append(log, 1)
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-3])
    again = opened(tmp_path)
    assert (again.end_offset, again.damaged) == (2, None)


def three_batches(path: Path) -> Path:
    """A log of three batches, closed; its file."""
    log = opened(path)
    append(log, 1, 1, 1)
    flush(log)
    log.close()
    return path / "__cluster_metadata-0" / SEGMENT


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("at", [7, 11, 30, 70])
def test_rot_in_a_closed_log_is_told_from_a_torn_tail_and_left_as_it_is(tmp_path: Path, number: int, at: int) -> None:
    file = three_batches(tmp_path)
    batch = headers(file)[number]
    damaged = flip(file, batch.position + at)
    again = opened(tmp_path)
    assert again.damaged is not None
    assert again.damaged.rotten == (batch.position, batch.position + batch.size, number * 2, number * 2 + 2)
    assert (again.end_offset, file.read_bytes()) == (6, damaged)
    assert [header.base_offset for header, _ in again.batches_from(0)] == [0, 2, 4][:number]


def test_while_the_kernel_lives_a_bad_batch_before_a_good_one_is_rot_whatever_was_noted(tmp_path: Path) -> None:
    file = three_batches(tmp_path)
    (tmp_path / "__cluster_metadata-0" / "tidelog-flushed").unlink()
    flip_in_batch(file, 1, 30)
    assert opened(tmp_path).damaged is not None
    (tmp_path / "__cluster_metadata-0" / ".tidelog_boot").write_text("another boot")
    assert (opened(tmp_path).damaged, opened(tmp_path).end_offset) == (None, 2)


def test_rot_below_the_newest_snapshot_is_not_needed(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1)
    flush(log)
    snapshot(log, 2)
    log.close()
    flip(tmp_path / "__cluster_metadata-0" / "00000000000000000000.log", 30)
    again = opened(tmp_path)
    assert (again.damaged, again.log.log_start_offset, again.end_offset) == (None, 2, 4)
    assert [header.base_offset for header, _ in again.batches_from(2)] == [2]


def test_what_is_noted_as_flushed_is_lowered_before_a_cut(tmp_path: Path) -> None:
    three_batches(tmp_path)
    log = opened(tmp_path)
    assert read_flushed(FS, log.dir) == LogEnd(1, 6)
    log.about_to_cut(8)
    assert read_flushed(FS, log.dir) == LogEnd(1, 6)
    log.about_to_cut(4)
    assert read_flushed(FS, log.dir) == LogEnd(1, 4)


def test_a_batch_that_was_damaged_after_the_start_is_not_applied(tmp_path: Path) -> None:
    file = three_batches(tmp_path)
    log = opened(tmp_path)
    flip_in_batch(file, 1, 70)
    with pytest.raises(MetadataLogError, match="the batch at offset 2 has a wrong checksum"):
        list(log.batches_from(0))


def test_a_snapshot_past_the_end_of_the_log_starts_it_again_behind_the_snapshot(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_values([NO_OP], 1, 1)
    flush(log)
    snapshot(log, 10, epoch=3)
    log.close()
    again = opened(tmp_path)
    assert (again.end_offset, again.last_epoch) == (10, 3)
    assert again.append_values([NO_OP], 4, 1) == 10


def test_a_log_whose_first_snapshot_was_dropped_begins_at_the_next_one_also_after_a_restart(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.log.truncate_fully_and_start_at(5, 1)
    log.append_values([NO_OP] * 4, 1, 1)
    flush(log)
    snapshot(log, 7)
    log.close()
    again = opened(tmp_path)
    assert (again.log.log_start_offset, again.end_offset) == (7, 9)


def test_a_log_that_was_cleaned_within_its_first_segment_begins_at_its_snapshot_also_after_a_restart(tmp_path: Path) -> None:
    """Else a replica with records of epoch 2 that were never committed would continue with the records that follow."""
    log = opened(tmp_path, MetadataLogConfig(retention_ms=0))
    for epoch in (1, 2, 3):
        log.append_values([NO_OP] * 4, epoch, 1)
    flush(log)
    for offset in (6, 9):
        snapshot(log, offset, epoch=(2, 3)[offset > 8])
    log.log.update_high_watermark(12)
    assert len(log.clean(1 << 50)) == 1
    flush(log)
    shape = log_shape(log)
    assert (shape.start_offset, shape.fitness(8, 1).fit) == (9, Fit.SNAPSHOT)
    log.close()
    again = log_shape(opened(tmp_path))
    assert (again.start_offset, again.fitness(8, 1).fit, again.fitness(8, 2).fit) == (9, Fit.SNAPSHOT, Fit.SNAPSHOT)


def test_a_log_that_begins_after_what_is_needed_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    log.append_values([NO_OP] * 5, 1, 1)
    log.log.truncate_fully_and_start_at(5, 1)
    log.append_values([NO_OP], 1, 1)
    with pytest.raises(MetadataLogError, match=r"begins at offset 5.*offset 0 is gone"):
        list(log.batches_from(0))


def fill(log: MetadataLog, batches: int) -> None:
    for _ in range(batches):
        log.append_values([NO_OP], 1, 1000)
        log.log.roll(1000)
    log.committed(flush(log))


def test_old_snapshots_and_the_log_below_go_by_size_and_the_newest_stays(tmp_path: Path) -> None:
    log = opened(tmp_path, MetadataLogConfig(retention_bytes=400, retention_ms=-1))
    fill(log, 6)
    for offset in (2, 4, 6):
        snapshot(log, offset)
    removed = log.clean(2000)
    assert len(removed) == 2
    assert "metadata.max.retention.bytes is 400" in removed[0]
    assert log.snapshots == [SnapshotId(6, 1)]
    assert log.log.log_start_offset == 6
    assert sorted(name for name in os.listdir(log.dir) if name.endswith((".log", ".checkpoint"))) == [
        "00000000000000000006-0000000001.checkpoint",
        "00000000000000000006.log",
    ]


def test_old_snapshots_go_by_age_and_the_bootstrap_checkpoint_stays(tmp_path: Path) -> None:
    log = opened(tmp_path, MetadataLogConfig(retention_bytes=-1, retention_ms=60_000))
    fill(log, 4)
    snapshot(log, 0, epoch=0)
    snapshot(log, 2)
    snapshot(log, 4)
    now = int(os.stat(tmp_path / "__cluster_metadata-0" / SnapshotId(2, 1).file_name).st_mtime * 1000)
    assert log.clean(now + 50_000) == []
    assert len(log.clean(now + 120_000)) == 1
    assert log.snapshots == [SnapshotId(0, 0), SnapshotId(4, 1)]
    assert log.newest_snapshot == SnapshotId(4, 1)
    assert log.log.log_start_offset == 4
    assert opened(tmp_path).snapshots == [SnapshotId(0, 0), SnapshotId(4, 1)]


def test_the_bootstrap_checkpoint_is_no_snapshot_to_start_from(tmp_path: Path) -> None:
    log = opened(tmp_path)
    snapshot(log, 0, epoch=0)
    assert log.newest_snapshot is None


def test_segments_have_to_hold_the_largest_batch(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"metadata\.log\.segment\.bytes is 1000, but must be at least 8388608"):
        opened(tmp_path, MetadataLogConfig(segment_bytes=1000))


def test_a_directory_that_cannot_be_made_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").write_bytes(b"a file")
    with pytest.raises(StorageFailure, match="metadata log cannot be opened"):
        opened(tmp_path)
