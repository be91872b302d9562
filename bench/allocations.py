"""``python -m bench.allocations``: how often, and for how many bytes, a node asks Python's allocators per request.

The node runs in a thread of this process; what the thread that sends the requests allocates is left out. Objects from
CPython's free lists (small tuples, floats) do not count, as they cost no allocation. Needs a C compiler.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.java_load import produce_request
from tidelog.testing import Broker
from tools.jars import cache

SOURCE = Path(__file__).with_suffix(".c")
REQUESTS = 2000
WARM_UP = 500


class Counter(ctypes.PyDLL):
    """The compiled counter. Its calls keep the interpreter's lock."""


def counter() -> Counter:
    """Compile (once) and load."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("allocations: no C compiler (cc): install gcc")
    target = cache() / f"allocations-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}.so"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(target), str(SOURCE)], check=True)
    loaded = Counter(str(target))
    for name in ("calls_so_far", "bytes_so_far"):
        getattr(loaded, name).restype = ctypes.c_uint64
    return loaded


def fetch_request(topic: str, offset: int) -> bytes:
    """A Fetch v11 of partition 0 without a session, up to 1 MiB."""
    name = topic.encode()
    header = struct.pack(">hhih", 1, 11, 1, -1)
    body = struct.pack(">iiiibiiih", -1, 500, 1, 1 << 20, 0, 0, -1, 1, len(name)) + name
    body += struct.pack(">iiiqqiih", 1, 0, -1, offset, -1, 1 << 20, 0, 0)
    return struct.pack(">i", len(header) + len(body)) + header + body


def exchange(connection: socket.socket, request: bytes, buffer: bytearray) -> int:
    """One request and its whole answer; the answer's length."""
    connection.sendall(request)
    have, need = 0, 4
    while have < need:
        have += connection.recv_into(memoryview(buffer)[have:])
        if have >= 4:
            need = 4 + int.from_bytes(buffer[:4], "big")
    return need


def per_request(count: Counter, connection: socket.socket, request: bytes) -> dict[str, float]:
    """Allocator calls and bytes per request, over many."""
    buffer = bytearray(2 << 20)
    for _ in range(WARM_UP):
        exchange(connection, request, buffer)
    calls, size = count.calls_so_far(), count.bytes_so_far()
    for _ in range(REQUESTS):
        length = exchange(connection, request, buffer)
    calls, size = count.calls_so_far() - calls, count.bytes_so_far() - size
    return {
        "calls": round(calls / REQUESTS, 1),
        "bytes": round(size / REQUESTS),
        "request_bytes": len(request),
        "answer_bytes": length,
    }


def measure() -> dict[str, dict[str, float]]:
    """Produce of one small record, of 16 KiB, a fetch of one such batch, and one that finds nothing new at once."""
    count = counter()
    count.begin()
    count.leave_this_thread_out()
    data = tempfile.mkdtemp(prefix="tidelog-allocations-")
    try:
        with Broker(data=data) as broker:
            for topic in ("small", "large"):
                broker.create_topic(topic)
            with socket.create_connection(("127.0.0.1", broker.port)) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return {
                    "produce, one record of 100 B": per_request(count, connection, produce_request("small", 100)[0]),
                    "produce, one record of 16 KiB": per_request(count, connection, produce_request("large", 16384)[0]),
                    "fetch, 1 MiB": per_request(count, connection, fetch_request("large", 0)),
                    "fetch, one record of 16 KiB": per_request(count, connection, fetch_request("large", WARM_UP + REQUESTS - 1)),
                }
    finally:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=1)
    print()
