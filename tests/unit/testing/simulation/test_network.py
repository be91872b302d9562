"""TCP in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tidelog.model.errors import ConfigError
from tidelog.testing.simulation.loop import Agenda, SimLoop, new_loop
from tidelog.testing.simulation.network import Network, SimListener
from tidelog.testing.simulation.sockets import SimSocket
from tidelog.testing.simulation.stream import WINDOW_BYTES

SERVER, CLIENT = "10.0.0.1", "10.1.0.1"


class World:
    """A server that keeps what it reads, and a client."""

    def __init__(self) -> None:
        self.agenda = Agenda(1)
        self.network = Network(self.agenda, 1)
        self.server, self.client = new_loop(self.agenda, "server", seed=1), new_loop(self.agenda, "client", seed=2)
        self.network.attach(self.server, SERVER)
        self.network.attach(self.client, CLIENT)
        self.listener: SimListener = self.network.bind(self.server, SERVER, 9092)
        self.listener.listen(5)
        self.server.add_reader(self.listener.fileno(), self._accept)
        self.accepted: list[SimSocket] = []
        self.got = bytearray()
        self.ends: list[str] = []

    def _accept(self) -> None:
        connected, _ = self.listener.accept()
        self.accepted.append(connected)
        self.server.add_reader(connected.fileno(), self._read, connected)

    def _read(self, connected: SimSocket) -> None:
        try:
            data = connected.recv(1 << 20)
        except OSError as error:
            self.server.remove_reader(connected.fileno())
            self.ends.append(type(error).__name__)
            return
        if not data:
            self.server.remove_reader(connected.fileno())
            self.ends.append("eof")
        self.got += data

    def run(self, job: Callable[[], Awaitable[Any]], deadline: float = 60) -> Any:
        async def whole() -> Any:
            return await job()

        task = self.client.create_task(whole())
        assert self.agenda.run_until(task.done, deadline)
        return task.result()

    def until(self, done: Callable[[], bool], deadline: float = 60) -> bool:
        return self.agenda.run_until(done, deadline)


async def _connected(world: World) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(SERVER, 9092)


def test_bytes_arrive_whole_in_order_and_late_and_then_the_end() -> None:
    world = World()
    _, writer = world.run(lambda: _connected(world))
    for number in range(100):
        writer.write(b"%03d" % number * 1000)
    writer.close()
    assert world.until(lambda: world.ends == ["eof"])
    assert bytes(world.got) == b"".join(b"%03d" % number * 1000 for number in range(100))
    assert world.agenda.now > 0


@pytest.mark.parametrize("pause", [0.0002, 1.0])
def test_bytes_that_a_cut_meets_on_their_way_arrive_in_order_too(pause: float) -> None:
    world = World()
    sent = [b"%03d" % number * 100 for number in range(200)]

    async def job() -> None:
        _, writer = await _connected(world)
        for number, data in enumerate(sent):
            writer.write(data)
            await asyncio.sleep(0.0001)
            if number % 10 == 5:
                world.network.cut(CLIENT, SERVER)
                await asyncio.sleep(pause)
                world.network.heal()
        writer.close()

    world.run(job)
    assert world.until(lambda: world.ends == ["eof"])
    assert bytes(world.got) == b"".join(sent)


def test_what_was_sent_before_a_close_arrives_after_a_cut_and_then_the_end() -> None:
    world = World()

    async def job() -> None:
        _, writer = await _connected(world)
        world.network.cut(CLIENT, SERVER)
        writer.write(b"held back")
        writer.close()
        await asyncio.sleep(1.0)
        assert (bytes(world.got), world.ends) == (b"", [])
        world.network.heal()

    world.run(job)
    assert world.until(lambda: world.ends == ["eof"])
    assert bytes(world.got) == b"held back"


def test_the_other_side_answers_on_the_same_connection() -> None:
    world = World()
    reader, _ = world.run(lambda: _connected(world))
    world.until(lambda: bool(world.accepted))
    assert world.accepted[0].send(b"hello") == 5
    assert world.run(lambda: reader.readexactly(5)) == b"hello"


def test_a_window_that_is_full_holds_the_sender_up() -> None:
    world = World()
    world.run(lambda: _connected(world))
    world.until(lambda: bool(world.accepted))
    sent = world.accepted[0].send(bytes(WINDOW_BYTES * 2))
    assert sent == WINDOW_BYTES
    with pytest.raises(BlockingIOError):
        world.accepted[0].send(b"more")


def test_nobody_listening_is_a_refusal_and_nobody_there_is_silence() -> None:
    world = World()
    with pytest.raises(ConnectionRefusedError):
        world.run(lambda: asyncio.open_connection(SERVER, 9999))
    task = world.client.create_task(asyncio.wait_for(asyncio.open_connection("10.9.9.9", 9092), 5))
    world.until(task.done)
    assert isinstance(task.exception(), TimeoutError)


def test_a_cut_holds_bytes_back_in_one_direction_until_it_is_healed() -> None:
    world = World()
    reader, writer = world.run(lambda: _connected(world))
    world.until(lambda: bool(world.accepted))
    world.network.cut(CLIENT, SERVER)
    writer.write(b"held")
    world.accepted[0].send(b"passes")
    assert world.run(lambda: reader.readexactly(6)) == b"passes"
    world.agenda.call_later(30, world.network.heal)
    assert world.until(lambda: bytes(world.got) == b"held")
    assert world.agenda.now >= 30


def test_a_killed_process_resets_its_connections_and_a_machine_without_power_says_nothing() -> None:
    for silent in (False, True):
        world = World()
        reader, _ = world.run(lambda world=world: _connected(world))  # type: ignore[misc]
        world.until(lambda world=world: bool(world.accepted))  # type: ignore[misc]
        world.server.end()
        world.network.gone(world.server, silent=silent)
        task = world.client.create_task(asyncio.wait_for(reader.read(1), 20))
        world.until(task.done)
        assert isinstance(task.exception(), TimeoutError if silent else ConnectionResetError)


def test_where_a_process_was_killed_connections_are_refused_and_where_the_power_is_lost_nobody_answers() -> None:
    for silent in (False, True):
        world = World()
        world.server.end()
        world.network.gone(world.server, silent=silent)
        task = world.client.create_task(asyncio.wait_for(asyncio.open_connection(SERVER, 9092), 5))
        world.until(task.done)
        assert isinstance(task.exception(), TimeoutError if silent else ConnectionRefusedError)


def test_who_comes_back_at_an_address_resets_the_connections_of_who_was_there() -> None:
    world = World()
    reader, _ = world.run(lambda: _connected(world))
    world.until(lambda: bool(world.accepted))
    world.server.end()
    world.network.gone(world.server, silent=True)
    again: SimLoop = new_loop(world.agenda, "server again", seed=3)
    world.network.attach(again, SERVER)
    with pytest.raises(ConnectionResetError):
        world.run(lambda: reader.read(1))


def test_a_port_is_taken_once() -> None:
    world = World()
    with pytest.raises(ConfigError, match="in use"):
        world.network.bind(world.server, SERVER, 9092)
    world.listener.close()
    world.network.bind(world.server, SERVER, 9092)
