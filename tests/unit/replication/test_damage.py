"""When a follower gives up what is damaged, and what it keeps."""

import pytest

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, World, batch
from tidelog.metadata.image import PartitionImage
from tidelog.records.batch import assign_offsets, iter_headers, read_header
from tidelog.replication import following
from tidelog.replication.damage import first_damaged, give_up_damaged
from tidelog.replication.partition import Partition
from tidelog.storage.log import UnifiedLog
from tidelog.storage.rotten_range import RottenRange


def follower(isr: tuple[int, ...]) -> tuple[World, Partition, UnifiedLog]:
    """Four batches of two records, the second of which is damaged."""
    world = World(broker_id=2)
    directories = (DIRECTORY_IDS[0], DIRECTORY_IDS[0])
    world.create("t", PartitionImage((1, 2), isr, 1, leader_epoch=4, directories=directories))
    partition = world.partition("t")
    log = partition.log
    assert log is not None
    for base in range(0, 8, 2):
        records = batch(b"v", b"w")
        assign_offsets(records, read_header(records), base, 4)
        following.append(partition, world.logs, memoryview(records), 4, NOW_MS)
    header = list(iter_headers(log.active.file.read(0, log.active.size)))[1]
    log.active.rotten = (RottenRange(header.position, header.end_position, 2, 4),)
    return world, partition, log


def test_a_follower_outside_of_the_isr_ends_before_the_damage_and_keeps_the_bytes() -> None:
    world, partition, log = follower(isr=(1,))
    damaged = log.active.file.read(log.active.rotten[0].position, log.active.rotten[0].end - log.active.rotten[0].position)
    assert first_damaged(log) == 2
    assert give_up_damaged(partition, world.logs, NOW_MS)
    assert (log.log_end_offset, log.active.rotten, first_damaged(log)) == (2, (), None)
    (kept,) = [name for name in world.disk.listdir(log.dir) if name.endswith(".cut")]
    file = world.disk.open(f"{log.dir}/{kept}", write=False)
    assert bytes(file.read(0, file.size())) == damaged
    assert not give_up_damaged(partition, world.logs, NOW_MS)
    log.check()


@pytest.mark.parametrize("what", ["in sync", "flushing"])
def test_what_others_may_depend_on_stays(what: str) -> None:
    world, partition, log = follower(isr=(1, 2) if what == "in sync" else (1,))
    if what == "flushing":
        log.flush_job()
    assert not give_up_damaged(partition, world.logs, NOW_MS)
    assert (log.log_end_offset, first_damaged(log)) == (8, 2)
