"""What a throttled connection does with what arrives; the rest of a connection is in ``test_connection``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.unit.server.serving.test_connection import Side, World, echo, frame, settle, until
from tidelog.server.runtime import Alarm


class Alarms:
    """Stands in for the runtime's ``call_later``: the test fires the alarm."""

    def __init__(self, world: World) -> None:
        self.set: list[tuple[float, Callable[[], object]]] = []
        world.runtime.call_later = self.call_later  # type: ignore[method-assign]

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Alarm:
        entry = (delay_s, callback)
        self.set.append(entry)
        alarms = self.set

        class One:
            def cancel(self) -> None:
                if entry in alarms:
                    alarms.remove(entry)

        return One()

    def ring(self) -> None:
        _, callback = self.set.pop(0)
        callback()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def muting_side(world: World) -> Side:
    """Mutes its connection for 1.5 s at each request that begins with ``!``."""

    def handle(body: bytes) -> list[bytes]:
        if body.startswith(b"!"):
            side.connection.machine.throttle(1500)
        return echo(body)

    side = world.side(handle)
    return side


def test_the_answer_leaves_at_once_and_the_next_request_is_handled_when_the_time_is_over(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"b") + frame(b"c"))
        assert await side.receive(9) == frame(b"re:!a")
        await side.send(frame(b"d"))
        await settle()
        assert side.handled == [b"!a"] and [delay for delay, _ in alarms.set] == [1.5]
        alarms.ring()
        assert await side.receive(24) == frame(b"re:b") + frame(b"re:c") + frame(b"re:d")

    world.run(main)


def test_it_is_muted_again_by_what_it_asks_next(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"!b") + frame(b"c"))
        assert await side.receive(9) == frame(b"re:!a")
        alarms.ring()
        assert await side.receive(9) == frame(b"re:!b")
        await settle()
        assert side.handled == [b"!a", b"!b"] and len(alarms.set) == 1

    world.run(main)


def test_what_a_client_sent_before_it_went_away_is_handled_though_it_was_muted(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"b"))
        await until(lambda: alarms.set)
        await side.send(frame(b"c") + frame(b"!d") + frame(b"e"))
        side.client.shutdown(1)
        await settle()
        assert side.handled == [b"!a"] and not side.closed_connections
        while not side.closed_connections:
            if alarms.set:
                alarms.ring()
            await asyncio.sleep(0)
        assert side.handled == [b"!a", b"b", b"c", b"!d", b"e"] and not alarms.set

    world.run(main)


def test_nothing_more_may_have_come_after_what_is_left(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"b"))
        await until(lambda: alarms.set)
        side.client.shutdown(1)
        await settle()
        assert not side.closed_connections
        alarms.ring()
        await until(lambda: side.closed_connections)
        assert side.handled == [b"!a", b"b"]

    world.run(main)


def test_who_has_gone_is_not_muted(world: World) -> None:
    alarms = Alarms(world)
    never = world.runtime.loop.create_future()

    def handle(body: bytes) -> object:
        if body.startswith(b"!"):
            side.connection.machine.throttle(1500)
        return wait() if body == b"wait" else echo(body)

    async def wait() -> list[bytes]:
        await never
        return []

    side = world.side(handle)

    async def main() -> None:
        await side.send(frame(b"wait") + frame(b"!a") + frame(b"b"))
        await until(lambda: side.handled)
        side.client.shutdown(1)
        await until(lambda: side.closed_connections)
        assert side.handled == [b"wait", b"!a", b"b"] and not alarms.set

    world.run(main)


def test_a_muted_client_that_goes_and_has_left_nothing_is_noticed(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a"))
        await side.receive(9)
        side.client.close()
        await until(lambda: side.closed_connections)
        assert not alarms.set

    world.run(main)


def test_other_quotas_end_the_wait(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"b"))
        assert await side.receive(9) == frame(b"re:!a")
        side.connection.meter()
        assert side.handled == [b"!a"], "not before the change is through"
        assert await side.receive(8) == frame(b"re:b")
        assert not alarms.set

    world.run(main)


def test_a_connection_that_is_drained_does_not_wait_for_its_time(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"b"))
        await side.receive(9)
        side.connection.machine.drain()
        assert await side.ended() and side.handled == [b"!a"] and not alarms.set

    world.run(main)


def test_quotas_that_change_twice_at_once_end_one_wait(world: World) -> None:
    alarms, side = Alarms(world), muting_side(world)

    async def main() -> None:
        await side.send(frame(b"!a") + frame(b"!b") + frame(b"c"))
        assert await side.receive(9) == frame(b"re:!a")
        side.connection.meter()
        side.connection.meter()
        assert await side.receive(9) == frame(b"re:!b")
        await settle()
        assert side.handled == [b"!a", b"!b"] and len(alarms.set) == 1
        side.connection.close()
        assert not alarms.set

    world.run(main)
