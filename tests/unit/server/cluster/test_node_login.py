"""A node's own login: both kinds of connections between nodes make it, and say once that it was refused."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.net.made_up_gssapi import installed
from tests.unit.security.tokens import EC, claims, jwks, signed
from tests.unit.server.made_up_kerberos import BothSides
from tests.unit.server.secured_nodes import secured_nodes
from tests.unit.server.serving.test_authenticating import SETTINGS, Place
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.broker import authentication
from tidelog.broker.request import Session
from tidelog.client import connection_opening
from tidelog.client.kerberos import Kerberos
from tidelog.client.oauth import CLIENT_ID, CLIENT_SECRET, URL, Grant, OAuth
from tidelog.client.settings import Sasl
from tidelog.config import listener_oauth
from tidelog.config.jaas import PLAIN_MODULE, SCRAM_MODULE
from tidelog.config.listener_gssapi import EXAMPLE
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.raft.effects import Node
from tidelog.server.cluster import node_tokens
from tidelog.server.cluster.channels import ChannelError, Channels
from tidelog.server.cluster.node_login import NodeLogin, broker_login, controller_login, own_login, to_brokers, to_controllers
from tidelog.server.cluster.node_tickets import NodeTickets
from tidelog.server.cluster.node_tokens import NodeTokens
from tidelog.server.cluster.raft_channels import Peers
from tidelog.server.cluster.token_source import TokenSource, token_source
from tidelog.server.runtime import LoopRuntime

RIGHT, WRONG = (NodeLogin(Sasl("PLAIN", "alice", password)) for password in ("secret", "wrong"))


class Answers:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.came = loop.create_future()

    def answered(self, request_id: int, message: Any) -> None:
        self.came.set_result(message)

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None:
        self.came.set_result((refused, unsupported))


class Logins:
    """Keeps which logins were later ones of a connection."""

    def __init__(self) -> None:
        self.again: list[bool] = []
        self.failed: list[str] = []

    def logged_in(self, session: Session, mechanism: str, again: bool) -> None:
        self.again.append(again)

    def login_failed(self, listener: str, host: str, mechanism: str, reason: str) -> None:
        self.failed.append(reason)


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> Logins:
    """Each session that has an end is over at once, and the second that a broker wants between two logins is none."""
    monkeypatch.setattr(authentication, "LEAST_BETWEEN_MS", 0)
    monkeypatch.setattr(connection_opening, "LEAST_BETWEEN_S", 0.0)
    monkeypatch.setattr(connection_opening, "EARLIEST_SHARE", 0.0)
    monkeypatch.setattr(connection_opening, "LATEST_SHARE", 0.0)
    return Logins()


SHORT = {"listener.name.outside.connections.max.reauth.ms": "60000"}


def run(main: Any, *given: Any) -> None:
    place = Place(*given)
    try:
        place.run(lambda: main(place))
    finally:
        place.close()


def test_a_channel_logs_in() -> None:
    async def main(place: Place) -> None:
        channels = Channels(place.runtime, "1", RIGHT)
        answer = await channels.to("127.0.0.1", place.listener.port, "p").ask(DescribeClusterRequest(), timeout_ms=5000)
        assert answer.error_code == 0
        assert place.principals() == ["User:alice"]
        channels.close()

    run(main)


def test_a_channel_without_its_login_fails_and_says_why_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main(place: Place) -> None:
        channels = Channels(place.runtime, "1", WRONG)
        for _ in range(2):
            with pytest.raises(ChannelError, match="the user name or the password is wrong"):
                await channels.to("127.0.0.1", place.listener.port, "p").ask(DescribeClusterRequest(), timeout_ms=5000)
        channels.close()

    run(main)
    assert caplog.text.count("this node cannot log in") == 1
    assert "wrong'" not in caplog.text


@pytest.mark.parametrize("login", [RIGHT, WRONG])
def test_a_peer_logs_in_or_fails(login: NodeLogin, caplog: pytest.LogCaptureFixture) -> None:
    async def main(place: Place) -> None:
        for _ in range(2):
            answers = Answers(place.runtime.loop)
            peers = Peers(place.runtime, answers, "1", login)
            peers.send(1, Node(2, "127.0.0.1", place.listener.port), DescribeClusterRequest())
            found = await answers.came
            if login is RIGHT:
                assert found.error_code == 0
            else:
                assert found == (False, False)
            peers.close()

    with caplog.at_level(logging.ERROR):
        run(main)
    assert ("the user name or the password is wrong" in caplog.text) == (login is WRONG)


def test_a_channel_logs_in_again_on_its_connection(logins: Logins) -> None:
    async def main(place: Place) -> None:
        channels = Channels(place.runtime, "1", RIGHT)
        channel = channels.to("127.0.0.1", place.listener.port, "p")
        asked = [channel.ask(DescribeClusterRequest(), timeout_ms=5000) for _ in range(3)]
        assert [each.error_code for each in await asyncio.gather(*asked)] == [0, 0, 0]
        assert (await channel.ask(DescribeClusterRequest(), timeout_ms=5000)).error_code == 0
        assert len(place.listener.connections) == 1
        channels.close()

    run(main, SHORT, logins)
    assert logins.again[0] is False
    assert set(logins.again[1:]) == {True}
    assert logins.failed == []


def test_a_channel_whose_later_login_is_refused_says_so_and_connects_again(
    logins: Logins, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(place: Place) -> None:
        channels = Channels(place.runtime, "1", RIGHT)
        channel = channels.to("127.0.0.1", place.listener.port, "p")
        monkeypatch.setattr(authentication, "LEAST_BETWEEN_MS", 60_000)
        assert (await channel.ask(DescribeClusterRequest(), timeout_ms=5000)).error_code == 0  # The first may come at once.
        with pytest.raises(ChannelError, match="refuses to renew this login, which holds for 60000 ms"):
            await channel.ask(DescribeClusterRequest(), timeout_ms=5000)
        for name in ("EARLIEST_SHARE", "LATEST_SHARE"):
            monkeypatch.setattr(connection_opening, name, 0.9)
        for _ in range(2):
            assert (await channel.ask(DescribeClusterRequest(), timeout_ms=5000)).error_code == 0
        channels.close()

    run(main, SHORT, logins)
    assert caplog.text.count("this node cannot log in again") == 1
    assert logins.again == [False, True, False]


def test_a_peer_logs_in_again_on_its_connection(logins: Logins) -> None:
    async def main(place: Place) -> None:
        answers = Answers(place.runtime.loop)
        peers = Peers(place.runtime, answers, "1", RIGHT)
        for number in range(3):
            answers.came = place.runtime.loop.create_future()
            peers.send(number, Node(2, "127.0.0.1", place.listener.port), DescribeClusterRequest())
            assert (await answers.came).error_code == 0
        assert len(place.listener.connections) == 1
        peers.close()

    run(main, SHORT, logins)
    assert logins.again == [False, True, True, True]


def test_three_nodes_elect_forward_and_replicate_as_logged_in_users(tmp_path: Path) -> None:
    world = secured_nodes(tmp_path)

    async def main() -> None:
        await world.start()
        assert await world.create(world.passive(), "t", replicas=3) == 0
        await world.in_sync("t", 3)
        assert world.users() == {"User:node"}
        await world.stop(world.passive())
        await world.until(lambda: world.active() is not None)
        assert await world.create(world.passive(), "u") == 0

    world.run(main)
    world.close()


def accepting(folder: Path, *listeners: str) -> dict[str, str]:
    """Settings of listeners that take the tokens of an issuer."""
    keys = folder / "keys.json"
    keys.write_bytes(jwks(EC))
    names = [f"listener.name.{name}" for name in listeners]
    return {
        **{f"{name}.sasl.enabled.mechanisms": "OAUTHBEARER" for name in names},
        **{f"{name}.oauthbearer.{listener_oauth.HANDLER}": listener_oauth.VALIDATOR for name in names},
        listener_oauth.URL: keys.as_uri(),
        listener_oauth.ISSUER: "https://issuer",
        listener_oauth.AUDIENCE: "tidelog",
    }


def token_of(name: str, **changes: Any) -> str:
    return signed(claims(time.time_ns() // 1_000_000, sub=name, **changes))


def test_nodes_elect_forward_and_replicate_by_tokens(tmp_path: Path, logins: Logins) -> None:
    """Each session is over at once, so every request follows a login with the token of its time."""
    token = tmp_path / "token"
    token.write_text(token_of("node", exp=int(time.time()) + 3600))
    world = SeveralNodes(
        tmp_path,
        brokers=1,
        given={
            **accepting(tmp_path, "plaintext", "controller"),
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            URL: token.as_uri(),
        },
    )

    async def main() -> None:
        await world.start()
        assert await world.create(4, "t", replicas=4) == 0
        await world.in_sync("t", 4)
        assert world.users() == {"User:node"}

    world.run(main)
    world.close()


def test_a_token_that_a_node_refuses_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_tokens, "LEAST_BETWEEN_S", 0.0)
    given = {**accepting(tmp_path, "outside"), URL: "https://issuer/token", CLIENT_ID: "node", CLIENT_SECRET: "canary"}
    grants = [Grant(token_of("node", aud="another service")), Grant(token_of("node"))]

    async def main(place: Place) -> None:
        tokens = NodeTokens("OUTSIDE", token_source(given, "OUTSIDE"), place.runtime, lambda _: grants.pop(0))
        sasl = Sasl("OAUTHBEARER", "", "", oauth=OAuth(url="https://issuer/token"))
        channel = Channels(place.runtime, "1", NodeLogin(sasl, tokens=tokens)).to("127.0.0.1", place.listener.port, "p")
        with pytest.raises(ChannelError, match="refuses the token"):
            await channel.ask(DescribeClusterRequest(), timeout_ms=5000)
        while grants:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        while place.principals() != ["User:node"]:
            try:
                await channel.ask(DescribeClusterRequest(), timeout_ms=5000)
            except ChannelError:
                await asyncio.sleep(0.001)
        channel.close()

    run(main, given)
    assert caplog.text.count("this node cannot log in") == 1
    assert "canary" not in caplog.text


def test_a_node_logs_in_by_a_token_where_that_is_named_or_there_is_no_password(tmp_path: Path) -> None:
    given = {**SETTINGS, **accepting(tmp_path, "outside"), "inter.broker.listener.name": "OUTSIDE"}
    option = "sasl.mechanism.inter.broker.protocol"
    expected = Sasl("OAUTHBEARER", "", "")
    assert own_login(BrokerConfig.from_properties(given), "OUTSIDE", None, option) == expected
    given["listener.name.outside.sasl.enabled.mechanisms"] = "OAUTHBEARER,PLAIN"
    both = BrokerConfig.from_properties(given)
    assert own_login(both, "OUTSIDE", "OAUTHBEARER", option) == expected
    assert (
        own_login(both, "OUTSIDE", None, option) == own_login(both, "OUTSIDE", "PLAIN", option) == Sasl("PLAIN", "node", "n0de")
    )


def test_the_nodes_own_login_stands_in_the_entry_of_the_listener() -> None:
    config = BrokerConfig.from_properties(SETTINGS)
    assert own_login(config, "OUTSIDE", "PLAIN", "o") == own_login(config, "OUTSIDE", None, "o") == Sasl("PLAIN", "node", "n0de")
    assert own_login(config, "PLAINTEXT", "PLAIN", "o") is None
    with pytest.raises(ConfigError, match=r"listener\.name\.outside\.scram-sha-256\.sasl\.jaas\.config"):
        own_login(config, "OUTSIDE", "SCRAM-SHA-256", "sasl.mechanism.inter.broker.protocol")
    with pytest.raises(ConfigError, match="is GSSAPI, but listener OUTSIDE offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        own_login(config, "OUTSIDE", "GSSAPI", "sasl.mechanism.inter.broker.protocol")
    scram = {"listener.name.outside.scram-sha-256.sasl.jaas.config": f'{SCRAM_MODULE} required username="n" password="p";'}
    config = BrokerConfig.from_properties({**SETTINGS, **scram})
    assert own_login(config, "OUTSIDE", "SCRAM-SHA-256", "o") == Sasl("SCRAM-SHA-256", "n", "p")


def test_the_keytab_of_a_listener_is_the_nodes_own_login_too() -> None:
    """Where no mechanism is named, a password goes first: clusters that began with one stay with it."""
    tickets = {
        "listener.name.outside.sasl.enabled.mechanisms": "GSSAPI,PLAIN",
        "listener.name.outside.gssapi.sasl.jaas.config": EXAMPLE,
    }
    config = BrokerConfig.from_properties({**SETTINGS, **tickets})
    principal = "kafka/HOST@REALM"
    expected = Sasl("GSSAPI", principal, "", kerberos=Kerberos("kafka", principal, "/etc/tidelog/kafka.keytab"))
    assert own_login(config, "OUTSIDE", "GSSAPI", "o") == expected
    assert own_login(config, "OUTSIDE", None, "o") == Sasl("PLAIN", "node", "n0de")
    config = BrokerConfig.from_properties({**SETTINGS, **tickets, "listener.name.outside.sasl.enabled.mechanisms": "GSSAPI"})
    assert own_login(config, "OUTSIDE", None, "o") == expected


TICKETS = {
    "sasl.mechanism.inter.broker.protocol": "GSSAPI",
    "sasl.mechanism.controller.protocol": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    **{f"listener.name.{name}.sasl.enabled.mechanisms": "GSSAPI" for name in ("plaintext", "controller")},
    **{f"listener.name.{name}.gssapi.sasl.jaas.config": EXAMPLE for name in ("plaintext", "controller")},
}


def test_three_nodes_elect_forward_and_replicate_by_tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(monkeypatch, BothSides()) as library:
        world = secured_nodes(tmp_path, given=TICKETS)

        async def main() -> None:
            await world.start()
            assert await world.create(world.passive(), "t", replicas=3) == 0
            await world.in_sync("t", 3)
            assert world.users() == {"User:kafka"}

        world.run(main)
        world.close()
    assert set(library.asked) == {"kafka@localhost"}


def test_nodes_log_in_with_another_ticket_on_the_same_connection_or_say_why_not(
    logins: Logins, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given = {name: text for name, text in TICKETS.items() if name.startswith("sasl.kerberos.")}
    given["listener.name.outside.sasl.enabled.mechanisms"] = "GSSAPI"
    given["listener.name.outside.gssapi.sasl.jaas.config"] = EXAMPLE.replace("kafka/HOST", "kafka")
    with installed(monkeypatch, BothSides()) as library:
        sasl = own_login(BrokerConfig.from_properties({**SETTINGS, **given}), "OUTSIDE", "GSSAPI", "o")
        assert sasl is not None
        assert sasl.kerberos is not None
        login = NodeLogin(sasl, tickets=NodeTickets(sasl.kerberos))

        async def main(place: Place) -> None:
            channels = Channels(place.runtime, "1", login)
            channel = channels.to("127.0.0.1", place.listener.port, "p")
            for _ in range(3):
                assert (await channel.ask(DescribeClusterRequest(), timeout_ms=5000)).error_code == 0
            assert place.principals() == ["User:kafka"]
            library.refuses.add("kafka@127.0.0.1")
            with pytest.raises(ChannelError, match=r"no Kerberos ticket for kafka@127\.0\.0\.1: no such service"):
                await channel.ask(DescribeClusterRequest(), timeout_ms=5000)
            channels.close()

        run(main, given, logins)
    assert logins.again[0] is False
    assert set(logins.again[1:]) == {True}
    assert caplog.text.count("this node cannot log in again: no Kerberos ticket") == 1


ENTRY = PLAIN_MODULE + ' required username="node" password="n0de" user_node="n0de";'
CLUSTER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:3",
    "listeners": "INSIDE://localhost:1,CONTROLLER://localhost:3",
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.inside.plain.sasl.jaas.config": ENTRY,
    "listener.name.controller.plain.sasl.jaas.config": ENTRY.replace("node", "other"),
}


def test_a_node_reads_once_where_its_tokens_come_from(
    runtime: LoopRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(given: Mapping[str, str], listener: str) -> TokenSource:
        read.append(listener)
        return token_source(given, listener)

    monkeypatch.setattr("tidelog.server.cluster.token_source.token_source", counted)
    given = {**CLUSTER, **accepting(tmp_path, "inside", "controller")}
    for listener, login_of in (("INSIDE", to_brokers), ("CONTROLLER", to_controllers)):
        with pytest.raises(ConfigError, match=rf"cannot log in on listener {listener} by OAUTHBEARER: .*token\.endpoint\.url"):
            login_of(BrokerConfig.from_properties(given), runtime, None)
        read.clear()
        login = login_of(BrokerConfig.from_properties({**given, URL: "file:///run/token"}), runtime, None)
        assert login.sasl == Sasl("OAUTHBEARER", "", "")
        assert login.tokens is not None
        assert login.tokens._source.oauth == OAuth(file="/run/token")
        assert read == [listener]


def test_brokers_and_controllers_have_logins_of_their_own() -> None:
    config = BrokerConfig.from_properties(CLUSTER)
    assert broker_login(config) == Sasl("PLAIN", "node", "n0de")
    assert controller_login(config) == Sasl("PLAIN", "other", "n0de")
    plain = {"listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"}
    assert controller_login(BrokerConfig.from_properties({**CLUSTER, **plain})) is None
    assert broker_login(BrokerConfig.from_properties(SETTINGS)) is None
