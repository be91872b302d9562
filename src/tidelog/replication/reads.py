"""The result of reading one partition for a fetch, before the bytes are loaded."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSlice


class PartitionRead:
    """The result of reading one partition. On an error the offsets are -1 and there are no records.

    ``size`` counts the bytes of ``records``, a slice of the log that is not loaded yet. ``aborted`` is None unless the read was
    read_committed: then it lists (producer id, first offset) of each aborted transaction that overlaps it. ``preferred_replica``
    is the broker to read from instead (KIP-392), or -1. ``diverging`` is (epoch, end offset) where the follower's log leaves the
    leader's. ``caught_up``: there is nothing more until the partition wakes its watchers.
    """

    __slots__ = (
        "aborted",
        "caught_up",
        "diverging",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_replica",
        "records",
        "size",
    )

    @property
    def is_news(self) -> bool:
        """Whether the answer must carry it even without bytes."""
        return self.error is not ErrorCode.NONE or self.diverging is not None or self.preferred_replica >= 0

    def __init__(
        self,
        error: ErrorCode,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: FileSlice | None = None,
        size: int = 0,
    ) -> None:
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.size = size
        self.aborted: Sequence[tuple[int, int]] | None = None
        self.diverging: tuple[int, int] | None = None
        self.preferred_replica = -1
        self.caught_up = False
