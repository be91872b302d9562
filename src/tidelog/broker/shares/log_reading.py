"""Reading a partition for a share group: whole batches with their offsets, and which of them were aborted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import BatchHeader, iter_headers
from tidelog.replication.partition import Partition
from tidelog.replication.reads import read_partition
from tidelog.storage.append_rules import read_marker

_NONE = ErrorCode.NONE


class ShareRead(NamedTuple):
    """What was read: bytes, the header of each batch, and the first and last offsets of batches that were aborted."""

    error: ErrorCode
    data: bytes = b""
    batches: Sequence[BatchHeader] = ()
    aborted: Sequence[tuple[int, int]] = ()

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """First and last offset of each batch."""
        return [(header.base_offset, header.last_offset) for header in self.batches]

    def between(self, first: int, last: int) -> bytes:
        """The batches that hold the offsets from ``first`` to ``last``."""
        held = [header for header in self.batches if header.last_offset >= first and header.base_offset <= last]
        return self.data[held[0].position : held[-1].position + held[-1].size] if held else b""


def read_log(partition: Partition, offset: int, max_bytes: int, *, committed: bool, min_one: bool = True) -> ShareRead:
    """Batches from the one that holds ``offset``; with ``min_one`` at least one if there is any. Errors: those of a fetch."""
    read = read_partition(partition, offset, max_bytes, min_one=min_one, committed=committed)
    if read.error is not _NONE or read.records is None:
        return ShareRead(read.error)
    data = read.records.read()
    batches = list(iter_headers(data))
    partition.stats.bytes_out += len(data)
    return ShareRead(_NONE, data, batches, aborted_batches(data, batches, read.aborted or ()))


def aborted_batches(
    data: bytes, batches: Sequence[BatchHeader], transactions: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The offsets of data batches that belong to one of the aborted ``transactions`` (producer id, first offset)."""
    waiting = sorted(transactions, key=lambda each: each[1])
    open_: set[int] = set()
    found = []
    for header in batches:
        while waiting and waiting[0][1] <= header.last_offset:
            open_.add(waiting.pop(0)[0])
        if header.is_control:
            marker = read_marker(memoryview(data)[header.position : header.position + header.size])
            if marker is not None and not marker.commit:
                open_.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in open_:
            found.append((header.base_offset, header.last_offset))
    return found
