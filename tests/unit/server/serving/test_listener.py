from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.broker.node_world import NodeWorld
from tests.unit.server.serving.listening import ListenerWorld, listener_on
from tests.unit.server.serving.test_connection import until
from tidelog.broker.quotas.rates import Windows
from tidelog.model.errors import ConfigError
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.server.runtime import Driver
from tidelog.server.serving.binding import bind
from tidelog.server.serving.listener import ConnectionCount, Limits, Listener
from tidelog.server.serving.violations import TOLD_PER_SECOND

REQUEST = encode_request(RequestHeader(60, 0, 1, None), DescribeClusterRequest())


class World(ListenerWorld):
    def listen(self, **limits: Any) -> Listener:
        return self.started(Limits(**limits))

    async def served(self, client: socket.socket) -> bool:
        """Whether a request is answered; False when the connection ends instead."""
        try:
            await self.runtime.loop.sock_sendall(client, REQUEST)
            return bool(await asyncio.wait_for(self.runtime.loop.sock_recv(client, 100), 10))
        except (ConnectionResetError, BrokenPipeError):
            return False


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def test_connections_are_accepted_served_and_forgotten(world: World) -> None:
    listener = world.listen()

    async def main() -> None:
        clients = [await world.connect(listener) for _ in range(10)]
        for client in clients:
            assert await world.served(client)
        assert len(listener.connections) == world.count.total == world.count.by_host["127.0.0.1"] == 10
        for client in clients:
            client.close()
        await until(lambda: not listener.connections)
        assert (world.count.total, dict(world.count.by_host)) == (0, {})

    world.run(main)


def test_the_limits_of_the_node_and_of_an_address_hold_for_all_listeners_together(world: World) -> None:
    first, second = world.listen(max_connections=2), world.listen(max_connections=2)

    async def main() -> None:
        assert await world.served(await world.connect(first))
        assert await world.served(await world.connect(second))
        assert not await world.served(await world.connect(first))
        assert first.refused == 1

    world.run(main)


def test_a_listener_counts_its_own_connections_against_its_own_limit(world: World, caplog: pytest.LogCaptureFixture) -> None:
    first, second = world.listen(own_connections=1), world.listen(own_connections=2)

    async def main() -> None:
        one = await world.connect(first)
        assert await world.served(one)
        assert await world.served(await world.connect(second))
        assert not await world.served(await world.connect(first))
        assert "the listener has 1 (listener.name.external.max.connections)" in caplog.text
        assert await world.served(await world.connect(second))
        assert not await world.served(await world.connect(second))
        one.close()
        await until(lambda: not first.connections)
        assert await world.served(await world.connect(first))
        first.change_limits(Limits(own_connections=2))
        assert await world.served(await world.connect(first))
        assert (first.refused, second.refused) == (1, 1)

    world.run(main)


def test_refused_connections_do_not_fill_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    listener = world.listen(max_connections=0)

    async def main() -> None:
        for _ in range(3 * TOLD_PER_SECOND):
            assert not await world.served(await world.connect(listener))

    world.runtime.real_ms = lambda: 5000  # type: ignore[method-assign]
    world.run(main)
    assert listener.refused == 3 * TOLD_PER_SECOND
    assert caplog.text.count("refuses a connection of 127.0.0.1") == TOLD_PER_SECOND
    world.runtime.real_ms = lambda: 6000  # type: ignore[method-assign]
    world.run(main)
    assert f"{2 * TOLD_PER_SECOND} more connections were refused" in caplog.text


def test_the_listener_between_brokers_takes_connections_when_the_node_is_full(world: World) -> None:
    """KIP-402: a flood of clients does not keep brokers apart. What the listener itself allows still holds."""
    between = world.listen(max_connections=1, own_connections=2, exempt="EXTERNAL")
    clients = world.listen(max_connections=1)

    async def main() -> None:
        assert await world.served(await world.connect(clients))
        assert not await world.served(await world.connect(clients))
        assert await world.served(await world.connect(between))
        assert await world.served(await world.connect(between))
        assert not await world.served(await world.connect(between))

    world.run(main)


