from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.model.ports import Buffer, File, FileSlice
from tidelog.server.disk import DiskFileSystem
from tidelog.server.serving import sending
from tidelog.server.serving.page_cache import Opened
from tidelog.server.serving.sending import COLD, PEER_SLOW, SENT, SMALL_SLICE, TURN_OVER, Output, TruncatedFile
from tidelog.server.serving.transport import PlainTransport

CONTENT = random.Random(7).randbytes(3 * 1024 * 1024)


class Peer(PlainTransport):
    """A socket that accepts a given number of bytes; 0 once, when it has taken less than it was offered."""

    __slots__ = ("calls", "full", "limit", "received", "taking")

    def __init__(self, limit: int = 1 << 30) -> None:
        self.received = bytearray()
        self.limit = limit
        self.full = False
        self.calls: list[str] = []

    def _take(self, data: bytes) -> int:
        if self.full:
            self.full = False
            return 0
        taken = data[: self.limit]
        self.full = len(taken) < len(data)
        self.received += taken
        return len(taken)

    def send(self, data: Buffer) -> int:
        self.calls.append("send")
        return self._take(bytes(data))

    def send_all(self, buffers: Sequence[Buffer], *, more: bool) -> int:
        self.calls.append("more" if more else "all")
        return self._take(b"".join(bytes(buffer) for buffer in buffers))

    def send_file(self, fd: int, position: int, length: int) -> int:
        import os

        self.calls.append("file")
        data = os.pread(fd, length, position)
        taken = self._take(data)
        return taken or (-1 if data else 0)


class MemoryFile:
    """A file without a descriptor, as the simulator has them."""

    path = "memory"

    def read(self, position: int, length: int) -> bytes:
        return CONTENT[position : position + length]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    path = tmp_path_factory.mktemp("sending") / "00000000000000000000.log"
    path.write_bytes(CONTENT)
    return DiskFileSystem().open(str(path))


