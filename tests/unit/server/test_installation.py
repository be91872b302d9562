from __future__ import annotations

import json
import os
import socket

import pytest

from tidelog.metadata.sparing import Sparing
from tidelog.server import installation
from tidelog.server.installation import Place, SupervisorLink
from tidelog.server.runtime import LoopRuntime, new_event_loop


def test_the_place_is_in_the_environment_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation.place() is None
    control, theirs = socket.socketpair()
    values = {"node_id": 3, "first": False, "control": control.fileno(), "sockets": {"PLAINTEXT": theirs.fileno()}}
    values |= {"http": None, "folder": "/d", "node_ids": [2, 3]}
    os.set_inheritable(control.fileno(), True)
    monkeypatch.setenv(installation.VARIABLE, json.dumps(values))
    assert installation.place() == Place(3, False, control.fileno(), {"PLAINTEXT": theirs.fileno()}, None, "/d", (2, 3))
    assert not control.get_inheritable()
    assert installation.place() is None, "what this process starts is no process of the installation"
    for each in (control, theirs):
        each.close()


def test_a_process_says_that_it_is_ready_and_hears_the_rest() -> None:
    loop = new_event_loop()
    runtime = LoopRuntime(loop)
    supervisor, theirs = socket.socketpair()
    shared = socket.create_server(("127.0.0.1", 0))
    address = shared.getsockname()
    heard: list[object] = []

    async def main() -> None:
        gone = loop.create_future()
        place = Place(2, False, theirs.detach(), {"PLAINTEXT": shared.detach()}, None, "/d", (2,))
        link = SupervisorLink(
            place,
            runtime,
            opened=lambda sockets: heard.append({name: each.getsockname() for name, each in sockets.items()}),
            spare=lambda: Sparing(3, 0),
            gone=lambda: gone.set_result(None),
        )
        link.ready()
        assert supervisor.recv(100) == b"ready\n"
        supervisor.send(b"spare\n")
        supervisor.setblocking(False)
        assert await loop.sock_recv(supervisor, 100) == b"spare 3 0\n"
        supervisor.send(b"op")
        supervisor.send(b"en\nwhat a later version says\n")
        supervisor.close()
        await gone
        link.ready()
        link.close()

    loop.run_until_complete(main())
    loop.run_until_complete(runtime.close())
    loop.close()
    assert heard == [{"PLAINTEXT": address}]
