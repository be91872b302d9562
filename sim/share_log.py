"""The simulated log of a partition that share groups read: batches with control records, aborted transactions and compaction, the
same on every broker; and the partition as one broker sees it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidelog.broker.shares.log_reading import ShareRead
from tidelog.model.errors import ErrorCode
from tidelog.replication.purgatory import STATE_CHANGED, tell_watchers

BYTES_EACH = 10
DATA, CONTROL, ABORTED = "data", "control", "aborted"


@dataclass
class Batch:
    first: int
    last: int
    kind: str


class Header(NamedTuple):
    """What reads use of a batch's header."""

    base_offset: int
    last_offset: int
    position: int
    size: int


class SimLog:
    """``high_watermark`` is also the log's end."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.batches: list[Batch] = []
        self.log_start_offset = 0
        self.high_watermark = 0

    def append(self) -> None:
        rng = self._rng
        kind = rng.choices([DATA, CONTROL, ABORTED], [8, 1, 1])[0]
        size = 1 if kind == CONTROL else rng.choice([1, 2, 3, 5, 8, 20])
        self.batches.append(Batch(self.high_watermark, self.high_watermark + size - 1, kind))
        self.high_watermark += size

    def compact(self) -> bool:
        """Removes a batch, or a few; the last one stays."""
        if len(self.batches) < 3:
            return False
        at = self._rng.randrange(len(self.batches) - 2)
        del self.batches[at : min(at + self._rng.choice([1, 1, 3]), len(self.batches) - 1)]
        return True

    def move_start(self) -> bool:
        """Deletes records, up to any offset."""
        if self.high_watermark <= self.log_start_offset:
            return False
        span = self.high_watermark - self.log_start_offset
        self.log_start_offset += self._rng.randint(1, max(1, span // self._rng.choice([1, 4, 20])))
        self.batches = [each for each in self.batches if each.last >= self.log_start_offset]
        return True

    def read(self, offset: int, max_bytes: int, *, committed: bool, min_one: bool) -> ShareRead:
        if not self.log_start_offset <= offset <= self.high_watermark:
            return ShareRead(ErrorCode.OFFSET_OUT_OF_RANGE)
        headers: list[Header] = []
        aborted, size = [], 0
        for batch in self.batches:
            if batch.last < offset:
                continue
            own = BYTES_EACH * (batch.last - batch.first + 1)
            if size + own > max_bytes and not (min_one and not headers):
                break
            headers.append(Header(batch.first, batch.last, size, own))
            size += own
            if committed and batch.kind == ABORTED:
                aborted.append((batch.first, batch.last))
        found: Any = headers
        return ShareRead(ErrorCode.NONE, bytes(size), found, aborted)

    def offsets(self, *, committed: bool) -> set[int]:
        """All offsets that a group has to finish."""
        return {
            offset
            for batch in self.batches
            if not (committed and batch.kind == ABORTED)
            for offset in range(max(batch.first, self.log_start_offset), batch.last + 1)
        }


class SimPartition:
    """One broker's view of the partition: whether it leads it, as far as it knows, and the fetches that watch it."""

    def __init__(self, topic_id: bytes, log: SimLog) -> None:
        self.topic_id = topic_id
        self.log = log
        self.is_leader = False
        self.deleted = False
        self.leader_epoch = -1
        self.last_stable_offset = 0
        self.watchers: dict[Any, Any] = {}

    def check_leader(self, epoch: int) -> ErrorCode:
        return ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def is_safe(self, last_offset: int, acks: int) -> bool:
        return True

    def lead(self, epoch: int, *, leads: bool) -> None:
        """What the metadata says now."""
        self.leader_epoch, self.is_leader = epoch, leads
        tell_watchers(self, STATE_CHANGED)

    def changed(self) -> None:
        """The high watermark or the log's start moved."""
        if self.is_leader:
            tell_watchers(self, 1)
