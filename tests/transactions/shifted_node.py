"""A node whose wall clock a test can set, and whose coordinators it can reload.

``python shifted_node.py FILE PROPERTIES``: milliseconds to add to the clock lie in eight bytes of FILE; SIGUSR1 makes all
coordinators read their logs again. Only the test's composition knows of that; the node has no such settings. Its steady clock
stays what it is, as a machine's does when a user sets the time.
"""

from __future__ import annotations

import asyncio
import mmap
import signal
import struct
import sys
from pathlib import Path
from typing import Any

from tidelog.cli import start
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime, system_now_ms

OFFSET = struct.Struct("<q")


def write_offset(path: Path, offset_ms: int) -> None:
    """It is so much later, or earlier, than the machine says; seen at once by a node that runs."""
    if not path.exists():
        path.write_bytes(OFFSET.pack(offset_ms))
    with path.open("r+b") as file:
        file.write(OFFSET.pack(offset_ms))


class ForgetfulNode(Node):
    """Its coordinators fail when it gets SIGUSR1."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.runtime.loop.add_signal_handler(signal.SIGUSR1, self._forget)

    def _forget(self) -> None:
        if hasattr(self, "coordinators"):
            for shards in (self.coordinators.groups, self.coordinators.transactions):
                shards.reload()


def main() -> None:
    path, properties = sys.argv[1:]
    with open(path, "r+b") as file:
        shared = mmap.mmap(file.fileno(), OFFSET.size)

    class ShiftedRuntime(LoopRuntime):
        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(loop)
            self.now_ms = lambda: system_now_ms() + int(OFFSET.unpack_from(shared)[0])

    start.LoopRuntime = ShiftedRuntime  # type: ignore[attr-defined]
    start.Node = ForgetfulNode  # type: ignore[attr-defined]
    start.command([properties])


if __name__ == "__main__":
    main()
