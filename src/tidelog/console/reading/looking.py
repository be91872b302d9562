"""One look through fetched batches, off the loop, and bounded: a few kilobytes that were compressed may hold millions of records.

It ends early when it has seen enough, or when its reader has left; ``Scan.next_offset`` says where the next look begins.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tidelog.console.reading.rows import Row, View
from tidelog.console.reading.scanning import Scan

MOST_RECORDS: Final = 1 << 17
MOST_BYTES: Final = 64 << 20
"""Of keys and values, decompressed."""


class Look:
    """``most``: rows that are kept. ``last``: keep the last ones, and go on; else stop when there are as many."""

    def __init__(self, view: View, most: int, *, last: bool) -> None:
        self._view = view
        self._last = last
        self._most = most
        self.rows: deque[Row] = deque(maxlen=most)
        self.wanted = 0
        """Rows, with those that were not kept."""
        self.seen = 0
        self.left = False
        """Set from the loop when the reader of the rows is gone, or when it takes long."""

    def leave(self) -> None:
        """End it behind the record that is looked at now; what was found so far stays."""
        self.left = True

    def through(self, scan: Scan) -> None:
        size = 0
        for each in scan:
            self.seen += 1
            row = self._view.row(each)
            if row is not None:
                self.rows.append(row)
                self.wanted += 1
            size += len(each.key or b"") + len(each.value or b"")
            enough = self.wanted >= self._most and not self._last
            if enough or self.left or self.seen >= MOST_RECORDS or size >= MOST_BYTES:
                return
