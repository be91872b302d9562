"""The registry's HTTP over a log in memory, for transcripts: uvicorn in a thread, set up as a transcript says.

Setups: ``max_schema_bytes``, ``max_body``, ``incompatible_code``; ``users`` (a reader with the password tea); ``fault``:
``append`` (the broker refuses the record), ``timeout`` (the record is never read back), ``forward`` (another registry leads, and
does not answer).
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import uvicorn

from tidelog.http.connections import Connection
from tidelog.http.passwords import hashed
from tidelog.records.record import Record
from tidelog.registry import errors
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.routing import Call
from tidelog.registry.rest.schemas import About
from tidelog.registry.serving import node as serving_node
from tidelog.registry.serving.election import Identity
from tidelog.registry.serving.forwarding import Forwarding
from tidelog.registry.serving.http import Application
from tidelog.registry.serving.logins import Logins
from tidelog.registry.serving.node import RegistryNode
from tidelog.registry.serving.replaying import Replaying
from tidelog.registry.serving.topic import KeyValue, ReadBatch
from tidelog.registry.serving.users import READ, Users, parse_users
from tidelog.registry.state import State

MAX_BODY = 1 << 20
Parameter = tuple[str, str, str]
"""Method and path of a route, and a parameter of its query."""


class Log:
    """Records in memory. ``fault``: see the module."""

    def __init__(self, fault: str) -> None:
        self._records: list[KeyValue] = []
        self._fault = fault
        self._grown = asyncio.Event()

    async def append(self, records: Sequence[KeyValue]) -> int:
        if self._fault == "append":
            raise errors.store_failed("the broker refuses it")
        offset = len(self._records)
        self._records += records
        if self._fault != "timeout":
            self._grown.set()
        return offset

    async def read(self, offset: int) -> ReadBatch:
        await self._grown.wait()
        self._grown.clear()
        end = len(self._records)
        return ReadBatch([Record(at, 0, *self._records[at]) for at in range(offset, end)], end)


class Seen:
    """What transcripts asked: routes, parameters that they gave, and those that the server looked for."""

    def __init__(self) -> None:
        self.routes: set[tuple[str, str]] = set()
        self.given: set[Parameter] = set()
        self.read: set[Parameter] = set()


class _Query(Mapping[str, Sequence[str]]):
    """Remembers which parameters a route looks for."""

    def __init__(self, values: Mapping[str, Sequence[str]], seen: set[Parameter]) -> None:
        self._values, self._seen = values, seen
        self.place = ("", "")

    def __getitem__(self, name: str) -> Sequence[str]:
        self._seen.add((*self.place, name))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class _Api(Api):
    """Tells ``seen`` of each call."""

    def __init__(self, seen: Seen, *parts: Any) -> None:
        super().__init__(*parts)
        self._seen = seen

    def find(self, request: Request) -> Call:
        query = _Query(request.query, self._seen.read)
        call = super().find(replace(request, query=query))
        query.place = (call.route.method, call.route.path)
        self._seen.routes.add(query.place)
        self._seen.given |= {(*query.place, name) for name in query}
        return call


class _Elsewhere:
    """Another registry leads."""

    def __init__(self, port: int) -> None:
        self._leader = Identity("127.0.0.1", port)

    async def leader(self) -> Identity:
        return self._leader


@contextmanager
def served(setup: Mapping[str, str], seen: Seen, monkeypatch: Any) -> Iterator[str]:
    """The URL of a registry without schemas, until the block ends."""
    fault = setup.get("fault", "")
    if fault == "timeout":
        monkeypatch.setattr(serving_node, "REPLAY_S", 0.01)
    rules = Rules(
        incompatible_code=int(setup.get("incompatible_code", 409)), max_schema_bytes=int(setup.get("max_schema_bytes", 1 << 20))
    )
    max_body = int(setup.get("max_body", MAX_BODY))
    state = State()
    api = _Api(seen, state, rules, About("cluster", "1"))
    users = Users(parse_users(f"reader: {READ}, {hashed('tea', b'0123456789abcdef')}"))
    logins = Logins(users, lambda: 0) if "users" in setup else None
    silent = socket.create_server(("127.0.0.1", 0), backlog=1)
    leader_port = silent.getsockname()[1]
    silent.close()
    listener = socket.create_server(("127.0.0.1", 0))
    servers: list[uvicorn.Server] = []
    ready = threading.Event()

    async def serve() -> None:
        log = Log(fault)
        replaying = Replaying(log, state)
        following = asyncio.get_running_loop().create_task(replaying.run())
        leading: Any = _Elsewhere(leader_port) if fault == "forward" else None
        application = Application(api, RegistryNode(state, replaying, log), logins, max_body, leading, Forwarding(None))
        config = uvicorn.Config(
            application, http=Connection, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False
        )
        servers.append(uvicorn.Server(config))
        ready.set()
        await servers[0].serve(sockets=[listener])
        following.cancel()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        servers[0].should_exit = True
        thread.join()
        listener.close()
        if logins is not None:
            logins.close()
