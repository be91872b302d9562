"""A partition with followers, as its leader (broker 1) sees it."""

from __future__ import annotations

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, World, batch
from tidelog.metadata.image import PartitionImage
from tidelog.replication.partition import Partition
from tidelog.replication.reads import PartitionRead, read_partition
from tidelog.replication.replica import Caller
from tidelog.storage.log_config import LogConfig
from tidelog.storage.verification_guard import NOT_REQUIRED

EPOCH = 5
"""Of every broker in ``world``."""


def led(isr: tuple[int, ...] = (1, 2), *, leader_epoch: int = 0, partition_epoch: int = 0) -> PartitionImage:
    """Replicas on 1 and 2, led by 1."""
    return PartitionImage(
        (1, 2), isr, 1, leader_epoch=leader_epoch, partition_epoch=partition_epoch, directories=(DIRECTORY_IDS[0], b"C" * 16)
    )


def followed(isr: tuple[int, ...] = (1, 2), config: LogConfig | None = None) -> tuple[World, Partition]:
    world = World()
    world.create("t", led(isr), config=config)
    return world, world.partition("t")


def produce(partition: Partition, count: int = 1, now_ms: int = NOW_MS) -> None:
    partition.append(batch(*[b"v"] * count), now_ms, 1, proof=NOT_REQUIRED)


def follow(
    partition: Partition, offset: int, now_ms: int = NOW_MS, *, broker_epoch: int = EPOCH, log_start: int = 0
) -> PartitionRead:
    """A fetch of broker 2, without a session."""
    return read_partition(
        partition,
        offset,
        1 << 20,
        min_one=True,
        caller=Caller(2, broker_epoch, now_ms),
        follower_start=log_start,
        leader_epoch=-1,
    )
