"""A node on a system that lacks what Windows lacks: the names are taken away before it is imported."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tidelog.server import posix

ABSENT = """
import asyncio, importlib, os, shutil, socket, sys, types
# What the standard library has looked up already stays as it is; what our modules look up is gone.
import concurrent.futures, logging, multiprocessing, subprocess, tempfile, uuid
import confluent_kafka.admin

usage = shutil.disk_usage(".")
shutil.disk_usage = lambda path: usage
for name in ("uvloop", "fcntl", "resource"):
    sys.modules[name] = None
for name in "pread pwrite preadv pwritev sendfile statvfs fdatasync O_DIRECTORY O_CLOEXEC RWF_NOWAIT".split():
    delattr(os, name)
socket.socket.sendmsg = None


locked = set()
def locking(fd, mode, count):
    key = os.fstat(fd).st_ino
    if key in locked:
        raise PermissionError(13, "Permission denied")
    locked.add(key)
msvcrt = types.ModuleType("msvcrt")
msvcrt.locking, msvcrt.LK_NBLCK = locking, 2
sys.modules["msvcrt"] = msvcrt
"""

ROUND_TRIP = """
import sys
from confluent_kafka import Consumer, Producer, TopicPartition
from tidelog.server import posix
from tidelog.testing import Broker

assert not posix.HAS_POSITIONS and not posix.OPEN_FILES_MOVE and posix.fcntl is None
folder = sys.argv[1]
for number in range(2):
    with Broker(data=folder) as broker:
        locked.clear()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        if number == 0:
            broker.create_topic("gone")
            broker.create_topic("t", segment_bytes=1_048_576)
        for _ in range(20):
            producer.produce("t", value=b"x" * 100_000)
            producer.produce("gone", value=b"x") if number == 0 else None
            producer.flush()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        consumer.assign([TopicPartition("t", 0, 0)])
        got = []
        while len(got) < 20 * (number + 1):
            got += [message.value() for message in consumer.consume(10, 30)]
        assert set(got) == {b"x" * 100_000}
        consumer.close()
        if number == 0:
            from confluent_kafka.admin import AdminClient
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            admin.delete_topics(["gone"])["gone"].result(30)
        assert broker.topics == ["t"], broker.topics
print("read", len(got))
"""


def test_a_node_serves_and_starts_again_without_them(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-c", ABSENT + ROUND_TRIP, str(tmp_path / "data")]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=110, check=False)
    assert run.stdout.strip() == "read 40", run.stderr[-3000:]


def test_files_are_read_and_written_by_position_without_positional_calls(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    assert posix.seek_and_write(fd, b"abc", 3) == 3
    assert posix.seek_and_write(fd, memoryview(b"xyz"), 0) == 3
    assert posix.seek_and_read(fd, 10, 1) == b"yzabc"
    threads = [
        threading.Thread(target=posix.seek_and_write, args=(fd, bytes([number]) * 100, number * 100)) for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(posix.seek_and_read(fd, 100, number * 100) == bytes([number]) * 100 for number in range(20))
    os.close(fd)


def test_space_is_told_with_either_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total, free = posix.space(str(tmp_path))
    assert 0 < free <= total
    monkeypatch.delattr(os, "statvfs")
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"total": 5, "free": 3})())
    assert posix.space(str(tmp_path)) == (5, 3)


def test_a_signal_comes_to_the_loop_also_where_loops_have_no_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.SelectorEventLoop()
    monkeypatch.setattr(posix, "LOOPS_HEAR_SIGNALS", False)
    before = signal.getsignal(signal.SIGTERM)
    got: list[int] = []

    async def main() -> None:
        came = asyncio.Event()

        def callback() -> None:
            got.append(1)
            came.set()

        posix.on_signal(loop, signal.SIGTERM, callback)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(came.wait(), 30)

    try:
        loop.run_until_complete(main())
    finally:
        signal.signal(signal.SIGTERM, before)
        loop.close()
    assert got == [1]
