"""What is found in stray directories, and the reason that is concluded."""

from __future__ import annotations

import random

from sim.workload import DIRECTORY, NOW_MS, PARTITION, TOPIC_ID, append, batch
from tidelog.model.ids import TopicPartition
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.log_dir import STRAY_SUFFIX, set_aside_name
from tidelog.storage.stray_dirs import COPIED_AGAIN, CREATED_AGAIN, NOT_PLACED, find_stray_dirs
from tidelog.testing.simulation.disk import SimDisk

LOG_DIR = "/data"
OTHER_ID = bytes(reversed(TOPIC_ID))


def written(disk: SimDisk, topic_id: bytes = TOPIC_ID) -> None:
    log = create_log(disk, DIRECTORY, PARTITION, topic_id, LogConfig(), NOW_MS)
    append(log, batch(1))
    append(log, batch(2))
    log.flush()


def set_aside(disk: SimDisk) -> str:
    path = f"{LOG_DIR}/{set_aside_name(PARTITION, random.Random(1), STRAY_SUFFIX)}"
    disk.rename(DIRECTORY, path)
    return path


def test_a_stray_directory_says_which_partition_it_was_and_what_it_holds() -> None:
    disk = SimDisk()
    disk.now_ms = NOW_MS
    written(disk)
    size = disk.stat(f"{DIRECTORY}/{0:020d}.log").size
    path = set_aside(disk)
    (found,) = find_stray_dirs(disk, [LOG_DIR])
    assert found == (path, PARTITION, TOPIC_ID, 1, size, 0, NOW_MS, NOT_PLACED)


def test_another_topic_of_that_name_is_the_reason_where_there_is_one() -> None:
    disk = SimDisk()
    written(disk)
    set_aside(disk)
    written(disk, OTHER_ID)
    (found,) = find_stray_dirs(disk, [LOG_DIR])
    assert found.why == CREATED_AGAIN.format(DIRECTORY)


def test_a_partition_that_came_back_is_said_to_lie_beside_it() -> None:
    disk = SimDisk()
    written(disk)
    set_aside(disk)
    written(disk)
    (found,) = find_stray_dirs(disk, [LOG_DIR])
    assert found.why == COPIED_AGAIN.format(DIRECTORY)


def test_other_names_are_no_stray_directories() -> None:
    disk = SimDisk()
    written(disk)
    for name in ("mine-stray", f"t-0.{'0' * 32}-delete", f"t-0.{'0' * 31}-stray", f"t.{'0' * 32}-stray"):
        disk.make_dirs(f"{LOG_DIR}/{name}")
    disk.open(f"{LOG_DIR}/t-0.{'0' * 32}-stray", create=True).close()
    assert list(find_stray_dirs(disk, [LOG_DIR])) == []


def test_a_directory_without_segments_or_topic_id_holds_nothing() -> None:
    disk = SimDisk()
    path = f"{LOG_DIR}/t-7.{'a' * 32}-stray"
    disk.make_dirs(path)
    (found,) = find_stray_dirs(disk, [LOG_DIR])
    assert found == (path, TopicPartition("t", 7), None, 0, 0, None, 0, NOT_PLACED)
