"""The asyncio driver, and servers that are none."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from tests.unit.client.net.servers import server
from tidelog.broker import authentication
from tidelog.client import connection_opening
from tidelog.client.admin.topics import topics
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net.aio import AsyncClient
from tidelog.client.settings import parse_admin_settings, parse_settings
from tidelog.testing import Broker


async def ask(port: int, **given: str) -> list[str]:
    settings = parse_settings({"bootstrap.servers": f"127.0.0.1:{port}", **{k.replace("_", "."): v for k, v in given.items()}})
    async with AsyncClient(settings) as client:
        return [topic.name or "" for topic in await client.run(topics(None))]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it answers HTTP"),
        (b"\x7f\xff\xff\xff", "does not answer as a Kafka broker"),
        (b"\0\0\0\4\0\0\0\7", "does not answer as a Kafka broker"),
        (b"", r"cannot be reached: the connection ended before the first answer\. .*\(security\.protocol\)"),
    ],
)
def test_a_server_that_is_no_broker_is_named_as_such(answer: bytes, said: str) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(answer)

    with server(serve) as port, pytest.raises(NoConnection, match=said):
        asyncio.run(ask(port))


def test_a_server_that_says_nothing_is_given_up() -> None:
    done = threading.Event()
    with server(lambda connection: (done.wait(10), None)[1]) as port:
        with pytest.raises(NoConnection, match="no connection within 50 ms"):
            asyncio.run(ask(port, socket_connection_setup_timeout_ms="50"))
        done.set()


def test_a_connection_that_ended_is_opened_again() -> None:
    async def job(broker: Broker) -> None:
        settings = parse_settings({"bootstrap.servers": broker.bootstrap_servers})
        async with AsyncClient(settings) as client:
            await client.run(topics([]))
            broker.faults.drop("METADATA")
            await client.run(topics([]))

    with Broker() as broker:
        asyncio.run(job(broker))
        assert broker.faults.pending == 0


def test_concurrent_calls_wait_for_the_client_to_log_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "LEAST_BETWEEN_MS", 0)
    for name in ("LEAST_BETWEEN_S", "EARLIEST_SHARE", "LATEST_SHARE"):
        monkeypatch.setattr(connection_opening, name, 0.0)

    async def job(broker: Broker, login: dict[str, str]) -> None:
        settings = parse_settings({"bootstrap.servers": broker.bootstrap_servers, **login})
        async with AsyncClient(settings) as client:
            for _ in range(2):
                await asyncio.gather(*(client.run(topics([])) for _ in range(5)))
            lines = [await each for each in client._lines.values()]
            monkeypatch.setattr(authentication, "LEAST_BETWEEN_MS", 60_000)
            await client.run(topics([]))
            with pytest.raises(NotAuthenticated):
                await client.run(topics([]))
            assert all(each.lost is not None for each in lines)

    with Broker(users={"me": "secret"}, config={"connections.max.reauth.ms": 60_000}) as broker:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "me",
            "sasl.password": "secret",
        }
        asyncio.run(job(broker, login))


def test_a_function_makes_a_token_for_each_login() -> None:
    made: list[int] = []

    def make() -> str:
        made.append(threading.get_ident())
        return "not-a-token-that-this-broker-knows"

    async def job(port: int) -> None:
        given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        async with AsyncClient(parse_admin_settings(given, f"127.0.0.1:{port}", token=make)) as client:
            await client.run(topics(None))

    with Broker(users={"me": "secret"}) as broker, pytest.raises(NotAuthenticated, match="does not take OAUTHBEARER"):
        asyncio.run(job(broker.port))
    assert made
    assert threading.get_ident() not in made
