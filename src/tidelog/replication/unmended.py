"""What a reader of a damaged batch gets while other replicas may still mend it (ADR 26).

CORRUPT_MESSAGE ends a Java consumer's poll with an exception, and librdkafka passes it to the application. Both are right where
the records are gone. While another replica may have them whole, consumers get KAFKA_STORAGE_ERROR: clients refresh their metadata
and ask again, and after the repair, usually within seconds, they read on without having noticed.

That ends when every other replica has been asked and none can help. A replica that cannot be reached may still help: then
consumers wait for it, as they wait for a partition without a leader. Followers and partitions with one replica get
CORRUPT_MESSAGE at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sized
from typing import Protocol

from tidelog.model.errors import ErrorCode
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment import LogSegment

MOST_BYTES = 64 << 20
"""A longer range is not mended: its bytes are held in memory."""


class _Log(Protocol):
    @property
    def segments(self) -> Collection[LogSegment]: ...


def never(rotten: RottenRange) -> str | None:
    """Why no replica can replace this range; None when one may."""
    length = rotten.end - rotten.position
    if length == 0:
        return "the end of the file is missing"
    if length > MOST_BYTES:
        return f"{length} bytes are more than {MOST_BYTES}"
    return None


class Unmended:
    """Of one partition: the damaged ranges that no other replica can replace, by first offset."""

    __slots__ = ("hopeless",)

    def __init__(self) -> None:
        self.hopeless = frozenset[int]()

    def give_up(self, rotten: RottenRange) -> None:
        """Every other replica was asked."""
        self.hopeless |= {rotten.first_offset}

    def keep(self, known: Iterable[RottenRange]) -> None:
        """Forgets ranges that are not damaged any more."""
        if self.hopeless:
            self.hopeless &= {each.first_offset for each in known}

    def error_for_consumers(self, replicas: Sized, log: _Log, offset: int) -> ErrorCode:
        """The answer to a consumer's read of ``offset``, which met damage."""
        behind = (each for segment in log.segments for each in segment.rotten if each.next_offset > offset)
        rotten = min(behind, key=lambda each: each.first_offset, default=None)
        hope = rotten is not None and never(rotten) is None and rotten.first_offset not in self.hopeless
        return ErrorCode.KAFKA_STORAGE_ERROR if hope and len(replicas) > 1 else ErrorCode.CORRUPT_MESSAGE
