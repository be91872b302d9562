"""Offsets that groups committed within transactions; invisible until the transaction's marker (KIP-98).

This module decides what a marker does with them. A commit takes effect when the marker arrives, but keeps its place in the log: a
later commit of the same partition that took effect before it is not undone. A commit deleted by a tombstone does not come back.

All of it is durable: it is rebuilt by replaying the records of the producer's transaction and the markers between them.
"""

from __future__ import annotations

from tidelog.coordinator.group.records import CommittedOffset, OffsetKey


class _Pending:
    """A commit that waits for its marker. ``number``: its position among all replayed commits. ``overtaken``: a later commit
    has taken effect already."""

    __slots__ = ("committed", "number", "overtaken")

    def __init__(self, committed: CommittedOffset, number: int) -> None:
        self.committed = committed
        self.number = number
        self.overtaken = False


class _Transaction:
    """What one producer committed in its open transaction, and for which groups; the groups stay when their offsets are
    deleted."""

    __slots__ = ("groups", "offsets")

    def __init__(self) -> None:
        self.offsets: dict[OffsetKey, _Pending] = {}
        self.groups: dict[str, None] = {}


class PendingOffsets:
    """Pending commits by producer, and the producers by group."""

    __slots__ = ("_by_group", "_by_producer", "_number")

    def __init__(self) -> None:
        self._by_producer: dict[int, _Transaction] = {}
        self._by_group: dict[str, dict[int, None]] = {}
        """Producers with an open transaction that committed for the group, even if a tombstone has deleted those offsets
        since."""
        self._number = 0

    def replay(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """Adds a transactional commit."""
        self._number += 1
        transaction = self._by_producer.get(producer_id)
        if transaction is None:
            transaction = self._by_producer[producer_id] = _Transaction()
        transaction.offsets[key] = _Pending(committed, self._number)
        transaction.groups[key.group_id] = None
        self._by_group.setdefault(key.group_id, {})[producer_id] = None

    def overtake(self, key: OffsetKey, number: int | None = None) -> None:
        """A commit takes effect that is later than all pending ones, or (``number``) at this position among them."""
        for producer_id in self._by_group.get(key.group_id, ()):
            pending = self._by_producer[producer_id].offsets.get(key)
            if pending is not None and (number is None or pending.number < number):
                pending.overtaken = True

    def drop(self, key: OffsetKey) -> None:
        """A tombstone deletes the partition's offset, whichever producer was about to commit it."""
        for producer_id in self._by_group.get(key.group_id, ()):
            self._by_producer[producer_id].offsets.pop(key, None)

    def end(self, producer_id: int, *, committed: bool) -> list[tuple[OffsetKey, CommittedOffset]]:
        """Handles the producer's marker; returns the commits that take effect."""
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
        """Whether an open transaction may change this offset."""
        producers = self._by_group.get(key.group_id)
        return producers is not None and any(key in self._by_producer[producer_id].offsets for producer_id in producers)

    def is_open(self, group_id: str) -> bool:
        """Whether the group has committed in a transaction that is still open."""
        return group_id in self._by_group

    def group_ids(self) -> list[str]:
        """Groups with an open transaction."""
        return list(self._by_group)

    def keys(self, group_id: str) -> list[OffsetKey]:
        """The pending keys of a group, without duplicates."""
        found: dict[OffsetKey, None] = {}
        for producer_id in self._by_group.get(group_id, ()):
            found.update((key, None) for key in self._by_producer[producer_id].offsets if key.group_id == group_id)
        return list(found)

    def __len__(self) -> int:
        return sum(len(transaction.offsets) for transaction in self._by_producer.values())
