"""Producer ids from blocks that the controller allocates; each id is unique in the cluster (KIP-730).

The next block is requested when nine tenths of the current one are used, so that a producer rarely waits.
"""

from __future__ import annotations

from collections import deque

PREFETCH_AT = 0.9

Block = tuple[int, int]
"""(first id, count)."""


class ProducerIds:
    """The blocks of this broker. ``requested`` counts the blocks that are requested but not received."""

    __slots__ = ("_blocks", "_end", "_next", "_prefetch_at", "requested")

    def __init__(self) -> None:
        self.requested = 0
        self._next = 0
        self._end = 0
        self._prefetch_at = 0
        self._blocks: deque[Block] = deque()

    def take(self) -> int | None:
        """A new id; None when a block is needed first (``add``)."""
        if self._next == self._end:
            if not self._blocks:
                return None
            first, count = self._blocks.popleft()
            self._next, self._end = first, first + count
            self._prefetch_at = first + int(count * PREFETCH_AT)
        taken = self._next
        self._next += 1
        return taken

    @property
    def has_id(self) -> bool:
        """Whether ``take`` would return an id."""
        return self._next < self._end or bool(self._blocks)

    @property
    def wants_block(self) -> bool:
        """Whether to request the next block now."""
        return not self._blocks and not self.requested and self._next >= self._prefetch_at

    def add(self, block: Block) -> None:
        """Add a received block."""
        self._blocks.append(block)
