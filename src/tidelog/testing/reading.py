"""What a consumer sees of a partition's log: up to the high watermark or, with read_committed, the last stable offset."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.records.batch import BatchHeader, iter_headers
from tidelog.storage import reading
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.records import Message, of_batch

READ_BYTES = 1 << 20


def visible(log: UnifiedLog, partition: int, *, committed: bool) -> list[Message]:
    """The records between the log's start and its high watermark; with ``committed`` those of ``read_committed``: below the
    last stable offset, without aborted transactions. Reads files: not for an event loop under load."""
    end = log.last_stable_offset if committed else log.high_watermark
    offset = log.log_start_offset
    aborted = reading.aborted_transactions(log, offset, end) if committed else []
    messages: list[Message] = []
    while offset < end:
        found = reading.read(log, offset, READ_BYTES, upto=end, min_one=True)
        if found.slice is None:
            break
        data, last = found.slice.read(), offset - 1
        for header in iter_headers(data):
            last = max(last, header.last_offset)
            if not header.is_control and not is_aborted(header, aborted):
                messages += [each for each in of_batch(data, header, partition) if each.offset >= offset]
        if last < offset:
            break
        offset = last + 1
    return messages


def is_aborted(header: BatchHeader, aborted: Iterable[AbortedTransaction]) -> bool:
    """Whether a batch belongs to one of these aborted transactions."""
    return header.is_transactional and any(
        each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset for each in aborted
    )
