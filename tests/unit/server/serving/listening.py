"""Listeners on free ports of loopback, in the loop of a test, and sockets that connect to them."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.broker.node_world import NodeWorld
from tests.unit.server.loops import end, finish, run
from tidelog.broker.node import ServingNode
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving.binding import bind
from tidelog.server.serving.listener import ConnectionCount, Limits, Listener


def listener_on(
    runtime: LoopRuntime,
    name: str = "OUTSIDE",
    node: ServingNode | None = None,
    *,
    limits: Limits | None = None,
    count: ConnectionCount | None = None,
    **guards: Any,
) -> Listener:
    """Not started. ``guards``: see ``Listener``."""
    return Listener(
        name,
        bind(name, "127.0.0.1", 0),
        node or NodeWorld().broker,
        runtime,
        limits=limits or Limits(),
        count=count or ConnectionCount(),
        **guards,
    )


class ListenerWorld:
    """The listeners of one node, which count their connections together, and the clients."""

    def __init__(self) -> None:
        self.runtime = LoopRuntime(new_event_loop())
        self.count = ConnectionCount()
        self.listeners: list[Listener] = []
        self.clients: list[socket.socket] = []

    def started(self, limits: Limits, **guards: Any) -> Listener:
        listener = listener_on(self.runtime, "EXTERNAL", limits=limits, count=self.count, **guards)
        listener.start()
        self.listeners.append(listener)
        return listener

    async def connect(self, listener: Listener) -> socket.socket:
        client = socket.socket()
        client.setblocking(False)
        self.clients.append(client)
        await self.runtime.loop.sock_connect(client, ("127.0.0.1", listener.port))
        return client

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        run(self.runtime, main)

    def close(self) -> None:
        end(*self.listeners)
        for client in self.clients:
            client.close()
        finish(self.runtime)
