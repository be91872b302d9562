"""Whose directory it is, and what is said when it cannot be used."""

import random

import pytest

from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.storage import checkpoints
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_dir import LogDir, check_same_owner, previous_broker_epoch, set_aside_name
from tidelog.testing.simulation.disk import SimDisk


def formatted(disk: SimDisk, path: str, *, cluster: str = "c1", node: int = 1, directory_id: bytes | None = b"\7" * 16) -> LogDir:
    disk.make_dirs(path)
    checkpoints.replace_file(disk, f"{path}/meta.properties", MetaProperties(cluster, node, directory_id).encode())
    log_dir = LogDir(disk, path)
    log_dir.open()
    return log_dir


def test_a_dir_in_use_is_refused_by_name() -> None:
    disk = SimDisk()
    first = formatted(disk, "/a")
    with pytest.raises(ConfigError, match="/a is in use"):
        LogDir(disk, "/a").open()
    first.release()
    LogDir(disk, "/a").open()


def test_unreadable_meta_properties_stop_the_start() -> None:
    disk = SimDisk()
    disk.make_dirs("/a")
    disk.open("/a/meta.properties", create=True).write(0, b"version=0\n")
    with pytest.raises(ConfigError, match=r"/a/meta\.properties"):
        LogDir(disk, "/a").open()


def test_dirs_of_one_node_and_cluster_agree() -> None:
    disk = SimDisk()
    dirs = [formatted(disk, "/a"), formatted(disk, "/b", directory_id=b"\x08" * 16)]
    assert check_same_owner(dirs, 1, None) == "c1"


@pytest.mark.parametrize(
    ("second", "complaint"),
    [({"cluster": "c2"}, "cluster c2"), ({"node": 5}, "node 5"), ({}, "same directory.id")],
    ids=["another cluster", "another node", "a copy"],
)
def test_a_dir_that_does_not_belong_is_named(second: dict[str, object], complaint: str) -> None:
    disk = SimDisk()
    dirs = [formatted(disk, "/a"), formatted(disk, "/b", **second)]  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=complaint):
        check_same_owner(dirs, 1, None)


def test_no_formatted_dir_says_how_to_format() -> None:
    disk = SimDisk()
    log_dir = LogDir(disk, "/a")
    log_dir.open()
    with pytest.raises(ConfigError, match="tidelog format"):
        check_same_owner([log_dir], 1, None)


def test_an_added_dir_is_formatted_with_an_id_of_its_own() -> None:
    disk = SimDisk()
    log_dir = LogDir(disk, "/a")
    log_dir.open()
    log_dir.adopt("c1", 1, random.Random(1))
    meta = checkpoints.read_meta_properties(disk, "/a")
    assert meta is not None
    assert (meta.cluster_id, meta.node_id, meta.directory_id) == ("c1", 1, log_dir.directory_id)


def test_the_marker_of_a_clean_stop_is_gone_before_anything_is_written() -> None:
    disk = SimDisk()
    log_dir = formatted(disk, "/a")
    log_dir.mark_clean(77)
    disk.sync_dir("/")
    log_dir.read_state()
    assert (log_dir.clean, log_dir.previous_broker_epoch) == (True, 77)
    for seed in range(5):
        assert not disk.crash(seed).exists("/a/.kafka_cleanshutdown")
    log_dir.read_state()
    assert (log_dir.clean, log_dir.previous_broker_epoch) == (False, -1)


def test_a_broker_epoch_counts_only_when_every_dir_has_it() -> None:
    disk = SimDisk()
    dirs = [formatted(disk, "/a"), formatted(disk, "/b", directory_id=b"\x08" * 16)]
    for epochs, expected in (((77, 77), 77), ((77, 78), -1), ((77, -1), -1)):
        for log_dir, epoch in zip(dirs, epochs, strict=True):
            log_dir.previous_broker_epoch = epoch
        assert previous_broker_epoch(dirs) == expected


def test_unreadable_checkpoints_cost_a_scan_not_the_start() -> None:
    disk = SimDisk()
    log_dir = formatted(disk, "/a")
    disk.open("/a/recovery-point-offset-checkpoint", create=True).write(0, b"?")
    log_dir.read_state()
    assert log_dir.recovery_points == {}


def test_a_scan_finds_partitions_and_what_was_deleted_and_passes_over_the_rest() -> None:
    disk = SimDisk()
    log_dir = formatted(disk, "/a")
    for name in (
        "orders-0",
        "a-b-12",
        "__cluster_metadata-0",
        "orders-1.0123-delete",
        "orders-2.0123-stray",
        "orders-3.0123-future",
        "x",
    ):
        disk.make_dirs(f"/a/{name}")
    partitions, removals = log_dir.scan()
    assert partitions == [TopicPartition("a-b", 12), TopicPartition("orders", 0)]
    assert removals == ["/a/orders-1.0123-delete"]


def test_names_of_deleted_partitions_fit_the_file_system() -> None:
    name = set_aside_name(TopicPartition("t" * 249, 3), random.Random(1), "-delete")
    assert len(name) == 255
    assert name.endswith("-delete")
    short = set_aside_name(TopicPartition("orders", 3), random.Random(1), "-stray")
    assert short.startswith("orders-3.")
    assert len(short) == len("orders-3.") + 32 + len("-stray")
