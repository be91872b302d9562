"""Follows the topic into the state, from its start. A write is answered once its own record was replayed.

The state changes only while ``steady`` is held, so that a request that runs in a thread sees one state.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from tidelog.model.printable import printable
from tidelog.registry.serving.topic import ReadBatch
from tidelog.registry.state import State

log = logging.getLogger(__name__)


class Log(Protocol):
    """What is followed."""

    async def read(self, offset: int) -> ReadBatch:
        """Records from an offset on."""


class Replaying:
    """``run`` until cancelled; it raises what the log raises."""

    def __init__(self, source: Log, state: State) -> None:
        self._source, self._state = source, state
        self._moved = asyncio.Condition()
        self._failure: BaseException | None = None
        self.steady = asyncio.Lock()
        self.position = 0
        """The offset of the next record."""

    async def run(self) -> None:
        """Replay for ever."""
        try:
            while True:
                batch = await self._source.read(self.position)
                if batch.next_offset > self.position:
                    async with self.steady:
                        self._apply(batch)
                    async with self._moved:
                        self._moved.notify_all()
        except BaseException as failure:
            self._failure = failure
            async with self._moved:
                self._moved.notify_all()
            raise

    def _apply(self, batch: ReadBatch) -> None:
        for record in batch.records:
            why = self._state.replay(record.key, record.value)
            if why is not None:
                log.warning("record %d was skipped: %s", record.offset, printable(why))
        self.position = batch.next_offset

    async def reached(self, offset: int) -> None:
        """Wait until all records before ``offset`` are in the state. RuntimeError when replaying ended."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.position >= offset or self._failure is not None)
        if self.position < offset:
            raise RuntimeError("the registry follows its topic no more") from self._failure
