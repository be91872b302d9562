"""Strangers in large numbers beside clients that are served; each runs in a process of its own and prints what it saw as JSON.

python -m tests.attack.flood bystander PORT SECONDS          Metadata every 5 ms on a connection that is logged in
python -m tests.attack.flood logins PORT SECONDS CA          a new TLS connection and login every 100 ms
python -m tests.attack.flood half-open PORT SECONDS COUNT    connections that send a part of a ClientHello, from 5 addresses
python -m tests.attack.flood passwords PORT SECONDS RATE     logins with a wrong password, so many a second
"""

from __future__ import annotations

import contextlib
import json
import resource
import selectors
import socket
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attack.clients import ERROR_AT, METADATA, answer, handshake, log_in, plain
from tests.attack.nodes import USERS

USER, PASSWORD = next(iter(USERS.items()))
ADDRESSES = 5
OPENED_A_TURN = 40


def percentiles(times: list[float]) -> dict[str, float]:
    """In ms."""
    ordered = sorted(each * 1000 for each in times)
    return {
        "count": len(ordered),
        "p50": round(ordered[len(ordered) // 2], 3),
        "p99": round(ordered[int(len(ordered) * 0.99)], 3),
        "longest": round(ordered[-1], 3),
    }


def bystander(port: int, seconds: float) -> dict[str, Any]:
    connection = log_in(port, USER, PASSWORD)
    times = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        connection.sendall(METADATA)
        answer(connection)
        times.append(time.perf_counter() - begun)
        time.sleep(0.005)
    return percentiles(times)


def logins(port: int, seconds: float, authority: str) -> dict[str, Any]:
    context = ssl.create_default_context(cadata=Path(authority).read_text())
    times, failed = [], 0
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        try:
            connection = log_in(port, USER, PASSWORD, context)
            connection.sendall(METADATA)
            answer(connection)
            connection.close()
            times.append(time.perf_counter() - begun)
        except OSError:
            failed += 1
        time.sleep(0.1)
    return {**percentiles(times), "failed": failed}


class Crowd:
    """Non-blocking connections; ``opened`` is called with each new one, ``closed`` with what a closed one had received."""

    def __init__(self, port: int, first: bytes, counted: Callable[[bytes], str]) -> None:
        self.tally: Counter[str] = Counter()
        self._port = port
        self._first = first
        self._counted = counted
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._selector.get_map())

    def open(self, host: str = "127.0.0.1") -> None:
        connection = socket.socket()
        connection.bind((host, 0))
        connection.setblocking(False)
        connection.connect_ex(("127.0.0.1", self._port))
        self._selector.register(connection, selectors.EVENT_WRITE, bytearray())
        self.tally["opened"] += 1

    def step(self, timeout: float) -> None:
        for key, events in self._selector.select(timeout):
            connection: socket.socket = key.fileobj  # type: ignore[assignment]
            try:
                if events & selectors.EVENT_WRITE:
                    connection.send(self._first)
                    self._selector.modify(connection, selectors.EVENT_READ, key.data)
                    continue
                data = connection.recv(4096)
            except OSError:
                data = b""
            key.data.extend(data)
            if not data:
                self._selector.unregister(connection)
                connection.close()
                self.tally[self._counted(bytes(key.data))] += 1


def half_open(port: int, seconds: float, count: int) -> dict[str, Any]:
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello := ssl.MemoryBIO(), server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    crowd = Crowd(port, hello.read()[:200], lambda data: "closed by the node")
    end = time.perf_counter() + seconds
    most = 0
    while time.perf_counter() < end:
        for number in range(min(OPENED_A_TURN, count - len(crowd))):
            crowd.open(f"127.0.0.{2 + (crowd.tally['opened'] + number) % ADDRESSES}")
        crowd.step(0.01)
        most = max(most, len(crowd))
    return {**crowd.tally, "most at once": most, "open at the end": len(crowd)}


def passwords(port: int, seconds: float, rate: int) -> dict[str, Any]:
    def counted(data: bytes) -> str:
        size = int.from_bytes(data[:4])
        refused = data[4 + size :][ERROR_AT : ERROR_AT + 2] == (58).to_bytes(2)
        return "refused" if refused else "closed without an answer"

    crowd = Crowd(port, handshake("PLAIN") + plain(USER, "not the password"), counted)
    begun = time.perf_counter()
    while (now := time.perf_counter() - begun) < seconds:
        for _ in range(min(OPENED_A_TURN, int(now * rate) - crowd.tally["opened"])):
            crowd.open()
        crowd.step(0.001)
    return {**crowd.tally, "a second": round(crowd.tally["refused"] / seconds)}


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kind, port, seconds, *more = sys.argv[1:]
    match kind:
        case "bystander":
            found = bystander(int(port), float(seconds))
        case "logins":
            found = logins(int(port), float(seconds), more[0])
        case "half-open":
            found = half_open(int(port), float(seconds), int(more[0]))
        case _:
            found = passwords(int(port), float(seconds), int(more[0]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
