"""A forwarded request arrives as it was, with the client's own credentials."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tidelog.registry.errors import RegistryError
from tidelog.registry.serving.election import Identity
from tidelog.registry.serving.forwarding import Forwarding


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = "|".join(
            [self.path, self.headers["Authorization"], self.headers["X-Forward"], str(self.headers["Cookie"]), body.decode()]
        )
        self.send_response(409)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def leader() -> Iterator[Identity]:
    with HTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Identity("127.0.0.1", server.server_address[1])
        server.shutdown()
        thread.join()


def test_a_request_arrives_as_it_was(leader: Identity) -> None:
    headers = {b"authorization": b"Basic x", b"cookie": b"secret", b"content-type": b"application/json"}
    answer = asyncio.run(Forwarding(None).send(leader, "POST", "/subjects/a%2Fb/versions?x=1", headers, b"{}"))
    assert (answer.status, answer.content_type) == (409, "application/json")
    assert answer.body == b"/subjects/a%2Fb/versions?x=1|Basic x|true|None|{}"


def test_a_leader_that_does_not_answer_is_said() -> None:
    with pytest.raises(RegistryError) as caught:
        asyncio.run(Forwarding(None).send(Identity("127.0.0.1", 1), "POST", "/", {}, b""))
    assert caught.value.code == 50003
