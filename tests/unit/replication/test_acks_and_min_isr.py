from __future__ import annotations

from tests.unit.replication.followed import follow, followed, led, produce
from tests.unit.replication.world import NOW_MS
from tidelog.model.errors import ErrorCode
from tidelog.replication.acks_and_min_isr import ACKS_ALL, acknowledge, refusal
from tidelog.storage.log_config import LogConfig


def test_an_append_is_answered_when_it_is_safe_and_told_when_the_isr_became_too_small() -> None:
    _, partition = followed(config=LogConfig(min_insync_replicas=2))
    produce(partition)
    assert acknowledge(partition, 0, 1) is ErrorCode.NONE
    assert acknowledge(partition, 0, ACKS_ALL) is ErrorCode.REQUEST_TIMED_OUT
    follow(partition, 1)
    assert acknowledge(partition, 0, ACKS_ALL) is ErrorCode.NONE
    partition.update_metadata(led((1,), partition_epoch=1), NOW_MS)
    assert acknowledge(partition, 0, ACKS_ALL) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert acknowledge(partition, 0, 1) is ErrorCode.NONE
    assert refusal(partition, ACKS_ALL) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_broker_that_does_not_lead_says_so_before_it_counts_replicas() -> None:
    world, partition = followed(isr=(1,), config=LogConfig(min_insync_replicas=2))
    world.delete("t")
    assert refusal(partition, ACKS_ALL) is acknowledge(partition, 0, ACKS_ALL) is ErrorCode.NOT_LEADER_OR_FOLLOWER
