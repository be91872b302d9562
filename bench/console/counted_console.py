"""``tidelog console`` that counts: ``python -m bench.console.counted_console FILE FLAGS...``.

On SIGUSR1 it writes to FILE, as JSON, what happened since the last one: requests by ``API host:port``, and the longest work of
the event loop between two turns of a timer of 10 ms, in ms of CPU time, which other processes do not change.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tidelog.cli.main import run
from tidelog.client.net.async_connection import Line
from tidelog.console.web.serving import Server

TURN_S = 0.01


class Counts:
    """What was counted since it was written last."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._requests: Counter[str] = Counter()
        self._longest_s = 0.0

    def request(self, api: str, address: str) -> None:
        """One more."""
        self._requests[f"{api} {address}"] += 1

    async def watch_loop(self) -> None:
        """Forever: how much the loop's thread works between two turns of a timer."""
        last = time.thread_time()
        while True:
            await asyncio.sleep(TURN_S)
            now = time.thread_time()
            self._longest_s = max(self._longest_s, now - last)
            last = now

    def write(self) -> None:
        """And begin again."""
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({"requests": self._requests, "longest_ms": self._longest_s * 1000}))
        self._requests, self._longest_s = Counter(), 0.0
        os.replace(beside, self._file)


def watch(counts: Counts) -> None:
    """From now on every request of a client is counted, and every console's loop watched."""
    send, serve = Line.send, Server.serve

    def counted_send(self: Line, asked: Any) -> None:
        send(self, asked)
        transport = self._transport
        host, port = transport.get_extra_info("peername")[:2] if transport is not None else ("?", 0)
        counts.request(type(asked.request).__name__.removesuffix("Request"), f"{host}:{port}")

    async def watched_serve(self: Server, *args: Any, **options: Any) -> None:
        watching = asyncio.get_running_loop().create_task(counts.watch_loop())
        try:
            await serve(self, *args, **options)
        finally:
            watching.cancel()

    Line.send = counted_send  # type: ignore[method-assign]
    Server.serve = watched_serve  # type: ignore[method-assign]


def command() -> None:
    """The console, with the rest of the arguments."""
    counts = Counts(Path(sys.argv[1]))
    watch(counts)
    signal.signal(signal.SIGUSR1, lambda *_: counts.write())
    sys.argv = ["tidelog", "console", *sys.argv[2:]]
    run()


if __name__ == "__main__":
    command()
