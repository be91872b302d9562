"""Loading what a stop left: Kafka's own files, torn tails, half-done changes."""

import shutil
import zlib
from pathlib import Path

import pytest

from sim.workload import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    append,
    batch,
    end_transaction,
    load,
    new_log,
    offsets,
    read_offsets,
)
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import iter_headers
from tidelog.server.disk import DiskFileSystem
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.recovery import LoadRequest, load_log
from tidelog.testing.simulation.disk import SimDisk

GOLDEN = Path("tests/golden/log/tp0")
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


@pytest.mark.parametrize("clean", [True, False])
def test_a_partition_of_kafka_loads_and_is_left_byte_for_byte(tmp_path: Path, clean: bool) -> None:
    directory = tmp_path / "tp-0"
    shutil.copytree(GOLDEN, directory)
    log = load_log(DiskFileSystem(), LoadRequest(str(directory), TopicPartition("tp", 0), LogConfig(), clean), 1795254740000)
    log.check()
    assert (log.log_end_offset, log.active.max_timestamp) == (1759, 1795254737962)
    assert log.producers.entries[0].epoch == 1
    log.close()
    for file in GOLDEN.iterdir():
        assert (directory / file.name).read_bytes() == file.read_bytes(), file.name


def test_indexes_made_from_kafkas_log_alone_are_kafkas(tmp_path: Path) -> None:
    directory = tmp_path / "tp-0"
    directory.mkdir()
    for name in ("00000000000000000000.log", "partition.metadata"):
        shutil.copy(GOLDEN / name, directory / name)
    log = load_log(DiskFileSystem(), LoadRequest(str(directory), TopicPartition("tp", 0), LogConfig(), False), 1795254740000)
    log.close()
    for name in (
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000001759.snapshot",
        "leader-epoch-checkpoint",
    ):
        assert (directory / name).read_bytes() == (GOLDEN / name).read_bytes(), name


def written(disk: SimDisk, count: int = 8) -> None:
    log = new_log(disk, SMALL)
    for number in range(count):
        append(log, batch(2, value=bytes(150), producer=(7, 0, number * 2)), leader_epoch=number // 3)
    log.flush()


def last_log(disk: SimDisk) -> str:
    return f"{DIRECTORY}/" + [name for name in disk.listdir(DIRECTORY) if name.endswith(".log")][-1]


@pytest.mark.parametrize("damage", ["cut", "flipped", "zeroes", "garbage"])
def test_a_torn_tail_is_cut_at_the_first_bad_batch(damage: str) -> None:
    disk = SimDisk()
    written(disk)
    file = disk.open(last_log(disk))
    size = file.size()
    if damage == "cut":
        file.truncate(size - 3)
    elif damage == "flipped":
        file.write(size - 3, bytes([file.read(size - 3, 1)[0] ^ 0xFF]))
    elif damage == "zeroes":
        file.write(size, bytes(5000))
    else:
        file.write(size, bytes(range(256)) * 3)
    log = load(disk, SMALL)
    log.check()
    kept = 7 if damage in {"cut", "flipped"} else 8
    assert offsets(log) == [(n * 2, n * 2 + 1) for n in range(kept)]
    assert log.producers.entries[7].last_sequence == kept * 2 - 1


def test_segments_after_a_bad_batch_go() -> None:
    disk = SimDisk()
    written(disk)
    disk.open(f"{DIRECTORY}/00000000000000000000.log").write(100, b"\xff\xff\xff")
    log = load(disk, SMALL)
    assert (offsets(log), log.log_end_offset) == ([], 0)
    assert [name for name in disk.listdir(DIRECTORY) if name.endswith(".log")] == ["00000000000000000000.log"]


def test_segments_below_the_recovery_point_are_believed() -> None:
    disk = SimDisk()
    written(disk)
    disk.fail("read", 1, 5, path_part="00000000000000000000.log", times=100)
    log = load(disk, SMALL, recovery_point=15)
    assert log.log_end_offset == 16
    assert log.segments[0].sealed
    assert not log.segments[-1].sealed


def test_a_batch_of_an_older_epoch_after_a_newer_one_is_cut() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(2), leader_epoch=5)
    stale = batch(2, base_offset=2, leader_epoch=4)
    log.active.file.write(log.active.size, stale)
    log.active.file.sync()
    assert offsets(load(disk)) == [(0, 1)]