@pytest.mark.parametrize(
    "limits", [{"max_connections_per_ip": 1}, {"max_connections_per_ip": 5, "per_ip_overrides": {"127.0.0.1": 1}}]
)
def test_one_address_may_have_so_many_connections(world: World, limits: dict[str, Any]) -> None:
    listener = world.listen(**limits)

    async def main() -> None:
        first = await world.connect(listener)
        assert await world.served(first)
        assert not await world.served(await world.connect(listener))
        first.close()
        await until(lambda: not listener.connections)
        assert await world.served(await world.connect(listener))

    world.run(main)


def test_a_listener_accepts_no_more_connections_a_second_than_it_may_itself(world: World) -> None:
    world.count = ConnectionCount(Windows(2, 60_000))
    # The listener between brokers, which the node's rate spares.
    listener = world.listen(max_creation_rate=1, exempt="EXTERNAL", own_creation_rate=1)
    other = world.listen(own_creation_rate=1)
    now = 1_000_000
    world.runtime.even_ms = lambda: now

    async def main() -> None:
        nonlocal now
        # In the first minute there may be 60; the one that is too many is the last.
        clients = [await world.connect(listener) for _ in range(62)]
        for client in clients[:61]:
            assert await world.served(client)
        assert len(listener.connections) == 61
        assert await world.served(await world.connect(other))
        now += 180_000
        listener._accept_again()
        assert await world.served(clients[61])

    world.run(main)


def test_no_more_connections_a_second_are_accepted_than_allowed(world: World) -> None:
    world.count = ConnectionCount(Windows(2, 60_000))
    listener, other = (world.listen(max_creation_rate=1, exempt=name) for name in ("", "EXTERNAL"))
    now = 1_000_000
    world.runtime.even_ms = lambda: now

    async def main() -> None:
        nonlocal now
        # In the first minute there may be 60; the one that is too many is the last.
        clients = [await world.connect(listener) for _ in range(62)]
        for client in clients[:61]:
            assert await world.served(client)
        assert len(listener.connections) == 61
        assert await world.served(await world.connect(other))
        assert len(listener.connections) == 61
        now += 180_000
        listener._accept_again()
        assert await world.served(clients[61])

    world.run(main)


def test_connections_that_a_quota_holds_back_count_for_every_limit(world: World) -> None:
    listener = world.listen(max_connections=3)
    listener.follow_quotas(False, lambda host: 60_000)

    async def main() -> None:
        held = [await world.connect(listener) for _ in range(3)]
        await until(lambda: world.count.total == 3)
        assert not await world.served(await world.connect(listener))
        assert (listener.refused, len(listener.newcomers)) == (1, 3)
        listener.change_limits(Limits(max_unauthenticated_per_ip=3))
        await world.connect(listener)
        assert await world.runtime.loop.sock_recv(held[0], 1) == b""
        assert world.count.by_host["127.0.0.1"] == 3
        listener.follow_quotas(False, None)
        assert await world.served(await world.connect(listener))
        assert len(listener.newcomers) == 3
        listener.stop_accepting()
        assert (world.count.total, len(listener.newcomers)) == (1, 0)

    world.run(main)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(world: World) -> None:
    listener = world.listen(max_idle_ms=100_000)
    now = 1_000_000
    world.runtime.real_ms = lambda: now

    async def main() -> None:
        nonlocal now
        idle, talking = await world.connect(listener), await world.connect(listener)
        for client in (idle, talking):
            assert await world.served(client)
        listener._sweep()
        now += 60_000
        assert await world.served(talking)
        listener._sweep()
        assert len(listener.connections) == 2
        now += 60_000
        listener._sweep()
        assert len(listener.connections) == 1
        assert await world.served(talking)
        assert not await world.served(idle)

    world.run(main)


