"""Carries out what share groups order: the state of partitions that members subscribe to is created at the share coordinators."""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode

if TYPE_CHECKING:
    from tidelog.broker.node import Broker
    from tidelog.coordinator.group.coordinator import GroupCoordinator
    from tidelog.coordinator.group.share.share_heartbeat import Initialize
    from tidelog.coordinator.shard import Shard
    from tidelog.coordinator.share.records import ShareKey

log = logging.getLogger(__name__)

UNSET_OFFSET = -1
"""Where deliveries begin is decided by the partition's leader."""
MOST_AT_ONCE = 64
"""Partitions of one order that are initialized at the same time: a member may subscribe to all partitions of a cluster."""


class _Order:
    """An order that is being carried out, and what came of it so far."""

    def __init__(self, shard: Shard[GroupCoordinator], group_id: str, state_epoch: int) -> None:
        self.shard = shard
        self.group_id = group_id
        self.state_epoch = state_epoch
        self.waiting: deque[ShareKey] = deque()
        self.left: set[ShareKey] = set()
        self.done: defaultdict[bytes, set[int]] = defaultdict(set)
        self.failed: defaultdict[bytes, set[int]] = defaultdict(set)


class Initializer:
    """The sender of the group shards. A partition is initialized once at a time: an order that came late would reset what members
    have acknowledged since."""

    def __init__(self) -> None:
        self._orders: dict[tuple[int, ShareKey], _Order] = {}
        """By shard and key."""
        self.broker: Broker | None = None
        """Set once the broker is built."""

    def send(self, shard: Shard[GroupCoordinator], order: Initialize) -> None:
        """Asks the share coordinators, and tells the group's shard; a shard that was stopped meanwhile is not told, and its
        successor orders again."""
        from tidelog.coordinator.share.records import ShareKey  # imported by nodes with share groups only

        broker = self.broker
        assert broker is not None
        begun = _Order(shard, order.group_id, order.state_epoch)
        for topic_id, (_, partitions) in order.topics.items():
            for partition in sorted(partitions):
                key = ShareKey(order.group_id, topic_id, partition)
                if (id(shard), key) not in self._orders:
                    self._orders[id(shard), key] = begun
                    begun.left.add(key)
        begun.waiting.extend(sorted(begun.left))
        for _ in range(min(MOST_AT_ONCE, len(begun.waiting))):
            broker.runtime.spawn(self._carry_out(broker, begun), f"initializing share group {order.group_id}")

    async def _carry_out(self, broker: Broker, order: _Order) -> None:
        while order.waiting:
            key = order.waiting.popleft()
            try:
                await self._initialize(broker, order, key)
            except Exception:  # those behind it are initialized all the same
                log.exception("%s could not be initialized", key.text)

    async def _initialize(self, broker: Broker, order: _Order, key: ShareKey) -> None:
        outcome = order.failed
        try:
            answer = await broker.share_partitions.store.initialize(key, order.state_epoch, UNSET_OFFSET)
            if answer.error is ErrorCode.NONE:
                outcome = order.done
        finally:
            outcome[key.topic_id].add(key.partition)
            order.left.discard(key)
            del self._orders[id(order.shard), key]
            if not order.left:
                self._settle(broker, order)

    @staticmethod
    def _settle(broker: Broker, order: _Order) -> None:
        succeeded = {each: frozenset(found) for each, found in order.done.items()}
        refused = {each: frozenset(found) for each, found in order.failed.items()}
        broker.groups.tell(order.shard, lambda machine, _: machine.shares.settle(order.group_id, succeeded, refused))
