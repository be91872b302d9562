"""The proxy does to bytes what it says, and nothing else."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from tests.faults.proxy import TO_BROKER, TO_CLIENT, Proxy


class Echo(socketserver.BaseRequestHandler):
    """Sends back what comes in, and notes it."""

    def handle(self) -> None:
        try:
            while data := self.request.recv(4096):
                assert isinstance(self.server, Echoes)
                self.server.heard.append(data)
                self.server.came.release()
                self.request.sendall(data)
        except OSError:
            return


class Echoes(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.came = threading.Semaphore(0)
        super().__init__(("127.0.0.1", 0), Echo)


@pytest.fixture
def echoes() -> Iterator[Echoes]:
    with Echoes() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def proxy(echoes: Echoes) -> Iterator[Proxy]:
    with Proxy(echoes.server_address[1]) as made:
        yield made


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def nothing_comes(connection: socket.socket) -> bool:
    connection.settimeout(0.1)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(10)


def ends(connection: socket.socket) -> bool:
    """Whether nothing comes any more, by a close or a reset."""
    try:
        return not connection.recv(1)
    except ConnectionError:
        return True


def test_bytes_pass_in_both_directions(proxy: Proxy) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"
        assert proxy.connections == 1


def test_delayed_bytes_come_in_order(proxy: Proxy) -> None:
    proxy.delay(0.001, jitter_s=0.01)
    with connect(proxy) as client:
        for number in range(20):
            client.sendall(b"%02d" % number)
        heard = b""
        while len(heard) < 40:
            heard += client.recv(100)
        assert heard == b"".join(b"%02d" % number for number in range(20))


def test_what_is_stalled_passes_once_it_is_healed(proxy: Proxy, echoes: Echoes) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"
        proxy.stall()
        client.sendall(b"two")
        assert nothing_comes(client)
        assert echoes.heard == [b"one"]
        proxy.heal()
        assert client.recv(10) == b"two"


def test_a_cut_to_the_client_lets_requests_arrive(proxy: Proxy, echoes: Echoes) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"
        assert echoes.came.acquire(timeout=10)
        proxy.cut(TO_CLIENT)
        client.sendall(b"two")
        assert echoes.came.acquire(timeout=10), "the request has arrived"
        assert nothing_comes(client)
        proxy.cut(TO_BROKER)
        assert client.recv(10) == b"two"
        client.sendall(b"three")
        assert nothing_comes(client)
        assert echoes.heard == [b"one", b"two"]


def test_dropped_connections_end_and_new_ones_work(proxy: Proxy) -> None:
    with connect(proxy) as client, connect(proxy) as other:
        for each in (client, other):
            each.sendall(b"one")
            assert each.recv(10) == b"one"
        assert proxy.drop() == 2
        for each in (client, other):
            assert ends(each)
    with connect(proxy) as client:
        client.sendall(b"two")
        assert client.recv(10) == b"two"


def test_refused_connections_end_at_once_until_it_is_healed(proxy: Proxy) -> None:
    proxy.refuse()
    with connect(proxy) as client:
        assert ends(client)
    proxy.heal()
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"


def test_a_broker_that_is_down_is_a_port_that_ends_connections(proxy: Proxy) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy.target = unused.getsockname()[1]
    with connect(proxy) as client:
        assert ends(client)