def test_a_client_that_does_not_take_its_answer_is_idle_and_one_that_waits_for_it_is_not(world: World) -> None:
    listener = world.listen(max_idle_ms=100_000)
    now = 1_000_000
    world.runtime.real_ms = lambda: now

    async def main() -> None:
        nonlocal now
        deaf, waiting = await world.connect(listener), await world.connect(listener)
        for client in (deaf, waiting):
            assert await world.served(client)
        of_deaf, of_waiting = listener.connections
        of_deaf.machine._sending, of_waiting.machine._driver = True, Driver(world.runtime.loop.shutdown_asyncgens(), print)
        for _ in range(4):
            listener._sweep()
            now += 60_000
        assert list(listener.connections) == [of_waiting]

    world.run(main)


def test_a_negative_idle_time_is_for_ever(world: World) -> None:
    listener = world.listen(max_idle_ms=-1)

    async def main() -> None:
        client = await world.connect(listener)
        assert await world.served(client)
        for _ in range(3):
            listener._sweep()
        assert await world.served(client)

    world.run(main)


def test_the_last_descriptors_are_not_given_to_clients(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = world.listen()
    monkeypatch.setattr("tidelog.server.serving.listener.PAUSE_S", 0.0)
    enough, listener._last_descriptor = listener._last_descriptor, 3

    async def main() -> None:
        assert not await world.served(await world.connect(listener))
        listener._last_descriptor = enough
        assert await world.served(await world.connect(listener))

    world.run(main)


def test_without_descriptors_accepting_pauses_and_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = world.listen()
    monkeypatch.setattr("tidelog.server.serving.listener.PAUSE_S", 0.0)
    (real,) = listener._listening
    fails = [OSError(errno.EMFILE, "Too many open files")]

    class Exhausted:
        def accept(self) -> Any:
            if fails:
                raise fails.pop()
            return real.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    monkeypatch.setattr(listener, "_listening", [Exhausted()])
    listener._accept_again()

    async def main() -> None:
        assert await world.served(await world.connect(listener))
        assert fails == []

    world.run(main)


def test_a_listener_accepts_also_from_a_socket_that_it_shares(world: World) -> None:
    listener = world.listen(max_connections=2)
    shared = socket.create_server(("127.0.0.1", 0))
    other = shared.dup()

    async def main() -> None:
        listener.accept_also(shared)
        assert await world.served(await world.connect(listener))
        client = socket.create_connection(shared.getsockname())
        client.setblocking(False)
        assert await world.served(client)
        assert not await world.served(await world.connect(listener)), "the limits are those of both"
        listener.stop_accepting()
        client.close()

    world.run(main)
    # The other process's descriptor still listens.
    assert shared.fileno() == -1 and other.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    other.close()


def test_draining_closes_all_connections(world: World) -> None:
    listener = world.listen()

    async def main() -> None:
        client = await world.connect(listener)
        assert await world.served(client)
        listener.stop_accepting()
        await listener.drain(10)
        assert listener.connections == {}
        with pytest.raises(ConnectionRefusedError):
            await world.connect(listener)

    world.run(main)


def test_two_that_bound_before_either_listened_are_told_apart(world: World) -> None:
    listener = world.listen()
    listener.stop_accepting()
    bound = bind("A", "127.0.0.1", 0)
    port = bound.getsockname()[1]
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        other.bind(("127.0.0.1", port))
    except OSError:
        pytest.xfail("this system already refuses the second bind")
    other.listen(1)
    late = Listener("A", bound, NodeWorld().broker, world.runtime, limits=Limits(), count=world.count)
    with pytest.raises(ConfigError, match="in use"):
        late.start()
    other.close()
    bound.close()


def test_who_connects_to_an_open_listener_waits_until_it_accepts(world: World) -> None:
    listener = listener_on(world.runtime, count=world.count)
    world.listeners.append(listener)

    async def main() -> None:
        listener.open()
        client = await world.connect(listener)
        waiting = world.runtime.loop.create_task(world.served(client))
        await asyncio.wait([waiting], timeout=0.05)
        assert not waiting.done() and not listener.connections
        listener.start()
        listener.start()
        assert await waiting

    world.run(main)
