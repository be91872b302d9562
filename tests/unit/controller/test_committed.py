from pathlib import Path

import pytest

from tidelog.controller.committed import CommittedImage
from tidelog.controller.record_batches import encoded_batches
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError
from tidelog.protocol.messages.begin_transaction_record import BeginTransactionRecord
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.end_transaction_record import EndTransactionRecord
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.snapshots import Snapshot, SnapshotId
from tidelog.server.disk import DiskFileSystem

NOW = 1_800_000_000_000


def setting(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="num.partitions", value=value)


def log_of(directory: Path, *groups: list[object]) -> MetadataLog:
    log = MetadataLog.open(DiskFileSystem(), str(directory), MetadataLogConfig(), NOW)
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


def test_a_transaction_counts_when_its_end_is_committed(tmp_path: Path) -> None:
    begin, end = BeginTransactionRecord(name="t"), EndTransactionRecord()
    log = log_of(tmp_path, [setting("1")], [begin, setting("2")], [end])
    committed = CommittedImage(ClusterImage())
    committed.advance(log, 3)
    assert committed.transaction_open and value(committed) is None
    committed.advance(log, 4)
    assert not committed.transaction_open and value(committed) == "2"


def test_a_snapshot_takes_the_place_of_all_that_was(tmp_path: Path) -> None:
    committed = CommittedImage(ClusterImage(cluster_id="c"))
    committed.load(SnapshotId(50, 3), Snapshot(NOW, 1, None, (setting("7"),)))
    assert (value(committed), committed.next_offset, committed.image.epoch) == ("7", 50, 3)
    assert committed.image.cluster_id == "c"


def test_a_record_that_makes_no_sense_stops_the_node_and_is_named(tmp_path: Path) -> None:
    log = log_of(tmp_path, [EndTransactionRecord()])
    with pytest.raises(MetadataLogError, match="offset 0"):
        CommittedImage(ClusterImage()).advance(log, 1)
