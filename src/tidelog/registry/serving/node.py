"""Serves requests over a replayed state: reads at once, those that parse in a thread, writes one after the other.

A write is decided over a state that has all earlier ones, appended, and answered when its own record came back. If another
registry wrote meanwhile, and what was decided does not hold, the client hears that it failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tidelog.registry import errors, records
from tidelog.registry.outcome import Outcome
from tidelog.registry.records import NoopEntry, SchemaEntry
from tidelog.registry.rest.routing import Call
from tidelog.registry.serving.replaying import Replaying
from tidelog.registry.serving.topic import KeyValue
from tidelog.registry.state import State

log = logging.getLogger(__name__)
REPLAY_S = 30.0
"""How long a write waits for its own record."""


class Appends(Protocol):
    """What is written to."""

    async def append(self, records: Sequence[KeyValue]) -> int:
        """The offset of the first; -1 if it is not known."""


class RegistryNode:
    """One registry. ``replaying`` runs elsewhere."""

    def __init__(self, state: State, replaying: Replaying, log_: Appends) -> None:
        self._state, self._replaying, self._log = state, replaying, log_
        self._writing = asyncio.Lock()
        self._leads: Callable[[], bool] = lambda: True

    def write_only_while(self, leads: Callable[[], bool]) -> None:
        """Let writes of clients fail (50004) where ``leads`` says no: between their arrival and their turn another registry may
        lead."""
        self._leads = leads

    def paused(self) -> asyncio.Lock:
        """For ``async with``: no write is under way inside."""
        return self._writing

    async def catch_up(self) -> None:
        """Write a NOOP and read to it: all earlier records are in the state then. RegistryError."""
        async with self._writing:
            await self._written([records.write(NoopEntry())])

    async def serve(self, call: Call) -> Any:
        """The answer of a request. RegistryError."""
        if call.route.writes:
            async with self._writing:
                if not self._leads():
                    raise errors.no_leader("another registry leads now; try again")
                return await self._write(call)
        if call.heavy:
            async with self._replaying.steady:
                return (await asyncio.to_thread(call.answer)).answer
        return call.answer().answer

    async def _write(self, call: Call) -> Any:
        async with self._replaying.steady:
            outcome = await asyncio.to_thread(call.answer) if call.heavy else call.answer()
            expected = self._replaying.position
        if not outcome.records:
            return outcome.answer
        offset = await self._written(outcome.records)
        if offset != expected:
            log.warning("another registry writes to the topic: the record at %d was decided at %d", offset, expected)
            self._check(outcome)
        return outcome.answer

    async def _written(self, batch: list[KeyValue]) -> int:
        """Append, and wait until it is replayed."""
        offset = await self._log.append(batch)
        if offset < 0:  # it was there already: a marker behind it has an offset
            offset = await self._log.append([records.write(NoopEntry())])
            batch = batch[:1]
        try:
            async with asyncio.timeout(REPLAY_S):
                await self._replaying.reached(offset + len(batch))
        except TimeoutError as problem:
            raise errors.store_timed_out(f"the record at {offset} was not read back within {REPLAY_S:.0f} s") from problem
        except RuntimeError as problem:
            raise errors.store_timed_out(str(problem)) from problem
        return offset

    def _check(self, outcome: Outcome) -> None:
        """50001 unless what was decided is what the topic says."""
        for entry in outcome.entries:
            if isinstance(entry, SchemaEntry) and not entry.gone:
                version = entry.version
                if self._state.version(version.subject, version.number) != version:
                    raise errors.store_failed("another registry wrote at the same time; send the request again")
