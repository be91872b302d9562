"""Parked requests: long polls, and produces whose records are not yet safe enough to acknowledge.

This is Kafka's purgatory as plain objects. A parked request watches partitions; a partition reports changes to it (``changed``).
The request finishes when its condition holds or its deadline passes, and calls ``on_done`` at once.

Invariants: a request finishes once; a finished request watches nothing; a change of partition p touches only the requests that
watch p. What a request then reads or answers is decided elsewhere (``replica_manager``).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Protocol

OPERATIONS = ("Produce", "Fetch", "DeleteRecords")
STATE_CHANGED = -1
"""In place of a byte count: the partition's leader, log start or existence changed, so its watchers must look again."""


class Watched(Protocol):
    """What a watcher needs of a partition."""

    watchers: dict[Any, Any]

    @property
    def last_stable_offset(self) -> int: ...

    def is_safe(self, last_offset: int, acks: int) -> bool:
        """Whether records up to ``last_offset`` may be acknowledged to a producer that asked for ``acks``."""
        ...


class Watcher(Protocol):
    """Receives a partition's changes: a parked request, or a fetch session."""

    def changed(self, partition: Watched, key: Any, new_bytes: int) -> None:
        """``partition``, watched under ``key``, exposed about ``new_bytes`` more, or STATE_CHANGED."""
        ...


class Parked(Watcher, Protocol):
    """A waiting request."""

    deadline_ms: int
    done: bool
    expired: bool
    operation: str
    """What waits, as Kafka names its purgatories."""
    on_done: Callable[[], None] | None

    @property
    def places(self) -> int:
        """How many partitions or sessions are watched."""
        ...

    def finish(self) -> None:
        """Stop waiting. No effect on a finished request."""
        ...


class Watchable(Protocol):
    """A partition, or a session that forwards the changes of its partitions. ``watchers`` maps each watcher to its key."""

    watchers: dict[Any, Any]


class Wanted(Protocol):
    """A partition of a fetch. ``read_stable_offset``: the last stable offset at the last read. ``held_back``: there are
    records between it and the high watermark."""

    read_stable_offset: int
    held_back: bool


def tell_watchers(partition: Watched, new_bytes: int) -> None:
    """Report a change to every watcher of ``partition``; callers skip the call when it has none."""
    for watcher, key in list(partition.watchers.items()):
        watcher.changed(partition, key, new_bytes)


class Tail:
    """The watchers of a partition's log end, which lies beyond what consumers may see."""

    __slots__ = ("watchers",)

    def __init__(self) -> None:
        self.watchers: dict[Any, Any] = {}

    def tell(self, partition: Watched, new_bytes: int) -> None:
        """``new_bytes`` were appended (0: only the high watermark moved), or STATE_CHANGED."""
        for watcher, key in list(self.watchers.items()):
            watcher.changed(partition, key, new_bytes)


class WatchedWithTail(Watched, Protocol):
    """A partition, whose log end is watched too."""

    @property
    def tail(self) -> Tail: ...


def tell_state_changed(partition: WatchedWithTail) -> None:
    """Make every watcher of ``partition`` look again."""
    if partition.watchers:
        tell_watchers(partition, STATE_CHANGED)
    if partition.tail.watchers:
        partition.tail.tell(partition, STATE_CHANGED)


class _Waiting:
    """A deadline, and what is watched until then."""

    __slots__ = ("_watched", "deadline_ms", "done", "expired", "on_done")

    operation = ""

    @property
    def places(self) -> int:
        """What is watched: partitions, or sessions."""
        return len(self._watched)

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.done = False
        self.expired = False
        self.on_done: Callable[[], None] | None = None
        self._watched: list[Watchable] = []

    def finish(self) -> None:
        """Stop waiting. No effect on a finished request."""
        if self.done:
            return
        self.done = True
        for source in self._watched:
            source.watchers.pop(self, None)
        self._watched = []
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done()


