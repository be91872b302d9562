"""A bad network between named places: nodes of a cluster and their clients, each direction of each link by itself.

Every place that listens has doors: ports of 127.0.0.1 that stand for its own, and are what it tells others to connect to. Who
comes in is known by the address that it comes from, as in a real network: every place has one of its own in 127.0.0.0/8
(``address``), and who has none is ``CLIENTS``. So a link can be cut for what node 1 sends to node 2 and be well the other way
round, whichever of both has opened the connection.

What a cut holds back is kept, in order, and passes when it is healed, as TCP repeats it; an end of a connection waits as well.
New connections over a link that is cut come about when it is healed. All of it runs on one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

T = TypeVar("T")

CLIENTS = "clients"
LARGEST_BACKLOG_BYTES = 1 << 20
CALL_TIMEOUT_S = 10.0


def address(number: int) -> str:
    """The address from which place ``number`` (1 to 254) connects to others."""
    assert 0 < number < 255, f"{number} has no address of its own"
    return f"127.0.1.{number}"


@dataclass(frozen=True, slots=True)
class Weather:
    """Of one direction of one link."""

    held: bool = False
    latency_s: float = 0.0
    jitter_s: float = 0.0


WELL = Weather()


class Side(asyncio.Protocol):
    """One end of a connection: what arrives here leaves at ``other``, when the weather lets it."""

    def __init__(self, network: Network, way: tuple[str, str]) -> None:
        self.network = network
        self.way = way
        self.other: Side | None = None
        self.transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._waiting_bytes = 0
        self._latest = 0.0
        self._said_all = False
        self._ended = False
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.network.sides.add(self)

    def data_received(self, data: bytes) -> None:
        network = self.network
        weather = network.weather.get(self.way, WELL)
        network.passed_bytes[self.way] = network.passed_bytes.get(self.way, 0) + len(data)
        if weather is WELL and not self._waiting and self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)
            return
        delay = weather.latency_s + network.rng.random() * weather.jitter_s
        self._latest = max(self._latest, network.loop.time() + delay)
        self._waiting.append((self._latest, data))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > LARGEST_BACKLOG_BYTES and self.transport is not None:
            self.transport.pause_reading()
        self.flow()

    def flow(self) -> None:
        """All that may pass now does."""
        network = self.network
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if network.weather.get(self.way, WELL).held or self.other is None or self.other.transport is None:
            return
        while self._waiting:
            due, data = self._waiting[0]
            if due > network.loop.time():
                self._alarm = network.loop.call_at(due, self.flow)
                break
            self._waiting.popleft()
            self._waiting_bytes -= len(data)
            self.other.transport.write(data)
        if self._waiting_bytes <= LARGEST_BACKLOG_BYTES and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
        if self._said_all and not self._waiting and not self.other.transport.is_closing():
            self._said_all = False
            with contextlib.suppress(OSError):  # it has ended already, and says so in a moment
                self.other.transport.write_eof()
        if self._ended and not self._waiting:
            self.network.sides.discard(self)
            self.other.transport.close()

    def eof_received(self) -> bool:
        self._said_all = True
        self.flow()
        return True  # what the other side still has to say may pass

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        self.flow()

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.flow()


class Network:
    """See the module. ``places``: which have an address, by its last number."""

    def __init__(self, places: Iterable[int], seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.loop = asyncio.new_event_loop()
        self.weather: dict[tuple[str, str], Weather] = {}
        self.sides: set[Side] = set()
        self.passed_bytes: dict[tuple[str, str], int] = {}
        """By source and destination."""
        self._places = {address(number): str(number) for number in places}
        self._doors: dict[str, dict[int, int]] = {}
        self._servers: dict[int, asyncio.Server] = {}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self.loop.run_forever, name="network", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    # Doors

    def door(self, place: int, port: int, target: int) -> None:
        """``port`` stands for ``target`` of that place, once it is open."""
        self._doors.setdefault(str(place), {})[port] = target

    def open(self, place: int) -> None:
        """Its doors listen."""
        self._wait(self._open(str(place)))

    def shut(self, place: int) -> None:
        """They refuse, as ports do whose process is gone; connections go their own way."""
        self._wait(self._shut(str(place)))

    # The weather

    def cut(self, sources: Iterable[object], targets: Iterable[object]) -> None:
        """Nothing of what these send reaches those."""
        self._change(sources, targets, Weather(held=True))

    def part(self, some: Iterable[object], others: Iterable[object]) -> None:
        """Nothing passes between them."""
        some, others = list(some), list(others)
        self.cut(some, others)
        self.cut(others, some)

    def slow(self, some: Iterable[object], others: Iterable[object], latency_s: float, jitter_s: float = 0.0) -> None:
        """What passes between them takes so much longer, each way; order stays."""
        some, others = list(some), list(others)
        for sources, targets in ((some, others), (others, some)):
            self._change(sources, targets, Weather(latency_s=latency_s, jitter_s=jitter_s))

    def heal(self) -> None:
        """All is well; what was held back passes."""

        def clear() -> None:
            self.weather.clear()

        self._wait(self._settle(clear))

    def _change(self, sources: Iterable[object], targets: Iterable[object], weather: Weather) -> None:
        ways = [(str(source), str(target)) for source in sources for target in list(targets) if str(source) != str(target)]

        def change() -> None:
            for way in ways:
                self.weather[way] = weather

        self._wait(self._settle(change))

    # The loop's side

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(CALL_TIMEOUT_S)

    async def _settle(self, change: Callable[[], None]) -> None:
        change()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for side in list(self.sides):
            side.flow()

    async def _open(self, place: str) -> None:
        for port, target in self._doors.get(place, {}).items():
            if port not in self._servers:

                def arrived(target: int = target) -> Side:
                    return Entrance(self, place, target)

                self._servers[port] = await self.loop.create_server(arrived, "127.0.0.1", port)

    async def _shut(self, place: str) -> None:
        for port in self._doors.get(place, {}):
            server = self._servers.pop(port, None)
            if server is not None:
                server.close()

    def come_in(self, entrance: Entrance) -> None:
        """A connection was accepted; the other half is made."""
        task = self.loop.create_task(self._join(entrance))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def place_of(self, host: str) -> str:
        """Whose address that is."""
        return self._places.get(host, CLIENTS)

    async def _join(self, entrance: Entrance) -> None:
        source, place = entrance.way
        while any(self.weather.get(way, WELL).held for way in ((source, place), (place, source))):
            await self._changed.wait()
        assert entrance.transport is not None
        try:
            _, inner = await self.loop.create_connection(lambda: Side(self, (place, source)), "127.0.0.1", entrance.target)
        except OSError:
            entrance.transport.abort()  # nobody is there
            return
        inner.other, entrance.other = entrance, inner
        inner.flow()
        entrance.flow()

    async def _close(self) -> None:
        for server in self._servers.values():
            server.close()
        for side in list(self.sides):
            if side.transport is not None:
                side.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Entrance(Side):
    """The end at which a connection comes in."""

    def __init__(self, network: Network, place: str, target: int) -> None:
        super().__init__(network, ("", place))
        self.target = target

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.way = (self.network.place_of(transport.get_extra_info("peername")[0]), self.way[1])
        self.network.come_in(self)
