"""The ``uniform`` assignor for a group whose members want different topics.

Three steps. Members keep what they own and still want. What nobody owns goes to the subscriber with least, topic after
topic: first those with most partitions per subscriber, which leave least choice. Then partitions move from the subscriber
with most to the one with least, topic after topic, until a round over all topics moves nothing or ``ROUNDS`` are over.

Subscribers of one topic then differ by one partition at most, unless those with more have nothing of that topic to give.
That is Kafka's result as well, move for move, given the order of members; Kafka's is that of a hash table, ours is that of
member ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, text_order, topic_order

ROUNDS = 16
"""Kafka's bound. One round is enough while subscriptions do not overlap in part; each further one about halves what is left."""

_NOBODY = -1


def assign_mixed_subscriptions(spec: GroupSpec) -> GroupAssignment:
    """The assignment, with every member of the group in it. Raises ``PartitionAssignorError`` for a topic that does not exist."""
    return _Balancing(spec).result()


class _Balancing:
    """The work of one assignment. Members are numbered in their order."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.member_ids = sorted(spec.members, key=text_order)
        self.loads = [0] * len(self.member_ids)
        self.subscribers: dict[bytes, list[int]] = {}
        for number, member_id in enumerate(self.member_ids):
            for topic_id in spec.members[member_id].subscribed_topic_ids:
                self.subscribers.setdefault(topic_id, []).append(number)
        # From here on nothing depends on the order in which a set gives its elements.
        ordered = sorted(self.subscribers, key=topic_order)
        self.owners = {topic_id: [_NOBODY] * spec.partitions_of(topic_id) for topic_id in ordered}

    def result(self) -> GroupAssignment:
        self._keep_owned()
        topics = sorted(self.owners, key=self._least_choice_first)
        for topic_id in topics:
            self._hand_out(topic_id)
        self._balance([topic_id for topic_id in topics if len(self.subscribers[topic_id]) > 1])
        return self._assignment()

    def _least_choice_first(self, topic_id: bytes) -> tuple[float, int]:
        # Topics that are equal in this stay in the order of their ids: sorting is stable.
        subscribers = len(self.subscribers[topic_id])
        return -len(self.owners[topic_id]) / subscribers, subscribers

    def _keep_owned(self) -> None:
        for number, member_id in enumerate(self.member_ids):
            member = self.spec.members[member_id]
            for topic_id, partitions in member.owned.items():
                if topic_id not in member.subscribed_topic_ids:
                    continue
                owners = self.owners[topic_id]
                for partition in partitions:
                    if 0 <= partition < len(owners) and owners[partition] == _NOBODY:
                        owners[partition] = number
                        self.loads[number] += 1

    def _by_load(self, topic_id: bytes) -> list[int]:
        # Stable, so members of equal load keep their order.
        return sorted(self.subscribers[topic_id], key=self.loads.__getitem__)

    def _hand_out(self, topic_id: bytes) -> None:
        """Each partition without an owner to the subscriber with least."""
        owners = self.owners[topic_id]
        if _NOBODY not in owners:
            return
        takers = self._takers(self._by_load(topic_id))
        for partition, owner in enumerate(owners):
            if owner == _NOBODY:
                self._give(topic_id, partition, next(takers))

    def _give(self, topic_id: bytes, partition: int, taker: int) -> None:
        owners = self.owners[topic_id]
        if owners[partition] != _NOBODY:
            self.loads[owners[partition]] -= 1
        owners[partition] = taker
        self.loads[taker] += 1

    def _takers(self, by_load: list[int]) -> Iterator[int]:
        """Without end, who has least, given that each one named gets a partition; those who started lower come first."""
        heap = [(self.loads[member], rank, member) for rank, member in enumerate(by_load)]
        while True:
            load, rank, member = heap[0]
            yield member
            heapq.heapreplace(heap, (load + 1, rank, member))

    def _givers(self, by_load: list[int], stock: dict[int, list[int]]) -> Iterator[int]:
        """Who has most and something in stock, given that each one named gives a partition away."""
        waiting = by_load  # who has less, the next to come in at the end
        level: list[int] = []  # those with most, each one is asked once before the level sinks
        while True:
            load = self.loads[level[0] if level else waiting[-1]] if level or waiting else 0
            while waiting and self.loads[waiting[-1]] == load:
                level.append(waiting.pop())
            if not level:
                return
            at = 0
            while at < len(level):
                if stock.get(level[at]):
                    yield level[at]
                    at += 1
                else:
                    # The place is filled by the one at the front, who was asked already in this round: Kafka's way, and it
                    # decides who gives first in the next round.
                    level[at] = level[0]
                    del level[0]

    def _balance(self, topics: list[bytes]) -> None:
        """Round after round, until all topics in a row needed nothing."""
        quiet = 0
        for _ in range(ROUNDS):
            for topic_id in topics:
                quiet = 0 if self._even_out(topic_id) else quiet + 1
                if quiet == len(topics):
                    return

    def _even_out(self, topic_id: bytes) -> bool:
        """Moves partitions of one topic from the most to the least loaded subscribers. Says whether any moved."""
        loads = [self.loads[member] for member in self.subscribers[topic_id]]
        if max(loads) - min(loads) <= 1:
            return False
        stock: dict[int, list[int]] = {}
        for partition, owner in enumerate(self.owners[topic_id]):
            stock.setdefault(owner, []).append(partition)
        takers = self._takers(self._by_load(topic_id))
        moved = False
        for giver in self._givers(self._by_load(topic_id), stock):
            taker = next(takers)
            if self.loads[giver] - self.loads[taker] <= 1:
                break
            self._give(topic_id, stock[giver].pop(), taker)
            moved = True
        return moved

    def _assignment(self) -> GroupAssignment:
        numbers: list[dict[bytes, list[int]]] = [{} for _ in self.member_ids]
        for topic_id, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                numbers[owner].setdefault(topic_id, []).append(partition)
        return {
            member_id: {topic_id: frozenset(mine) for topic_id, mine in numbers[number].items()}
            for number, member_id in enumerate(self.member_ids)
        }