class ParkedFetch(_Waiting):
    """A fetch that found fewer than ``min_bytes`` bytes.

    Missing bytes are counted, not read. A partition's own limit may make the read smaller than the appends, so the count may be
    too high, never too low. When a last stable offset that was held back moves, the number of released bytes is unknown, so the
    wait ends. The owner reads the partitions in ``touched`` again, and parks again if that is still too little.
    """

    __slots__ = ("_committed", "missing_bytes", "touched")

    operation = "Fetch"

    def __init__(self, deadline_ms: int, missing_bytes: int, *, committed: bool) -> None:
        super().__init__(deadline_ms)
        self.missing_bytes = missing_bytes
        self.touched: dict[Any, None] = {}
        """Partitions that changed while this fetch was parked, by the keys under which they are watched."""
        self._committed = committed

    def watch(self, source: Watchable, key: Wanted | None) -> None:
        """Watch ``source``. The key is None for a session, which has its own keys for its partitions."""
        source.watchers[self] = key
        self._watched.append(source)

    def changed(self, partition: Watched, key: Wanted, new_bytes: int) -> None:
        """Count the bytes; finish when they are enough or the state changed."""
        self.touched[key] = None
        if new_bytes == STATE_CHANGED:
            self.finish()
            return
        # Records of an open transaction move the high watermark, but a read_committed reader sees nothing new.
        if self._committed:
            if partition.last_stable_offset == key.read_stable_offset:
                key.held_back = True
                return
            if key.held_back:
                self.finish()
                return
        self.missing_bytes -= new_bytes
        if self.missing_bytes <= 0:
            self.finish()


class ParkedAppend(_Waiting):
    """A produce that cannot be acknowledged yet: replicas (acks=all) or a flush demanded by the topic are still missing."""

    __slots__ = ("_missing", "acks")

    operation = "Produce"

    def __init__(self, deadline_ms: int, acks: int) -> None:
        super().__init__(deadline_ms)
        self.acks = acks
        self._missing: dict[int, int] = {}

    def watch(self, partition: Watched, index: int, last_offset: int) -> None:
        """Wait until the records up to ``last_offset`` of ``partition``, the ``index``-th of the request, are safe."""
        partition.watchers[self] = index
        self._watched.append(partition)
        self._missing[index] = last_offset

    def changed(self, partition: Watched, key: int, new_bytes: int) -> None:
        """Finish when no partition is left to wait for."""
        last_offset = self._missing.get(key)
        if last_offset is None or not (new_bytes == STATE_CHANGED or partition.is_safe(last_offset, self.acks)):
            return
        del self._missing[key]
        if not self._missing:
            self.finish()


class ParkedDeletion(_Waiting):
    """A DeleteRecords whose records are still on followers."""

    __slots__ = ("_missing",)

    operation = "DeleteRecords"

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self._missing: dict[Callable[[], bool], None] = {}

    def watch(self, source: Watchable, is_over: Callable[[], bool]) -> None:
        """Wait until ``is_over`` returns True; it is called when ``source`` changes."""
        source.watchers[self] = is_over
        self._watched.append(source)
        self._missing[is_over] = None

    def changed(self, partition: Watched, key: Callable[[], bool], new_bytes: int) -> None:
        """Finish when no partition is left to wait for."""
        if key in self._missing and key():
            del self._missing[key]
            if not self._missing:
                self.finish()


class Purgatory:
    """The deadlines of all parked requests. A request that finishes early stays in the heap until a sweep; it holds nothing.

    Sweeps are frequent: memory that is used again soon is in the processor's caches, and few objects live long enough for
    Python's collector to look at them.
    """

    __slots__ = ("_heap", "_sequence", "_sweep_at")

    _SWEEP_AT_LEAST = 64

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Parked]] = []
        self._sequence = 0
        self._sweep_at = self._SWEEP_AT_LEAST

    def __len__(self) -> int:
        """Unfinished requests."""
        return sum(not parked.done for _, _, parked in self._heap)

    def census(self) -> dict[str, tuple[int, int]]:
        """By operation: unfinished requests, and the partitions or sessions that they watch."""
        found: dict[str, tuple[int, int]] = dict.fromkeys(OPERATIONS, (0, 0))
        for _, _, parked in self._heap:
            if not parked.done:
                requests, places = found.get(parked.operation, (0, 0))
                found[parked.operation] = requests + 1, places + parked.places
        return found

    def park(self, parked: Parked) -> None:
        """Wake ``parked`` at its deadline at the latest."""
        if len(self._heap) >= self._sweep_at:
            self._heap = [entry for entry in self._heap if not entry[2].done]
            heapq.heapify(self._heap)
            self._sweep_at = max(self._SWEEP_AT_LEAST, 2 * len(self._heap))
        self._sequence += 1
        heapq.heappush(self._heap, (parked.deadline_ms, self._sequence, parked))

    def next_deadline(self) -> int | None:
        """When to call ``expire``, in ms; None while nothing waits."""
        heap = self._heap
        while heap and heap[0][2].done:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def expire(self, now_ms: int) -> int:
        """Finish the requests whose deadline has passed; returns how many."""
        heap = self._heap
        expired = 0
        while heap and (heap[0][0] <= now_ms or heap[0][2].done):
            parked = heapq.heappop(heap)[2]
            if not parked.done:
                parked.expired = True
                parked.finish()
                expired += 1
        return expired
