"""The network between named places: who may say what to whom, and when."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.faults.network import CLIENTS, LARGEST_BACKLOG_BYTES, Network, address
from tests.interop.nodes import free_ports

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a process all of 127.0.0.0/8")

BOUND_S = 10.0


class Echo:
    """Place 2: says back what it hears."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    @staticmethod
    def _echo(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                connection.sendall(data)


Connect = Callable[..., socket.socket]


@pytest.fixture
def network() -> Iterator[Network]:
    with Network([1, 2, 3]) as network:
        yield network


@pytest.fixture
def connect(network: Network) -> Iterator[Connect]:
    echo = Echo()
    (port,) = free_ports(1)
    network.door(2, port, echo.port)
    network.open(2)
    opened = []

    def connect(place: int | None = None) -> socket.socket:
        source = (address(place), 0) if place else None
        opened.append(socket.create_connection(("127.0.0.1", port), BOUND_S, source_address=source))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()
    echo.listener.close()


def said_back(connection: socket.socket, data: bytes) -> bool:
    connection.sendall(data)
    return connection.recv(100) == data


def heard_nothing(connection: socket.socket, network: Network) -> bool:
    """Nothing has arrived while another connection's requests were answered many times."""
    connection.setblocking(False)
    try:
        for _ in range(20):
            network.passed_bytes.copy()
            network.slow([], [], 0)  # a trip through the network's loop
        connection.recv(1)
    except BlockingIOError:
        return True
    finally:
        connection.settimeout(BOUND_S)
    return False


def test_what_is_said_passes_both_ways(connect: Connect) -> None:
    assert said_back(connect(1), b"hello")


def test_a_cut_holds_one_place_and_leaves_others_alone(network: Network, connect: Connect) -> None:
    first, third, client = connect(1), connect(3), connect()
    assert said_back(first, b"1") and said_back(third, b"3") and said_back(client, b"c")
    network.part([1], [2])
    first.sendall(b"held")
    assert said_back(third, b"3") and said_back(client, b"c")
    assert heard_nothing(first, network)
    network.heal()
    assert first.recv(4) == b"held"


def test_a_one_way_cut_lets_questions_through_and_keeps_answers(network: Network, connect: Connect) -> None:
    first = connect(1)
    assert said_back(first, b"1")
    before = network.passed_bytes["2", "1"]
    network.cut([2], [1])
    first.sendall(b"asked")
    while network.passed_bytes["2", "1"] < before + 5:  # the answer has come as far as the network
        network.slow([], [], 0)
    assert heard_nothing(first, network)
    network.heal()
    assert first.recv(5) == b"asked"


def test_clients_are_a_place_of_their_own(network: Network, connect: Connect) -> None:
    client, first = connect(), connect(1)
    assert said_back(client, b"c") and said_back(first, b"1")
    network.part([CLIENTS], [2])
    client.sendall(b"held")
    assert said_back(first, b"1")
    assert heard_nothing(client, network)
    network.heal()
    assert client.recv(4) == b"held"


def test_connections_over_a_cut_link_come_about_when_it_is_healed(network: Network, connect: Connect) -> None:
    network.part([1], [2])
    first = connect(1)
    first.sendall(b"early")
    assert heard_nothing(first, network)
    network.heal()
    assert first.recv(5) == b"early"


def test_an_end_waits_behind_what_was_said(network: Network, connect: Connect) -> None:
    first = connect(1)
    assert said_back(first, b"1")
    network.cut([2], [1])
    first.sendall(b"last")
    first.shutdown(socket.SHUT_WR)
    network.heal()
    assert first.recv(4) == b"last"
    assert first.recv(1) == b""


def test_order_stays_under_latency_and_more_than_the_backlog_passes(network: Network, connect: Connect) -> None:
    first = connect(1)
    network.slow([1], [2], 0.001, 0.002)
    data = bytes(range(256)) * (LARGEST_BACKLOG_BYTES // 128)
    sender = threading.Thread(target=first.sendall, args=(data,))
    sender.start()
    got = bytearray()
    while len(got) < len(data):
        part = first.recv(1 << 16)
        assert part, "it ended early"
        got += part
    sender.join()
    assert bytes(got) == data


def test_doors_that_are_shut_refuse(network: Network, connect: Connect) -> None:
    connection = connect(1)
    assert said_back(connection, b"1")
    network.shut(2)
    with pytest.raises(ConnectionRefusedError):
        connect(1)
    assert said_back(connection, b"still there")
    network.open(2)
    assert said_back(connect(1), b"again")
