"""Offsets that groups committed within transactions: seen by nobody until the transaction's marker says how it ended (KIP-98).

Decided here: what a marker makes of them. A commit counts when the marker comes, but in the place it has in the log: a commit of
the same partition that was written after it, and counted before, is not undone. What a tombstone takes away does not come back.

All of it is durable: records of the producer's transaction, rebuilt by replaying them and the markers between them.
"""

from __future__ import annotations

from tidelog.coordinator.group.records import CommittedOffset, OffsetKey


class _Pending:
    """A commit that waits. ``number``: its place among all that was replayed. ``overtaken``: a later one counts already."""

    __slots__ = ("committed", "number", "overtaken")

    def __init__(self, committed: CommittedOffset, number: int) -> None:
        self.committed = committed
        self.number = number
        self.overtaken = False


class _Transaction:
    """What one producer committed in its open transaction, and for which groups; these stay when their offsets are taken away."""

    __slots__ = ("groups", "offsets")

    def __init__(self) -> None:
        self.offsets: dict[OffsetKey, _Pending] = {}
        self.groups: dict[str, None] = {}


class PendingOffsets:
    """By producer, and who waits in which group."""

    __slots__ = ("_by_group", "_by_producer", "_number")

    def __init__(self) -> None:
        self._by_producer: dict[int, _Transaction] = {}
        self._by_group: dict[str, dict[int, None]] = {}
        """Producers with an open transaction that holds offsets of the group, also when a tombstone took those away since."""
        self._number = 0

    def replay(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """A transactional commit is in the log."""
        self._number += 1
        transaction = self._by_producer.get(producer_id)
        if transaction is None:
            transaction = self._by_producer[producer_id] = _Transaction()
        transaction.offsets[key] = _Pending(committed, self._number)
        transaction.groups[key.group_id] = None
        self._by_group.setdefault(key.group_id, {})[producer_id] = None

    def overtake(self, key: OffsetKey, number: int | None = None) -> None:
        """A commit counts now that was written after those that wait, or (``number``) at this place among them."""
        for producer_id in self._by_group.get(key.group_id, ()):
            pending = self._by_producer[producer_id].offsets.get(key)
            if pending is not None and (number is None or pending.number < number):
                pending.overtaken = True

    def drop(self, key: OffsetKey) -> None:
        """A tombstone takes the partition's offset back, whoever was about to commit it."""
        for producer_id in self._by_group.get(key.group_id, ()):
            self._by_producer[producer_id].offsets.pop(key, None)

    def end(self, producer_id: int, *, committed: bool) -> list[tuple[OffsetKey, CommittedOffset]]:
        """The producer's marker is in the log: what counts from now on."""
        ended = self._by_producer.pop(producer_id, None)
        if ended is None:
            return []
        for group_id in ended.groups:
            del self._by_group[group_id][producer_id]
            if not self._by_group[group_id]:
                del self._by_group[group_id]
        if not committed:
            return []
        counting = [(key, pending) for key, pending in ended.offsets.items() if not pending.overtaken]
        for key, pending in counting:
            self.overtake(key, pending.number)
        return [(key, pending.committed) for key, pending in counting]

    def holds(self, key: OffsetKey) -> bool:
        """Whether a transaction that is not over yet may change this offset."""
        producers = self._by_group.get(key.group_id)
        return producers is not None and any(key in self._by_producer[producer_id].offsets for producer_id in producers)

    def is_open(self, group_id: str) -> bool:
        """Whether a transaction is open in which the group committed."""
        return group_id in self._by_group

    def group_ids(self) -> list[str]:
        """Groups with an open transaction."""
        return list(self._by_group)

    def keys(self, group_id: str) -> list[OffsetKey]:
        """What waits in a group, each once."""
        found: dict[OffsetKey, None] = {}
        for producer_id in self._by_group.get(group_id, ()):
            found.update((key, None) for key in self._by_producer[producer_id].offsets if key.group_id == group_id)
        return list(found)

    def __len__(self) -> int:
        return sum(len(transaction.offsets) for transaction in self._by_producer.values())
