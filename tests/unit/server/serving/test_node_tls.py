"""The TLS of a node: by listener, and nodes that talk to each other in nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography.x509 import load_der_x509_certificate

from tests.certificates import Authority
from tests.unit.server.loops import end, run
from tests.unit.server.secured_nodes import secured_nodes
from tests.unit.server.serving.listening import listener_on
from tests.unit.server.serving.tls_pairs import AUTHORITY, NODE, client_context, given, stored
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import versions
from tidelog.client.net.async_connection import Asked, Line
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.node_tls import NodeTls

SETTINGS = {
    "listeners": "PLAINTEXT://localhost:1,OUTSIDE://localhost:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
}
ALL_SSL = {"listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL", "ssl.client.auth": "required"}


def test_a_listener_in_plain_text_has_none_and_others_share_their_stores(runtime: LoopRuntime) -> None:
    tls = NodeTls(BrokerConfig.from_properties({**SETTINGS, **given()}), runtime, {})
    assert tls.listener("PLAINTEXT") is None
    assert tls.towards("PLAINTEXT") is None
    found = tls.listener("OUTSIDE")
    assert found is not None
    assert tls.towards("OUTSIDE") is tls.towards("OUTSIDE")
    assert (list(tls.slots), tls.slots["OUTSIDE"].listener) == (["OUTSIDE"], found)
    assert tls.expiries() == {"OUTSIDE": int(NODE.certificate.not_valid_after_utc.timestamp()) * 1000}


def test_stores_that_cannot_be_read_stop_the_node(runtime: LoopRuntime) -> None:
    given_ = {**given(), "ssl.truststore.certificates": "none"}
    tls = NodeTls(BrokerConfig.from_properties({**SETTINGS, **given_}), runtime, {})
    with pytest.raises(ConfigError, match="holds no certificate"):
        tls.listener("OUTSIDE")


class Watched:
    """A TLS listener whose stores are files."""

    def __init__(self, runtime: LoopRuntime, folder: Path, **more: str) -> None:
        self.runtime, self.folder = runtime, folder
        self.keys, self.trust = stored(folder, "node.pem", NODE.both), stored(folder, "trust.pem", AUTHORITY.pem)
        files = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }
        self.config = BrokerConfig.from_properties({**SETTINGS, **files, **more})
        self.tls = NodeTls(self.config, runtime, {})
        found = self.tls.listener("OUTSIDE")
        assert found is not None
        self.listener = listener_on(runtime, tls=found)
        self.listener.start()

    def serial(self) -> int:
        """Of the certificate that a new client is shown."""
        context = client_context()
        with socket.create_connection(("127.0.0.1", self.listener.port), 10) as plain:
            client = context.wrap_socket(plain, server_hostname="localhost")
            shown = client.getpeercert(True)
        assert shown is not None
        return load_der_x509_certificate(shown).serial_number

    async def shown(self) -> int:
        return await self.runtime.run_blocking(self.serial)

    async def looked(self) -> None:
        """After a look at the files and the settings."""
        self.tls.step()
        self.tls.follow()
        while waiting := [each for each in asyncio.all_tasks() if each.get_name().startswith("TLS")]:
            await asyncio.wait(waiting)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        try:
            run(self.runtime, main, 30)
        finally:
            end(self.listener)


def test_a_new_file_is_used_by_new_clients_and_open_connections_go_on(runtime: LoopRuntime, tmp_path: Path) -> None:
    watched = Watched(runtime, tmp_path)
    renewed = AUTHORITY.issue("node", "localhost", "127.0.0.1")

    async def main() -> None:
        first = Line(ClientConnection("me"), Line.close)
        at = ("127.0.0.1", watched.listener.port)
        await runtime.loop.create_connection(lambda: first, *at, ssl=client_context(), server_hostname="localhost")
        await first.converse(versions(first.machine), runtime.loop)
        assert await watched.shown() == NODE.certificate.serial_number
        watched.keys.write_text(renewed.both)
        await watched.looked()
        assert await watched.shown() == renewed.certificate.serial_number
        asked = Asked(DescribeClusterRequest(), False, runtime.loop.create_future())
        first.send(asked)
        assert (await asked.answer).error_code == 0

    watched.run(main)


def test_a_bad_file_is_refused_once_and_the_old_certificate_stays(
    runtime: LoopRuntime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(runtime, tmp_path)

    async def main() -> None:
        for text, said in (
            (NODE.key, "holds no certificate"),
            (AUTHORITY.issue("other", "localhost", "127.0.0.1").both, "CN=other"),
        ):
            watched.keys.write_text(text)
            await watched.looked()
            await watched.looked()
            assert caplog.text.count("the former key and trust stores stay") == 1
            assert said in caplog.text
            caplog.clear()
            assert await watched.shown() == NODE.certificate.serial_number
        renewed = AUTHORITY.issue("node", "localhost", "127.0.0.1")
        watched.keys.write_text(renewed.both)
        await watched.looked()
        assert await watched.shown() == renewed.certificate.serial_number

    watched.run(main)


def test_a_dynamic_setting_of_the_listener_is_checked_and_then_used(runtime: LoopRuntime, tmp_path: Path) -> None:
    watched = Watched(runtime, tmp_path)
    renewed = AUTHORITY.issue("node", "localhost", "127.0.0.1")
    name = "listener.name.outside.ssl.keystore.location"

    async def main() -> None:
        change = {name: str(stored(tmp_path, "renewed.pem", renewed.both))}
        for bad in (
            {name: "/nowhere.pem"},
            {"listener.name.outside.ssl.client.auth": "required"},
            {"ssl.client.auth": "required"},
        ):
            with pytest.raises(ConfigError):
                watched.tls.check(bad)
        watched.tls.check(change)
        watched.config.apply_dynamic({}, change)
        await watched.looked()
        assert await watched.shown() == renewed.certificate.serial_number
        watched.config.apply_dynamic({}, {})
        await watched.looked()
        assert await watched.shown() == NODE.certificate.serial_number

    watched.run(main)


def test_a_node_that_starts_uses_its_dynamic_settings_whatever_its_file_holds(runtime: LoopRuntime, tmp_path: Path) -> None:
    other = AUTHORITY.issue("other", "localhost")
    dynamic = {"listener.name.outside.ssl.keystore.location": str(stored(tmp_path, "other.pem", other.both))}
    files = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(stored(tmp_path, "node.pem", NODE.both))}
    for first in ({}, dynamic):
        config = BrokerConfig.from_properties({**SETTINGS, **files})
        tls = NodeTls(config, runtime, first)
        assert tls.listener("OUTSIDE") is not None
        before = tls.slots["OUTSIDE"].loaded.certificate
        assert before is not None
        assert before.subject == ("CN=other" if first else "CN=node")
        config.apply_dynamic({}, dynamic)
        tls.adopt()
        after = tls.slots["OUTSIDE"].loaded.certificate
        assert after is not None
        assert after.subject == "CN=other"


def test_the_end_of_a_certificate_is_announced_once_for_each_bound(
    runtime: LoopRuntime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(runtime, tmp_path)
    end_ms = watched.tls.expiries()["OUTSIDE"]
    told = []

    async def main() -> None:
        for days in (31, 29.5, 29, 6.5, 6, 0.5, -1, -2):
            now_ms = end_ms - int(days * 86_400_000)
            watched.runtime.now_ms = lambda now_ms=now_ms: now_ms  # type: ignore[misc]
            caplog.clear()
            await watched.looked()
            told.append([each.levelname for each in caplog.records if "certificate of CN=node" in each.message])

    watched.run(main)
    assert told == [[], ["WARNING"], [], ["WARNING"], [], ["WARNING"], ["ERROR"], []]


def test_three_nodes_elect_forward_and_replicate_under_mutual_tls(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, given={**given(), **ALL_SSL})

    async def main() -> None:
        await world.start()
        assert await world.create(world.passive(), "t", replicas=3) == 0
        await world.in_sync("t", 3)
        assert all(listener.tls is not None for listener in world.listeners())
        assert world.users() == {"User:CN=node"}
        await world.stop(world.passive())
        await world.until(lambda: world.active() is not None)
        assert await world.create(world.passive(), "u") == 0

    world.run(main)
    world.close()


def test_three_nodes_log_in_inside_tls(tmp_path: Path) -> None:
    """SASL_SSL: PLAIN between controllers, SCRAM between brokers, and the users are those of the logins."""
    world = secured_nodes(tmp_path)
    world.settings |= {**given(), "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL"}

    async def main() -> None:
        await world.start()
        assert await world.create(world.passive(), "t", replicas=3) == 0
        await world.everywhere(lambda node: "t" in node.parts.broker.image.topics.by_name)
        assert all(listener.tls is not None for listener in world.listeners())
        assert world.users() == {"User:node"}

    world.run(main)
    world.close()


@pytest.mark.parametrize("wrong", ["host", "authority"])
def test_a_node_whose_certificate_does_not_fit_is_refused_and_the_log_says_why(
    tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The third node's certificate names another host, or another authority signed it."""
    world = SeveralNodes(tmp_path, given={**given(), **ALL_SSL})
    settings, other = world.settings, Authority()

    async def main() -> None:
        await world.start(1, 2)
        assert await world.create(1, "t", replicas=2) == 0
        world.settings = dict(settings)
        if wrong == "authority":
            stranger = other.issue("node", "localhost")
            world.settings |= {"ssl.keystore.key": stranger.key, "ssl.keystore.certificate.chain": stranger.chain}
            said = "the client's certificate is not accepted"
        else:
            world.settings |= {"ssl.truststore.certificates": other.pem}
            said = "is not trusted"
        starting = world.runtime.spawn(world.start(3), "a node that does not fit")
        await world.until(lambda: said in caplog.text)
        starting.cancel()
        await asyncio.wait([starting])
        del world.nodes[3]

    world.run(main)
    world.close()
