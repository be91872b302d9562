"""A damaged batch with which an epoch began, after a start that could not read it."""

from __future__ import annotations

import pytest

from sim.workload import append, batch, load, new_log
from tidelog.records.batch import CRC_POSITION, iter_headers
from tidelog.replication import repair
from tidelog.replication.repair import Damage, Refusal, Replacement
from tidelog.replication.unknown_epochs import is_damaged_copy
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

EPOCHS = (0, 0, 3, 5, 5)
"""The leader epochs of a log's batches; nothing of it is flushed."""
PATH = "/data/orders-0/00000000000000000000.log"


def damaged(number: int, within: int = -1) -> tuple[UnifiedLog, Damage, bytes]:
    """The log after a kill and a start, with a flipped bit in one batch, and the bytes of that batch as they were."""
    disk = SimDisk()
    log = new_log(disk)
    for epoch in EPOCHS:
        append(log, batch(2), leader_epoch=epoch)
    header = list(iter_headers(log.segments[0].file.read(0, log.segments[0].size)))[number]
    right = log.segments[0].file.read(header.position, header.size)
    disk = disk.kill()
    disk.flip(PATH, header.position + within % header.size, 3)
    log = load(disk, survived=True)
    (damage,) = repair.damages(log)
    return log, damage, right


def mended(log: UnifiedLog, damage: Damage, sent: bytes) -> list[tuple[int, int]]:
    found = Replacement(log, damage.rotten)
    found.take(sent)
    assert found.complete and found.data == sent
    found.teach_epochs()
    log.leader_epochs.check()
    return log.leader_epochs.entries()


@pytest.mark.parametrize(
    ("number", "known"), [(0, [(0, 2), (3, 4), (5, 6)]), (2, [(0, 0), (5, 6)]), (3, [(0, 0), (3, 4), (5, 8)])]
)
def test_the_batch_with_which_an_epoch_began_is_mended_and_the_epoch_known_again(
    number: int, known: list[tuple[int, int]]
) -> None:
    log, damage, right = damaged(number)
    assert log.leader_epochs.entries() == known
    assert mended(log, damage, right) == [(0, 0), (3, 4), (5, 6)]


def test_the_only_batch_of_the_last_epoch_is_mended() -> None:
    log, damage, right = damaged(2)
    log.truncate_to(damage.rotten.next_offset, 0)
    log.leader_epochs.truncate_from_end(damage.rotten.next_offset)
    assert mended(log, damage, right) == [(0, 0), (3, 4)]


def test_a_bit_of_the_checksum_is_one_byte_of_difference() -> None:
    log, damage, right = damaged(2, CRC_POSITION + 2)
    assert mended(log, damage, right)[1] == (3, 4)


@pytest.mark.parametrize("what", ["another epoch", "other records"])
def test_another_batch_is_refused(what: str) -> None:
    log, damage, right = damaged(2)
    other = batch(2, value=b"other", base_offset=4, leader_epoch=3) if what == "other records" else bytearray(right)
    if what == "another epoch":
        other[12:16] = (4).to_bytes(4, "big")  # no checksum covers it
    with pytest.raises(Refusal, match="which is not the one here"):
        Replacement(log, damage.rotten).take(bytes(other))


def test_a_copy_is_recognized_by_its_checksum_or_by_all_bytes_but_one() -> None:
    one, other = bytes(batch(2)), bytes(batch(2, value=b"valuf"))
    assert is_damaged_copy(one, one)
    assert is_damaged_copy(one[:30] + bytes(20) + one[50:], one), "the checksum is the same"
    assert not is_damaged_copy(other, one)
    assert not is_damaged_copy(one[:-1], one)
