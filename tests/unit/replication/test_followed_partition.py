from __future__ import annotations

from tests.unit.replication.world import DIRECTORY_IDS, World
from tidelog.metadata.image import PartitionImage
from tidelog.replication.followed_partition import BackOffs, Followed


def led_by_broker_1(epoch: int = 0) -> PartitionImage:
    return PartitionImage((1, 2), (1, 2), 1, leader_epoch=epoch, partition_epoch=epoch, directories=(DIRECTORY_IDS[0],) * 2)


def entries(count: int) -> list[Followed]:
    world = World(broker_id=2)
    world.create("t", *[led_by_broker_1() for _ in range(count)])
    return [Followed(world.partition("t", index)) for index in range(count)]


def test_delayed_partitions_are_due_in_the_order_of_their_times() -> None:
    first, second, third = entries(3)
    back_offs = BackOffs()
    assert back_offs.next_due_ms() is None
    back_offs.wait(second, 30)
    back_offs.wait(first, 20)
    back_offs.wait(third, 30)
    assert (back_offs.next_due_ms(), first.due_ms) == (20, 20)
    assert back_offs.take_due(19) == []
    assert back_offs.take_due(30) == [first, second, third], "those due at the same time in the order of their arrival"
    assert (back_offs.next_due_ms(), first.due_ms, third.due_ms) == (None, 0, 0)


def test_a_cancelled_partition_is_never_due() -> None:
    first, second = entries(2)
    back_offs = BackOffs()
    back_offs.wait(first, 20)
    back_offs.wait(second, 30)
    back_offs.cancel(first)
    assert back_offs.next_due_ms() == 30
    assert back_offs.take_due(100) == [second]


def test_a_delay_until_time_zero_is_still_a_delay() -> None:
    (entry,) = entries(1)
    back_offs = BackOffs()
    back_offs.wait(entry, 0)
    assert entry.due_ms == 1 and back_offs.take_due(1) == [entry]


def test_a_followed_partition_is_current_in_its_epoch_only() -> None:
    world = World(broker_id=2)
    world.create("t", led_by_broker_1())
    partition = world.partition("t")
    entry = Followed(partition)
    assert entry.is_current
    partition.update_metadata(led_by_broker_1(1))
    assert not entry.is_current and Followed(partition).is_current
    partition.go_offline()
    assert not Followed(partition).is_current
