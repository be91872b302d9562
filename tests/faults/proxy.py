"""A TCP proxy that stands in for a bad network: what passes between clients and a broker is delayed, held, cut or dropped.

It runs on a thread of its own. Faults hold for all connections, old and new, until ``heal``. Bytes that a fault holds back are
kept, in order, and pass when it ends; only ``drop`` loses them, together with their connection, as a network loses what it does
not repeat.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Self, TypeVar

T = TypeVar("T")

CHUNK_BYTES = 1 << 16
CALL_TIMEOUT_S = 10.0
TO_BROKER, TO_CLIENT = "to the broker", "to the client"


@dataclass(frozen=True, slots=True)
class Weather:
    """What the network does now. ``held``: the directions in which nothing passes."""

    latency_s: float = 0.0
    jitter_s: float = 0.0
    held: frozenset[str] = frozenset()
    refuses: bool = False
    """New connections are closed at once."""


class Proxy:
    """Listens on ``port`` of 127.0.0.1 (0: a free one) and passes everything on to ``target`` there, unless told otherwise."""

    def __init__(self, target: int, port: int = 0, seed: int = 0) -> None:
        self.target = target
        self.port = port
        self.passed_bytes = {TO_BROKER: 0, TO_CLIENT: 0}
        self._rng = random.Random(seed)
        self._weather = Weather()
        self._changed = asyncio.Event()
        self._pairs: dict[asyncio.StreamWriter, asyncio.StreamWriter] = {}
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._wait(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- the weather ---------------------------------------------------------------------------------------------------------

    def delay(self, latency_s: float, jitter_s: float = 0.0) -> None:
        """Every piece arrives so much later, and up to ``jitter_s`` more; order stays."""
        self._set(Weather(latency_s=latency_s, jitter_s=jitter_s))

    def stall(self) -> None:
        """Nothing passes in either direction; connections stay open."""
        self._set(Weather(held=frozenset({TO_BROKER, TO_CLIENT})))

    def cut(self, direction: str) -> None:
        """Nothing passes in one direction: requests arrive and their answers do not, or the other way round."""
        self._set(Weather(held=frozenset({direction})))

    def refuse(self) -> None:
        """All connections end, and new ones do at once."""
        self._set(Weather(refuses=True))
        self.drop()

    def drop(self, share: float = 1.0) -> int:
        """So large a part of the connections end now, with what was on its way; how many."""
        return self._wait(self._drop(share))

    def heal(self) -> None:
        """All is well; what was held back passes."""
        self._set(Weather())

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._pairs)

    # -- the loop's side -----------------------------------------------------------------------------------------------------

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_S)

    def _set(self, weather: Weather) -> None:
        async def change() -> None:
            self._weather = weather
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

        self._wait(change())

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._drop(1.0)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _drop(self, share: float) -> int:
        chosen = [pair for pair in self._pairs.items() if self._rng.random() < share]
        for pair in chosen:
            for writer in pair:
                writer.transport.abort()
        return len(chosen)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._weather.refuses:
            writer.transport.abort()
            return
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()  # the broker is down, and so is the port that stands for it
            return
        self._pairs[writer] = broker_writer
        for source, sink, direction in ((reader, broker_writer, TO_BROKER), (broker_reader, writer, TO_CLIENT)):
            task = self._loop.create_task(self._pass(source, sink, direction))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, direction: str) -> None:
        """Until one side ends; then both do."""
        try:
            while data := await source.read(CHUNK_BYTES):
                await self._hold(direction)
                sink.write(data)
                await sink.drain()
                self.passed_bytes[direction] += len(data)
        except OSError:
            pass  # the connection ended under a write; the other direction hears of it below
        finally:
            for client, broker in list(self._pairs.items()):
                if sink in (client, broker):
                    self._pairs.pop(client, None)
                    client.transport.abort()
                    broker.transport.abort()

    async def _hold(self, direction: str) -> None:
        weather = self._weather
        if weather.latency_s or weather.jitter_s:
            await asyncio.sleep(weather.latency_s + self._rng.random() * weather.jitter_s)
        while direction in self._weather.held:
            await self._changed.wait()
