"""A node in a thread of the test's process, for commands that talk to one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelog.config.resolve import BrokerConfig
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime, new_event_loop


@contextmanager
def running_node(directory: Path, **settings: str) -> Iterator[str]:
    """``host:port`` of a node that serves until the block ends."""
    with node_in_a_thread(directory, **settings) as node:
        yield f"127.0.0.1:{node.ports['PLAINTEXT']}"


@contextmanager
def node_in_a_thread(directory: Path, **settings: str) -> Iterator[Node]:
    """A node that serves until the block ends. Another thread may read its ports only."""
    config = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(directory / "data"),
            "tidelog.http.listener": "",
            **settings,
        }
    )
    loop = new_event_loop()
    runtime = LoopRuntime(loop)
    node = Node(config, runtime)
    loop.run_until_complete(node.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield node
    finally:
        asyncio.run_coroutine_threadsafe(node.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.run_until_complete(runtime.close())
        loop.close()