@pytest.fixture(autouse=True)
def everything_is_resident(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the file system under the tests can tell about its pages."""

    def read(opened: Opened, position: int, into: memoryview) -> int:
        import os

        return os.preadv(opened.fd, [into], position)

    monkeypatch.setattr(sending, "read_resident", read)
    monkeypatch.setattr(sending, "resident_length", lambda opened, position, length: length)


def finish(output: Output, state: int) -> list[int]:
    """Go on as a connection does, until everything has left; the states on the way."""
    states = [state]
    while state != SENT:
        if state == COLD:
            output.warmed(output.cold_read()())
        state = output.pump()
        states.append(state)
    return states


def test_a_small_buffer_leaves_in_one_call() -> None:
    peer = Peer()
    output = Output(peer)
    assert output.send([b"answer"]) == SENT
    assert (bytes(peer.received), peer.calls, bool(output)) == (b"answer", ["send"], False)


def test_what_a_slow_peer_did_not_take_waits() -> None:
    peer = Peer(limit=4)
    output = Output(peer)
    assert output.send([b"answer"]) == PEER_SLOW
    assert output
    finish(output, output.pump())
    assert bytes(peer.received) == b"answer"


def test_a_small_slice_leaves_with_the_bytes_around_it_in_one_call(file: File) -> None:
    peer = Peer()
    assert Output(peer).send([b"head", FileSlice(file, 10, 100), b"tail"]) == SENT
    assert bytes(peer.received) == b"head" + CONTENT[10:110] + b"tail"
    assert peer.calls == ["all"]


def test_a_large_slice_leaves_by_sendfile_its_header_held_back_for_it(file: File) -> None:
    peer = Peer()
    assert Output(peer).send([b"head", FileSlice(file, 1, SMALL_SLICE + 1), b"tail"]) == SENT
    assert bytes(peer.received) == b"head" + CONTENT[1 : SMALL_SLICE + 2] + b"tail"
    assert peer.calls == ["more", "file", "send"]


def test_a_transport_that_must_see_the_bytes_gets_them(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Peer, "can_sendfile", False)
    peer = Peer()
    output = Output(peer)
    finish(output, output.send([FileSlice(file, 5, 1_000_000)]))
    assert bytes(peer.received) == CONTENT[5:1_000_005]
    assert "file" not in peer.calls


def test_a_file_without_a_descriptor_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer()
    memory: File = MemoryFile()  # type: ignore[assignment]
    output = Output(peer)
    finish(output, output.send([FileSlice(memory, 0, 50), FileSlice(memory, 7, 500_000)]))
    assert bytes(peer.received) == CONTENT[:50] + CONTENT[7:500_007]


def test_cold_bytes_are_read_by_a_job_and_never_by_the_loop(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "read_resident", lambda opened, position, into: -1)
    monkeypatch.setattr(sending, "resident_length", lambda opened, position, length: 0)
    peer = Peer()
    output = Output(peer)
    states = finish(output, output.send([b"head", FileSlice(file, 3, 700_000), b"mid", FileSlice(file, 9, 77)]))
    assert bytes(peer.received) == b"head" + CONTENT[3:700_003] + b"mid" + CONTENT[9:86]
    assert states.count(COLD) == 4
    assert "file" not in peer.calls


def test_what_comes_before_a_cold_slice_leaves_first(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "read_resident", lambda opened, position, into: -1)
    peer = Peer()
    output = Output(peer)
    assert output.send([b"head", FileSlice(file, 0, 10)]) == COLD
    assert bytes(peer.received) == b"head"


def test_others_have_their_turn_during_a_large_answer(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "TURN_BYTES", 1024 * 1024)
    peer = Peer()
    output = Output(peer)
    assert TURN_OVER in finish(output, output.send([FileSlice(file, 0, len(CONTENT))]))
    assert bytes(peer.received) == CONTENT


def test_a_file_that_ends_too_early_is_an_error_in_every_way(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = FileSlice(file, len(CONTENT) - 10, SMALL_SLICE * 2)
    for parts in ([beyond], [FileSlice(file, len(CONTENT) - 10, 20)]):
        output = Output(Peer())
        with pytest.raises(TruncatedFile):
            finish(output, output.send(parts))
    monkeypatch.setattr(Peer, "can_sendfile", False)
    output = Output(Peer())
    with pytest.raises(TruncatedFile):
        finish(output, output.send([beyond]))


def test_a_connection_that_is_gone_lets_go_of_its_files(file: File) -> None:
    output = Output(Peer(limit=1))
    output.send([FileSlice(file, 0, 100)])
    output.clear()
    assert not output


def test_a_file_may_lose_its_descriptor_between_two_calls(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(CONTENT)
    file = DiskFileSystem().open(str(tmp_path / "log"))
    peer = Peer(limit=70_000)
    output = Output(peer)
    state = output.send([FileSlice(file, 0, 500_000)])
    while state != SENT:
        file.close()
        state = output.pump()
    assert bytes(peer.received) == CONTENT[:500_000]


@settings(deadline=None)
@given(data=st.data())
def test_whatever_the_peer_takes_the_bytes_arrive_in_order(file: File, data: st.DataObject) -> None:
    part = st.one_of(
        st.binary(max_size=300),
        st.builds(FileSlice, st.just(file), st.integers(0, 1000), st.integers(1, 100)),
        st.builds(FileSlice, st.just(file), st.integers(0, 1000), st.integers(SMALL_SLICE + 1, SMALL_SLICE * 3)),
    )
    parts = data.draw(st.lists(part, max_size=8))
    peer = Peer(limit=data.draw(st.sampled_from([1, 7, 1000, 50_000, 1 << 20])) if sum(map(length, parts)) < 5000 else 9999)
    output = Output(peer)
    finish(output, output.send(parts))
    assert bytes(peer.received) == b"".join(part.read() if isinstance(part, FileSlice) else part for part in parts)


def length(part: bytes | FileSlice) -> int:
    return part.length if isinstance(part, FileSlice) else len(part)
