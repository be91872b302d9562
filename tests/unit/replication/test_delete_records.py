from __future__ import annotations

from tests.unit.replication.followed import follow, followed, produce
from tidelog.replication.delete_records import low_watermark


def test_deletions_wait_for_the_log_starts_of_followers_that_live() -> None:
    world, partition = followed()
    produce(partition, 4)
    follow(partition, 4)
    partition.delete_records(3)
    assert low_watermark(partition) == 0
    follow(partition, 4, log_start=3)
    assert low_watermark(partition) == 3
    partition.delete_records(4)
    brokers = dict(world.image.brokers)
    brokers[2] = brokers[2]._replace(fenced=True)
    world.set_brokers(brokers)
    assert low_watermark(partition) == 4
