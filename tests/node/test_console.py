"""``tidelog console`` as a process: over a real socket, with slow, broken and many clients, and its end by a signal."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import IO, Any

import pytest

from tests.certificates import Authority
from tests.unit.console.web.browser import PASSWORD, users
from tidelog.testing import Broker


class Running:
    """A console of one broker."""

    def __init__(self, broker: Broker, audit: Path, *options: str, stderr: IO[str] | None = None) -> None:
        self.audit = audit
        command = [sys.executable, "-m", "tidelog.cli.main", "console", "--bootstrap-server", broker.bootstrap_servers]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--audit-file", str(audit), *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.port = int(self.line.strip().rstrip("/").rpartition(":")[2])

    def connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=30)

    def get(self, path: str) -> tuple[int, bytes]:
        connection = self.connection()
        connection.request("GET", path)
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        return found

    def data(self, path: str) -> Any:
        status, body = self.get(f"/api/v1/{path}")
        assert status == 200, body
        return json.loads(body)["data"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("orders", partitions=2)
        found.produce("orders", *map(str, range(100)))
        yield found


@pytest.fixture(scope="module")
def console(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    found = Running(broker, tmp_path_factory.mktemp("console") / "audit.jsonl")
    yield found
    found.process.send_signal(signal.SIGINT)
    assert found.process.wait(30) == 0


def test_it_says_where_it_is_and_answers_there(console: Running) -> None:
    assert console.line == f"tidelog console is ready at http://127.0.0.1:{console.port}/\n"
    assert [row["name"] for row in console.data("clusters/main/topics")["rows"]] == ["orders"]
    status, page = console.get("/")
    assert (status, b"<html" in page.lower()) == (200, True)


def test_a_search_streams_its_hits(console: Running) -> None:
    status, body = console.get("/api/v1/clusters/main/topics/orders/records?filter=value%20%3E%3D%2098&limit=10")
    lines = [json.loads(line) for line in body.splitlines()]
    assert status == 200
    assert [line["value"]["text"] for line in lines if line["kind"] == "record"] == ["99", "98"]
    assert (lines[0]["kind"], lines[-1]["kind"], lines[-1]["reason"]) == ("begin", "end", "end")


def test_a_tail_that_is_left_gives_its_place_back(console: Running) -> None:
    for _ in range(40):
        connection = console.connection()
        connection.request("GET", "/api/v1/clusters/main/topics/orders/records?mode=tail")
        response = connection.getresponse()
        while response.status == 429:  # the one before is not over yet
            response.read()
            connection.request("GET", "/api/v1/clusters/main/topics/orders/records?mode=tail")
            response = connection.getresponse()
        assert json.loads(response.readline())["kind"] == "begin"
        response.close()
        connection.close()
    assert console.data("clusters/main/topics")["total"] == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
        b"GET /api/v1/session HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET //evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00",
        b"\0" * 100_000,
    ],
)
def test_broken_and_hostile_requests_leave_it_alive(console: Running, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", console.port), timeout=30) as raw:
        answer = b""
        with contextlib.suppress(OSError):  # it may end the connection before all was sent
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            while piece := raw.recv(65_536):
                answer += piece
    assert b"root:" not in answer
    assert console.data("clusters/main/topics")["total"] == 1


def test_headers_cannot_be_made_by_a_path(console: Running) -> None:
    connection = console.connection()
    connection.putrequest("GET", "/api/v1/clusters/main/topics/orders/records/0/1/raw")
    connection.endheaders()
    response = connection.getresponse()
    assert response.headers["Content-Disposition"] == 'attachment; filename="orders-0-1-value.bin"'
    assert response.read() == b"1"
    status, _ = console.get("/api/v1/clusters/main/topics/a%0d%0aSet-Cookie:%20x=1/records/0/1/raw")
    assert status == 404


def test_what_was_read_is_in_the_audit(console: Running) -> None:
    console.data("clusters/main/topics/orders/records/0/5")
    event = json.loads(console.audit.read_text().splitlines()[-1])
    assert (event["action"], event["topic"], event["offset"], event["records"]) == ("read", "orders", "5", 1)


def test_login_over_tls(broker: Broker, tmp_path: Path) -> None:
    issued = (authority := Authority()).issue("localhost", "localhost")
    files = {"chain.pem": issued.chain, "key.pem": issued.key, "users.json": users(ann=["admin"])[0]}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in files]
    found = Running(broker, tmp_path / "audit", "--tls-certificate", paths[0], "--tls-key", paths[1], "--users", paths[2])
    try:
        assert found.line.startswith("tidelog console is ready at https://")
        connection = HTTPSConnection("localhost", found.port, context=ssl.create_default_context(cadata=authority.pem))
        connection.request("GET", "/api/v1/session")
        csrf = json.loads(connection.getresponse().read())["csrf"]
        headers = {"Content-Type": "application/json", "X-CSRF-Token": csrf}
        connection.request("POST", "/api/v1/login", json.dumps({"user": "ann", "password": PASSWORD}), headers)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["user"]) == (200, "ann")
        cookie = response.headers["Set-Cookie"]
        assert "Secure" in cookie
        connection.request("GET", "/api/v1/clusters/main/topics", headers={"Cookie": cookie.partition(";")[0]})
        assert json.loads(connection.getresponse().read())["data"]["total"] == 1
        connection.request("GET", "/api/v1/clusters/main/topics")
        assert connection.getresponse().status == 401
        connection.close()
    finally:
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_open_tails_and_requests_in_order(broker: Broker, tmp_path: Path, number: int) -> None:
    errors = tmp_path / "errors"
    with errors.open("w") as written:
        found = Running(broker, tmp_path / "audit", stderr=written)
        tails = []
        for _ in range(3):
            connection = found.connection()
            connection.request("GET", "/api/v1/clusters/main/topics/orders/records?mode=tail")
            response = connection.getresponse()
            assert json.loads(response.readline())["kind"] == "begin"
            tails.append((connection, response))
        found.process.send_signal(number)
        assert found.process.wait(30) == 0
    for connection, response in tails:
        assert json.loads(response.read().splitlines()[-1])["error"] == "the console was ended"
        connection.close()
    assert errors.read_text() == ""
    assert found.audit.read_text().count('"outcome":"left"') == 3
