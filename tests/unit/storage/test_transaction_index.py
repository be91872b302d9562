"""The transaction index of one segment on the disk."""

import pytest

from tidelog.storage.index import AbortedTransaction, CorruptIndex
from tidelog.storage.transaction_index import TransactionIndex
from tidelog.testing.simulation.disk import SimDisk

PATH = "/d/00000000000000000000.txnindex"
FIRST = AbortedTransaction(7, 10, 20, 15)
SECOND = AbortedTransaction(8, 15, 30, 31)


def disk_and_index() -> tuple[SimDisk, TransactionIndex]:
    disk = SimDisk()
    disk.make_dirs("/d")
    disk.sync_dir("/")
    index = TransactionIndex(0, empty=True)
    for entry in (FIRST, SECOND):
        index.append(disk, PATH, entry)
    return disk, index


def test_the_file_exists_from_the_first_abort_on() -> None:
    disk = SimDisk()
    disk.make_dirs("/d")
    index = TransactionIndex(0)
    assert index.entries(disk, PATH) == []
    assert not disk.exists(PATH)
    index.append(disk, PATH, FIRST)
    assert disk.stat(PATH).size == 34


def test_entries_come_back_from_the_file() -> None:
    disk, _ = disk_and_index()
    assert TransactionIndex(0).entries(disk, PATH) == [FIRST, SECOND]


def test_what_is_there_is_not_added_again() -> None:
    disk, index = disk_and_index()
    index.append(disk, PATH, FIRST)
    index.append(disk, PATH, SECOND)
    assert index.entries(disk, PATH) == [FIRST, SECOND]
    assert disk.stat(PATH).size == 68


def test_cutting_is_safe_when_it_returns() -> None:
    disk, index = disk_and_index()
    disk.sync_dir("/d")
    index.cut(disk, PATH, 30)
    assert index.entries(disk, PATH) == [FIRST]
    for seed in range(20):
        assert TransactionIndex(0).entries(disk.crash(seed), PATH) == [FIRST]
    index.append(disk, PATH, SECOND)
    assert TransactionIndex(0).entries(disk, PATH) == [FIRST, SECOND]


def test_the_file_is_handed_out_for_its_sync_once() -> None:
    disk, index = disk_and_index()
    assert index.unsynced_file(disk, PATH) is not None
    assert index.unsynced_file(disk, PATH) is None


def test_a_reset_index_waits_for_replay() -> None:
    disk, index = disk_and_index()
    index.reset(disk, PATH)
    assert index.replay_needed
    assert index.entries(disk, PATH) == []
    assert not disk.exists(PATH)
    assert index.unsynced_file(disk, PATH) is None


def test_what_was_not_synced_is_not_forgotten() -> None:
    disk, index = disk_and_index()
    disk.fail("open", 1, 5, times=100)
    index.forget()
    assert index.entries(disk, PATH) == [FIRST, SECOND]


def test_a_file_that_does_not_read_is_corrupt() -> None:
    disk, _ = disk_and_index()
    disk.open(PATH).truncate(40)
    with pytest.raises(CorruptIndex):
        TransactionIndex(0).entries(disk, PATH)
