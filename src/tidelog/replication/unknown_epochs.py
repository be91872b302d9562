"""Leader epochs that a log does not know because the batch with which they began is damaged.

The epochs of a log are written to a file at a flush. What began after the last flush is learned from the batches that a start
reads, and a damaged batch is not believed. A donor's batch then has an epoch that is unknown here. It is the one that was here
if the damaged bytes have its offset, its epoch, and its checksum, or differ from it in one byte: two batches with right checksums
differ in more.
"""

from __future__ import annotations

from tidelog.records.batch import CRC_POSITION, BatchHeader
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.unified_log import UnifiedLog

_OFFSET = slice(0, 8)
_EPOCH = slice(12, 16)
_CRC = slice(CRC_POSITION, CRC_POSITION + 4)


class UnknownEpochs:
    """The epochs of one damaged range that are learned from a donor."""

    def __init__(self, log: UnifiedLog, rotten: RottenRange) -> None:
        self._log = log
        self._rotten = rotten
        self._starts: dict[int, int] = {}
        """By epoch, ascending: the first offset of the range that is of it."""

    def learn(self, header: BatchHeader, batch: bytes, distance: int) -> bool:
        """Whether ``batch``, which belongs ``distance`` bytes into the range, is the one that was there. Reads the segment:
        blocks for a moment; raises OSError."""
        segment = next((each for each in self._log.segments if self._rotten in each.rotten), None)
        if segment is None:
            return False
        there = segment.file.read(self._rotten.position + distance, len(batch))
        epoch, first = header.leader_epoch, self._starts.get(header.leader_epoch, header.base_offset)
        if not is_damaged_copy(there, batch) or any(each > epoch for each in self._starts):
            return False
        if not self._log.leader_epochs.admits(epoch, first, header.last_offset):
            return False
        self._starts[epoch] = first
        return True

    def teach(self) -> None:
        """Adds them to the log's epochs."""
        log, epochs = self._log, self._log.leader_epochs
        for epoch, first in self._starts.items():
            start = max(first, log.log_start_offset)
            if epochs.admits(epoch, start, start):
                epochs.insert(epoch, start)


def is_damaged_copy(damaged: bytes, batch: bytes) -> bool:
    """Whether ``damaged`` was ``batch`` before bits of it flipped."""
    if len(damaged) != len(batch) or damaged[_OFFSET] != batch[_OFFSET] or damaged[_EPOCH] != batch[_EPOCH]:
        return False
    return damaged[_CRC] == batch[_CRC] or sum(one != other for one, other in zip(damaged, batch, strict=True)) <= 1
