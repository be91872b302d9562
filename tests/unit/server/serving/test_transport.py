from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.server.serving.transport import PlainTransport


@pytest.fixture
def pair() -> Iterator[tuple[PlainTransport, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    yield PlainTransport(ours), theirs
    ours.close()
    theirs.close()


def test_bytes_go_both_ways(pair: tuple[PlainTransport, socket.socket]) -> None:
    transport, peer = pair
    assert transport.send(b"abc") == 3
    assert transport.send_all([b"d", memoryview(b"ef")], more=True) == 3
    assert transport.send_all([b"g"], more=False) == 1
    received = b""
    while len(received) < 7:
        received += peer.recv(100)
    assert received == b"abcdefg"
    peer.sendall(b"hello")
    buffer = bytearray(10)
    assert transport.receive(buffer) == 5
    assert buffer[:5] == b"hello"


def test_nothing_there_is_no_error(pair: tuple[PlainTransport, socket.socket]) -> None:
    transport, _ = pair
    assert transport.receive(bytearray(1)) == -1
    assert not transport.peer_has_ended()


def test_a_peer_that_reads_nothing_makes_send_take_nothing(pair: tuple[PlainTransport, socket.socket]) -> None:
    transport, _ = pair
    block = b"x" * 65536
    while transport.send(block):
        pass
    assert transport.send(block) == 0
    assert transport.send_all([block, block], more=False) == 0


def test_the_end_of_the_peer_is_seen_behind_its_last_bytes(pair: tuple[PlainTransport, socket.socket]) -> None:
    transport, peer = pair
    peer.sendall(b"last")
    peer.shutdown(socket.SHUT_WR)
    assert not transport.peer_has_ended()
    assert transport.receive(bytearray(10)) == 4
    assert transport.peer_has_ended()
    assert transport.receive(bytearray(10)) == 0


@pytest.mark.skipif(not PlainTransport.can_sendfile, reason="this system has no sendfile")
def test_a_part_of_a_file_is_sent_and_its_end_is_told(pair: tuple[PlainTransport, socket.socket], tmp_path: Path) -> None:
    transport, peer = pair
    (tmp_path / "file").write_bytes(b"0123456789")
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert transport.send_file(fd, 2, 5) == 5
        assert peer.recv(100) == b"23456"
        assert transport.send_file(fd, 10, 5) == 0
    finally:
        os.close(fd)
