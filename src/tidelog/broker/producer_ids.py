"""Producer ids handed out from blocks that the controller gives, each id once in the life of the cluster (KIP-730).

The next block is asked for when nine tenths of the current one are gone, so that a producer rarely waits for it.
"""

from __future__ import annotations

from collections import deque

PREFETCH_AT = 0.9

Block = tuple[int, int]
"""(first id, how many)."""


class ProducerIds:
    """The blocks that this broker has. ``requested`` counts the blocks that were asked for and have not come."""

    __slots__ = ("_blocks", "_end", "_next", "_prefetch_at", "requested")

    def __init__(self) -> None:
        self.requested = 0
        self._next = 0
        self._end = 0
        self._prefetch_at = 0
        self._blocks: deque[Block] = deque()

    def take(self) -> int | None:
        """A fresh id; None when a block has to come first (``add``)."""
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
        """Whether ``take`` would give one."""
        return self._next < self._end or bool(self._blocks)

    @property
    def wants_block(self) -> bool:
        """Whether the next block should be asked for now."""
        return not self._blocks and not self.requested and self._next >= self._prefetch_at

    def add(self, block: Block) -> None:
        """A block came."""
        self._blocks.append(block)
