"""Carries out what share groups order: the state of partitions that members subscribe to is created at the share coordinators."""

from __future__ import annotations

from tidelog.broker.node import Broker
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.share.share_heartbeat import UNSET_OFFSET, Initialize
from tidelog.coordinator.shard import Shard
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode


class Initializer:
    """The sender of the group shards."""

    def __init__(self) -> None:
        self.broker: Broker | None = None
        """Set once the broker is built."""

    def send(self, shard: Shard[GroupCoordinator], order: Initialize) -> None:
        """Asks the share coordinators, and tells the group's shard; a shard that was stopped meanwhile is not told, and its
        successor orders again."""
        broker = self.broker
        assert broker is not None
        broker.runtime.spawn(self._initialize(broker, shard, order), f"initializing share group {order.group_id}")

    @staticmethod
    async def _initialize(broker: Broker, shard: Shard[GroupCoordinator], order: Initialize) -> None:
        done, failed = dict[bytes, set[int]](), dict[bytes, set[int]]()
        for topic_id, (_, partitions) in order.topics.items():
            for partition in sorted(partitions):
                key = ShareKey(order.group_id, topic_id, partition)
                answer = await broker.share_partitions.store.initialize(key, order.state_epoch, UNSET_OFFSET)
                outcome = done if answer.error is ErrorCode.NONE else failed
                outcome.setdefault(topic_id, set()).add(partition)
        succeeded = {each: frozenset(found) for each, found in done.items()}
        refused = {each: frozenset(found) for each, found in failed.items()}
        broker.groups.tell(shard, lambda machine, _: machine.shares.settle(order.group_id, succeeded, refused))
