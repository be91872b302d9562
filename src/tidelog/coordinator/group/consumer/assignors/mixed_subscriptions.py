"""The ``uniform`` assignor for a group whose members subscribe to different topics.

Three steps. Members keep what they own and still subscribe to. Unowned partitions go to the least loaded subscriber, topic by
topic, beginning with the topics that have most partitions per subscriber, which leave least choice. Then partitions move from the
most to the least loaded subscriber, topic by topic, until a round over all topics moves nothing or ``ROUNDS`` is reached.

The subscribers of one topic then differ by at most one partition, unless the more loaded ones own nothing of that topic. Given
the same order of members, Kafka makes the same moves; Kafka's order is that of a hash table, ours is that of member ids.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, text_order, topic_order

ROUNDS = 16
"""Kafka's bound. One round is enough unless subscriptions overlap partly; each further round about halves the remaining
imbalance."""

_NOBODY = -1


def assign_mixed_subscriptions(spec: GroupSpec) -> GroupAssignment:
    """The assignment of every member of the group. Raises ``PartitionAssignorError`` for a topic that does not exist."""
    return _Balancing(spec).result()


class _Balancing:
    """One computation of an assignment. Members are numbered in their order."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.member_ids = sorted(spec.members, key=text_order)
        self.loads = [0] * len(self.member_ids)
        self.subscribers: dict[bytes, list[int]] = {}
        for number, member_id in enumerate(self.member_ids):
            for topic_id in spec.members[member_id].subscribed_topic_ids:
                self.subscribers.setdefault(topic_id, []).append(number)
        # From here on nothing depends on the iteration order of a set.
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
        # Sorting is stable: topics that compare equal stay in the order of their ids.
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
        # Sorting is stable: members of equal load keep their order.
        return sorted(self.subscribers[topic_id], key=self.loads.__getitem__)

    def _hand_out(self, topic_id: bytes) -> None:
        """Gives each unowned partition to the least loaded subscriber."""
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
        """Endlessly yields the least loaded member, assuming that each one yielded gets a partition. On a tie, the member that
        was lower at the start comes first."""
        heap = [(self.loads[member], rank, member) for rank, member in enumerate(by_load)]
        while True:
            load, rank, member = heap[0]
            yield member
            heapq.heapreplace(heap, (load + 1, rank, member))

    def _givers(self, by_load: list[int], stock: dict[int, list[int]]) -> Iterator[int]:
        """Yields the most loaded member with something in stock, assuming that each one yielded gives a partition away."""
        waiting = by_load  # less loaded members, the next candidate last
        level: list[int] = []  # the most loaded members; each is asked once before the level sinks
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
                    # The first member of the level, already asked in this round, takes the free place. Kafka does so, and it
                    # decides the order of givers in the next round.
                    level[at] = level[0]
                    del level[0]

    def _balance(self, topics: list[bytes]) -> None:
        """Repeats rounds until a full pass over the topics moves nothing."""
        quiet = 0
        for _ in range(ROUNDS):
            for topic_id in topics:
                quiet = 0 if self._even_out(topic_id) else quiet + 1
                if quiet == len(topics):
                    return

    def _even_out(self, topic_id: bytes) -> bool:
        """Moves partitions of one topic from the most to the least loaded subscribers. Returns whether any moved."""
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