def test_leader_epochs_come_back_from_the_batches() -> None:
    disk = SimDisk()
    written(disk)
    disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert load(disk, SMALL).leader_epochs.entries() == [(0, 0), (1, 6), (2, 12)]
    disk.open(f"{DIRECTORY}/leader-epoch-checkpoint", create=True).write(0, b"what?")
    assert load(disk, SMALL).leader_epochs.entries() == [(0, 0), (1, 6), (2, 12)]


def test_the_transaction_index_comes_back_from_the_log() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    append(log, batch(2, producer=(8, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    expected = log.active.transactions()
    log.flush()
    disk.remove(f"{DIRECTORY}/00000000000000000000.txnindex")
    again = load(disk)
    assert again.active.transactions() == expected
    assert again.producers.first_undecided_offset() == 2


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "the list is damaged"])
def test_batches_that_read_again_are_replayed(listed: bool) -> None:
    """A start could not read them, and sealed a transaction index without them; the next one can."""
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    append(log, batch(1, producer=(7, 0, 2), transactional=True))
    end_transaction(log, 7, commit=False)
    log.roll(NOW_MS)
    append(log, batch(1, producer=(8, 0, 0)))
    log.flush()
    expected = log.segments[0].transactions()
    path, at = log.segments[0].path(".log"), 70
    disk.flip(path, at, 1)
    disk = disk.kill()
    log = load(disk, survived=True)
    assert log.segments[0].rotten and log.segments[0].transactions() != expected
    append(log, batch(1, producer=(8, 0, 1)))
    log.close()
    disk.flip(path, at, 1)
    if not listed:
        disk.flip(f"{DIRECTORY}/tidelog-damaged", 2, 1)
    again = load(disk, clean=True, recovery_point=log.log_end_offset)
    assert not again.segments[0].rotten
    assert again.segments[0].transactions() == expected
    assert {each.producer_id: each.last_sequence for each in again.producers.entries.values()} == {7: 2, 8: 1}
    assert not disk.exists(f"{DIRECTORY}/tidelog-damaged")
    again.check()


def test_what_a_crash_left_half_way_is_tidied_up() -> None:
    disk = SimDisk()
    written(disk)
    for name in ("00000000000000000099.log.deleted", "00000000000000000050.log.cleaned", "leader-epoch-checkpoint.tmp"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    disk.open(f"{DIRECTORY}/00000000000000000098.index", create=True)
    load(disk, SMALL)
    names = disk.listdir(DIRECTORY)
    assert not [name for name in names if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert "00000000000000000098.index" not in names


def test_a_compacted_segment_that_was_complete_takes_its_place() -> None:
    disk = SimDisk()
    written(disk)
    before = offsets(load(disk, SMALL))
    swap = b"".join(bytes(batch(2, value=b"", base_offset=base)) for base, _ in before[:4])
    disk.open(f"{DIRECTORY}/00000000000000000000.log.swap", create=True).write(0, swap)
    log = load(disk, SMALL)
    assert offsets(log) == before
    assert log.segments[0].size == len(swap)


def test_a_swap_beside_unfinished_cleaning_does_not_count() -> None:
    disk = SimDisk()
    written(disk)
    before = offsets(load(disk, SMALL))
    disk.open(f"{DIRECTORY}/00000000000000000000.log.swap", create=True).write(0, bytes(batch(2)))
    disk.open(f"{DIRECTORY}/00000000000000000004.log.cleaned", create=True)
    log = load(disk, SMALL)
    assert offsets(log) == before
    assert log.segments[0].size > 200


def test_a_log_that_ends_before_its_checkpointed_start_is_emptied() -> None:
    disk = SimDisk()
    written(disk)
    log = load(disk, SMALL, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, offsets(log)) == (500, 500, [])
    log.check()
    kept = [name for name in disk.listdir(DIRECTORY) if ".log.0-" in name and name.endswith(".cut")]
    assert len(kept) == 4


def closed(disk: SimDisk) -> None:
    written(disk)
    load(disk, SMALL).close()


def test_a_cleanly_closed_log_that_does_not_read_to_its_end_keeps_its_end_and_serves_the_rest() -> None:
    disk = SimDisk()
    closed(disk)
    file = disk.open(last_log(disk))
    size = file.size() - 3
    file.truncate(size)
    log = load(disk, SMALL, clean=True, recovery_point=16)
    log.check()
    assert (log.log_end_offset, log.active.size, file.size()) == (16, size, size)
    assert read_offsets(log, 12) == [(12, 13)]
    assert reading.read(log, 14, 1 << 20, upto=16, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
    append(log, batch(1))
    assert read_offsets(log, 16) == [(16, 16)]


def test_a_cleanly_closed_log_whose_last_batch_is_gone_does_not_use_its_offsets_again() -> None:
    disk = SimDisk()
    closed(disk)
    file = disk.open(last_log(disk))
    file.truncate(file.size() // 2)
    log = load(disk, SMALL, clean=True, recovery_point=16)
    log.check()
    assert log.log_end_offset == 16
    assert reading.read(log, 15, 1 << 20, upto=16, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
    append(log, batch(1))
    assert read_offsets(log, 16) == [(16, 16)]


@pytest.mark.parametrize(("byte", "bit"), [(24, 4), (25, 0), (26, 1), (5, 3), (7, 5)])
def test_a_cleanly_closed_log_that_seems_to_end_too_late_keeps_its_end(byte: int, bit: int) -> None:
    disk = SimDisk()
    closed(disk)
    file = disk.open(last_log(disk))
    last = [header.position for header in iter_headers(file.read(0, file.size()))][-1]
    disk.flip(last_log(disk), last + byte, bit)
    log = load(disk, SMALL, clean=True, recovery_point=16)
    log.check()
    assert (log.log_end_offset, [each.first_offset for each in log.active.rotten]) == (16, [14])


def test_a_recovery_point_that_no_snapshot_confirms_does_not_move_the_end_of_a_clean_log() -> None:
    disk = SimDisk()
    closed(disk)
    assert load(disk, SMALL, clean=True, recovery_point=1600).log_end_offset == 16


def test_a_log_start_past_the_end_of_a_cleanly_closed_log_is_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    closed(disk)
    log = load(disk, SMALL, clean=True, recovery_point=16, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset) == (0, 16)
    assert "the checkpoint is wrong" in caplog.text


def test_the_old_message_format_is_refused_not_cut() -> None:
    disk = SimDisk()
    written(disk, 1)
    body = b"\1\0" + bytes(8) + b"\0\0\0\1k" + b"\0\0\0\1v"
    message = zlib.crc32(body).to_bytes(4, "big") + body
    file = disk.open(last_log(disk))
    file.write(file.size(), (2).to_bytes(8, "big") + len(message).to_bytes(4, "big") + message)
    with pytest.raises(StorageFailure, match="format 1"):
        load(disk, SMALL)


def test_unreadable_partition_metadata_is_a_failure_that_names_the_file() -> None:
    disk = SimDisk()
    written(disk, 1)
    file = disk.open(f"{DIRECTORY}/partition.metadata")
    file.truncate(0)
    file.write(0, b"version: 7")
    with pytest.raises(StorageFailure, match=r"partition\.metadata"):
        load(disk, SMALL)


@pytest.mark.parametrize("size", [1, 12, 24, 42])
def test_partition_metadata_that_a_full_disk_cut_short_names_nobody_while_there_are_no_records(size: int) -> None:
    disk = SimDisk()
    new_log(disk)
    disk.open(f"{DIRECTORY}/partition.metadata").truncate(size)
    log = load(disk, clean=False)
    assert (log.topic_id, log.log_end_offset) == (None, 0)
    append(log, batch(1, value=bytes(200)))
    with pytest.raises(StorageFailure, match=r"partition\.metadata"):
        load(disk, clean=False)


def test_names_that_are_not_ours_do_not_matter() -> None:
    disk = SimDisk(network=True)
    written(disk)
    for name in (".nfs000000001", "notes.txt", "123.log", "0000000000000000000x.log"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    log = load(disk, SMALL)
    assert log.log_end_offset == 16
    assert (log.topic_id, log.topic_partition, log.recovery_point) == (TOPIC_ID, PARTITION, 0)


def test_the_high_watermark_is_clamped_to_the_log() -> None:
    disk = SimDisk()
    written(disk)
    assert load(disk, SMALL, high_watermark=10).high_watermark == 10
    assert load(disk, SMALL, high_watermark=1000).high_watermark == 16


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_transaction_index_comes_back_from_the_log(clean: bool) -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    log.roll(log.active.created_ms)
    append(log, batch())
    expected = log.segments[0].transactions()
    log.close()
    path = f"{DIRECTORY}/00000000000000000000.txnindex"
    disk.open(path).truncate(20)
    again = load(disk, clean=clean, recovery_point=4)
    assert again.segments[0].transactions() == expected
    again.close()
    assert disk.stat(path).size == 34
