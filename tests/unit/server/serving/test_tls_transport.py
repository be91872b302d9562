"""The transport under TLS: bytes, back-pressure, ends, and what OpenSSL demands."""

from __future__ import annotations

import random
import socket
import ssl
from collections.abc import Iterator

import pytest

from tests.unit.server.serving.tls_pairs import client_context, listener, secured_pair
from tidelog.server.serving.tls_transport import RECEIVE_BYTES, RECORD_BYTES, TlsTransport

Pair = tuple[TlsTransport, ssl.SSLSocket]


@pytest.fixture(params=["TLSv1.2", "TLSv1.3"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    ours, theirs = secured_pair(listener(enabled_protocols=request.param).context, client_context())
    assert theirs.version() == request.param
    yield TlsTransport(ours), theirs
    ours.close()
    theirs.close()


def received(peer: ssl.SSLSocket) -> bytes:
    """All that has arrived."""
    data = b""
    try:
        while more := peer.recv(1 << 16):
            data += more
    except ssl.SSLWantReadError:
        pass
    return data


def test_bytes_go_both_ways(pair: Pair) -> None:
    transport, peer = pair
    assert transport.send(b"abc") == 3
    assert transport.send_all([b"d", memoryview(b"ef")], more=True) == 3
    assert received(peer) == b"abcdef"
    peer.send(b"hello")
    buffer = bytearray(10)
    assert transport.receive(buffer) == 5
    assert buffer[:5] == b"hello"
    assert transport.receive(buffer) == -1


def test_a_slow_peer_gets_every_byte_once_whatever_is_offered_next(pair: Pair) -> None:
    """The transport is offered the rest of the stream in pieces of any size, as the queue of a connection does, even shorter ones
    than those that OpenSSL has already accepted."""
    transport, peer = pair
    rng = random.Random(3)
    data = rng.randbytes(3_000_000)
    sent, got, full = 0, bytearray(), 0
    while sent < len(data):
        size = rng.choice([1, 100, RECORD_BYTES, 50_000, 131_072])
        taken = transport.send(memoryview(data)[sent : sent + size])
        full += taken < min(size, len(data) - sent)
        sent += taken
        if not taken:
            got += received(peer)
    got += received(peer)
    assert bytes(got) == data
    assert full > 3


def test_what_openssl_holds_is_reported_and_read(pair: Pair) -> None:
    transport, peer = pair
    peer.send(b"x" * 5000)
    assert transport.receive(bytearray(2000)) == 2000
    assert transport.holds_bytes
    assert transport.receive(bytearray(9000)) == 3000
    assert not transport.holds_bytes


def test_a_receive_takes_several_records_and_ends_at_its_bound(pair: Pair) -> None:
    transport, peer = pair
    sent = 0
    try:
        while sent < 4 * RECEIVE_BYTES:
            sent += peer.send(b"x" * RECORD_BYTES)
    except ssl.SSLWantWriteError:
        pass
    buffer = bytearray(8 * RECEIVE_BYTES)
    first = transport.receive(buffer)
    assert RECORD_BYTES < first <= RECEIVE_BYTES
    total = first
    while (count := transport.receive(buffer)) > 0:
        total += count
    assert total == sent


def test_the_end_of_the_peer_is_seen_behind_its_last_bytes(pair: Pair) -> None:
    transport, peer = pair
    assert not transport.peer_has_ended()
    peer.send(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        peer.unwrap()
    # One byte was read to find out; it is delivered before the rest.
    assert not transport.peer_has_ended()
    assert transport.holds_bytes
    assert not transport.peer_has_ended()
    buffer = bytearray(10)
    assert transport.receive(buffer) == 4
    assert buffer[:4] == b"last"
    assert transport.peer_has_ended()
    assert transport.holds_bytes
    assert transport.receive(buffer) == 0


def test_a_peer_that_closes_without_a_word_has_ended_too(pair: Pair) -> None:
    transport, peer = pair
    socket.socket(fileno=peer.detach()).close()
    assert transport.peer_has_ended()
    assert transport.receive(bytearray(1)) == 0


def test_sending_to_a_peer_that_is_gone_is_an_error_of_the_connection(pair: Pair) -> None:
    """Not another OSError, which would be one of the disk that the answer is read from."""
    transport, peer = pair
    socket.socket(fileno=peer.detach()).close()
    assert transport.receive(bytearray(1)) == 0
    with pytest.raises(ConnectionResetError, match="TLS ended"):
        transport.send(b"answer")


def test_bytes_that_are_no_record_are_an_error(pair: Pair) -> None:
    transport, peer = pair
    raw = socket.socket(fileno=peer.detach())
    raw.send(b"GET / HTTP/1.1\r\n")
    with pytest.raises(ssl.SSLError):
        transport.receive(bytearray(100))
    raw.close()


def test_closing_says_goodbye(pair: Pair) -> None:
    transport, peer = pair
    transport.close()
    assert peer.recv(10) == b""


class Turning:
    """An SSLSocket whose reads want to write and whose writes want to read, as during a key update."""

    family = socket.AF_UNIX

    def __init__(self) -> None:
        self.turning = True
        self.sent: list[bytes] = []

    def fileno(self) -> int:
        return -1

    def pending(self) -> int:
        return 0

    def recv_into(self, room: memoryview) -> int:
        if self.turning:
            raise ssl.SSLWantWriteError
        room[:2] = b"ok"
        return 2

    def recv(self, count: int) -> bytes:
        raise ssl.SSLWantWriteError

    def send(self, data: bytes) -> int:
        if self.turning:
            raise ssl.SSLWantReadError
        self.sent.append(bytes(data))
        return len(data)


def test_a_read_that_has_to_write_and_a_write_that_has_to_read_say_so() -> None:
    inner = Turning()
    transport = TlsTransport(inner)  # type: ignore[arg-type]
    assert transport.receive(bytearray(4)) == -1
    assert transport.read_wants_write
    assert not transport.peer_has_ended()
    assert transport.send(b"abc") == 0
    assert transport.write_wants_read
    inner.turning = False
    assert transport.receive(bytearray(4)) == 2
    assert transport.send(b"abcdef") == 6
    assert inner.sent == [b"abc", b"def"]
    assert not (transport.read_wants_write or transport.write_wants_read)


def over_tcp() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection over the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        return server.accept()[0], theirs


@pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="Linux holds records together")
@pytest.mark.parametrize("length", [RECORD_BYTES, 3 * RECORD_BYTES, 8_000_000])
def test_records_of_one_send_leave_together_and_none_is_held_back(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = secured_pair(listener().context, client_context(), over_tcp())
    asked: list[int] = []
    option = ours.setsockopt

    def noted(level: int, name: int, value: int) -> None:
        if (level, name) == (socket.IPPROTO_TCP, socket.TCP_CORK):
            asked.append(value)
        option(level, name, value)

    monkeypatch.setattr(ours, "setsockopt", noted)
    transport = TlsTransport(ours)
    sent = transport.send(b"x" * length)
    assert asked == ([1, 0] if length > RECORD_BYTES else [])
    assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) == 0
    # A socket that is full takes a part, which leaves, too.
    assert sent == length or length == 8_000_000
    theirs.settimeout(60)
    got = 0
    while got < sent:
        got += len(theirs.recv(1 << 16))
    ours.close()
    theirs.close()


def test_files_are_never_sent_by_the_kernel(pair: Pair) -> None:
    assert not TlsTransport.can_sendfile
    with pytest.raises(OSError, match="encrypted before"):
        pair[0].send_file(0, 0, 1)
