from pathlib import Path

import pytest

from tidelog.controller.committed_image import AppendedGroup, CommittedImage
from tidelog.controller.record_batches import encoded_batches
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError
from tidelog.protocol.messages.begin_transaction_record import BeginTransactionRecord
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.end_transaction_record import EndTransactionRecord
from tidelog.raft.log_opening import open_log
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.snapshots import Snapshot, SnapshotId
from tidelog.server.disk import DiskFileSystem

NOW = 1_800_000_000_000


def setting(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="num.partitions", value=value)


def log_of(directory: Path, *groups: list[object]) -> MetadataLog:
    log = open_log(DiskFileSystem(), str(directory), MetadataLogConfig(), NOW)
    for group in groups:
        for values in encoded_batches(group, 30, 1 << 20):  # type: ignore[arg-type]
            log.append_values(values, 1, NOW)
    return log


def value(committed: CommittedImage) -> str | None:
    return committed.image.cluster_configs.get("num.partitions")


def test_what_is_below_the_high_watermark_counts_and_nothing_else(tmp_path: Path) -> None:
    log = log_of(tmp_path, [setting("1")], [setting("2")])
    committed = CommittedImage(ClusterImage())
    committed.advance(log, 1)
    assert (value(committed), committed.next_offset, committed.image.offset) == ("1", 1, 0)
    committed.advance(log, 2)
    assert value(committed) == "2"
    assert committed.bytes_since_snapshot > 0


def test_a_transaction_counts_when_its_end_is_committed_and_what_came_before_it_at_once(tmp_path: Path) -> None:
    begin, end = BeginTransactionRecord(name="t"), EndTransactionRecord()
    log = log_of(tmp_path, [setting("1")], [begin, setting("2")], [end])
    committed = CommittedImage(ClusterImage())
    committed.advance(log, 3)
    assert committed.transaction_open and (value(committed), committed.image.offset) == ("1", 0)
    committed.advance(log, 4)
    assert not committed.transaction_open and (value(committed), committed.image.offset) == ("2", 3)


def test_what_the_leader_appended_comes_from_memory_and_listeners_hear_of_each_step(tmp_path: Path) -> None:
    log = log_of(tmp_path, [setting("1")], [setting("2")], [setting("3")])
    committed = CommittedImage(ClusterImage())
    heard: list[tuple[int, int, bool]] = []
    committed.listeners.append(lambda old, new, delta: heard.append((old.offset, new.offset, delta is None)))
    committed.advance(log, 1)
    # Not what the log says at that offset: so it was not read.
    committed.appended(AppendedGroup(1, 1, 1, NOW, 10, [setting("x")]))
    committed.advance(log, 2)
    assert value(committed) == "x"
    committed.appended(AppendedGroup(2, 3, 1, NOW, 10, [setting("y")]))
    committed.advance(log, 3)
    assert (value(committed), committed.next_offset) == ("x", 2), "half of a group"
    committed.forget_appended()
    committed.advance(log, 3)
    assert value(committed) == "3"
    committed.load(SnapshotId(50, 3), Snapshot(NOW, 1, None, (setting("7"),)))
    assert heard == [(-1, 0, False), (0, 1, False), (1, 2, False), (2, 49, True)]


def test_a_long_log_is_read_in_turns_and_each_is_a_step(tmp_path: Path) -> None:
    begin, end = BeginTransactionRecord(name="t"), EndTransactionRecord()
    log = log_of(tmp_path, [setting("1")], [setting("2")], [begin], [setting("3")], [end], [setting("4")])
    committed = CommittedImage(ClusterImage())
    heard: list[int] = []
    committed.listeners.append(lambda old, new, delta: heard.append(new.offset))
    turns = [committed.advance(log, 6, turn_bytes=1) for _ in range(6)]
    assert turns == [True] * 5 + [False]
    assert heard == [0, 1, 4, 5] and value(committed) == "4"
    whole = CommittedImage(ClusterImage())
    assert not whole.advance(log, 6, turn_bytes=1 << 20) and whole.image == committed.image


def test_a_batch_that_is_not_committed_as_a_whole_is_no_further_turn(tmp_path: Path) -> None:
    log = log_of(tmp_path, [setting("1")], [setting("2"), setting("3")])
    committed = CommittedImage(ClusterImage())
    assert committed.advance(log, 2, turn_bytes=1)
    assert not committed.advance(log, 2, turn_bytes=1) and committed.next_offset == 1


def test_a_snapshot_takes_the_place_of_all_that_was(tmp_path: Path) -> None:
    committed = CommittedImage(ClusterImage(cluster_id="c"))
    committed.load(SnapshotId(50, 3), Snapshot(NOW, 1, None, (setting("7"),)))
    assert (value(committed), committed.next_offset, committed.image.epoch) == ("7", 50, 3)
    assert committed.image.cluster_id == "c"


def test_a_record_that_makes_no_sense_stops_the_node_and_is_named(tmp_path: Path) -> None:
    log = log_of(tmp_path, [EndTransactionRecord()])
    with pytest.raises(MetadataLogError, match="offset 0"):
        CommittedImage(ClusterImage()).advance(log, 1)
