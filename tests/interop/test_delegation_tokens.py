"""Delegation tokens: Apache Kafka's own tool and Java's clients on a tidelog node. ``test_mixed_secured``: on nodes of both."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running
from tidelog.client import AdminClient, DelegationToken

pytestmark = pytest.mark.interop

TOOL = "org.apache.kafka.tools.DelegationTokenCommand"
JAAS = "org.apache.kafka.common.security"
ROW = re.compile(r"^([\w-]{22}) +(\S{88}) +(\S+) +(\S+) +(\[.*\]) +(\S+) +(\S+) +(\S+) *$", re.M)
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"ann": "ann-secret", "bob": "bob-secret"}
LIMIT_S = 30
T = TypeVar("T")


def plain_users() -> str:
    users = "".join(f' user_{name}="{password}"' for name, password in USERS.items())
    return f"{JAAS}.plain.PlainLoginModule required{users};"


def as_user(name: str) -> dict[str, str]:
    """A client's settings; Java's and tidelog's are the same."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{JAAS}.plain.PlainLoginModule required username="{name}" password="{USERS[name]}";',
    }


def by_token(token_id: str, token_hmac: str, mechanism: str) -> dict[str, str]:
    login = f'username="{token_id}" password="{token_hmac}" tokenauth="true"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required {login};",
    }


def admin(address: str, settings: dict[str, str], call: Callable[[AdminClient], Awaitable[T]]) -> T:
    """What tidelog's own admin client is answered."""

    async def run() -> T:
        async with AdminClient(address, settings) as client:
            return await call(client)

    return asyncio.run(asyncio.wait_for(run(), LIMIT_S))


class Guarded:
    """A node with a listener where users and tokens log in, and one in plain text."""

    def __init__(self, node: Node, logins: str, java: JavaSide, folder: Path) -> None:
        self.node, self.logins, self.java, self._folder = node, logins, java, folder

    def tool(self, settings: dict[str, str], *args: str, address: str = "") -> str:
        """What Apache Kafka's tool prints."""
        file = self._folder / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        done = self.java.tool(TOOL, "--bootstrap-server", address or self.logins, "--command-config", str(file), *args)
        return str(done["out"]) + str(done["err"])

    def create(self, user: str, *args: str) -> tuple[str, ...]:
        """The columns of a new token."""
        said = self.tool(as_user(user), "--create", "--max-life-time-period", "-1", *args)
        found = ROW.search(said)
        assert found is not None, said
        return found.groups()

    def produce(self, topic: str, settings: dict[str, str]) -> list[int]:
        records = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}] * 5
        config = {**settings, "max.block.ms": "20000"}
        offsets = self.java.ask("produce", bootstrap=self.logins, topic=topic, config=config, records=records)["offsets"]
        return [int(each) for each in offsets]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("tokens")
    ports = free_ports(3)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", "LOGINS"), ports, strict=True))
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGINS:SASL_PLAINTEXT",
        "listener.name.logins.sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
        "listener.name.logins.plain.sasl.jaas.config": plain_users(),
        "delegation.token.secret.key": "the-key-of-tokens",
    }
    node = Node("tidelog", folder, java, properties, ports=ports[:2])
    with running(node) as started:
        yield Guarded(started, f"127.0.0.1:{ports[2]}", java, folder)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafkas_tool_makes_a_token_and_javas_clients_log_in_by_it(mechanism: str, guarded: Guarded) -> None:
    token_id, token_hmac, owner, requester, renewers, issued, expires, ends = guarded.create(
        "ann", "--renewer-principal", "User:bob"
    )
    assert (owner, requester, renewers) == ("User:ann", "User:ann", "[User:bob]")
    assert issued < expires < ends
    topic = f"java-{mechanism}"
    guarded.node.create(topic, 1)
    settings = by_token(token_id, token_hmac, mechanism)
    assert guarded.produce(topic, settings) == list(range(5))
    for user in ("ann", "bob"):
        # Without an owner Apache Kafka's tool asks for the tokens of no owner.
        listed = [row[0] for row in ROW.findall(guarded.tool(as_user(user), "--describe", "--owner-principal", "User:ann"))]
        assert token_id in listed
    with pytest.raises(JavaFailed, match="SaslAuthenticationException"):
        guarded.produce(topic, by_token(token_id, token_hmac[::-1], mechanism))
    assert guarded.tool(as_user("bob"), "--renew", "--hmac", token_hmac, "--renew-time-period", "60000").startswith(
        "Calling renew"
    )
    ended = guarded.tool(as_user("ann"), "--expire", "--hmac", token_hmac, "--expiry-time-period", "-1")
    assert "Completed expire operation" in ended
    with pytest.raises(JavaFailed, match="SaslAuthenticationException"):
        guarded.produce(topic, settings)
    log = guarded.node.log_file.read_text()
    assert token_hmac not in log
    assert "the-key-of-tokens" not in log


def test_refusals_are_those_that_kafkas_tool_knows(guarded: Guarded) -> None:
    token_id, token_hmac, *_ = guarded.create("ann")
    token = by_token(token_id, token_hmac, "SCRAM-SHA-256")
    for arguments in (["--create", "--max-life-time-period", "-1"], ["--describe"]):
        assert "UnsupportedByAuthenticationException" in guarded.tool(token, *arguments)
        refused = guarded.tool({"security.protocol": "PLAINTEXT"}, *arguments, address=guarded.node.bootstrap)
        assert "UnsupportedByAuthenticationException" in refused
    period = ["--renew-time-period", "-1"]
    assert "DelegationTokenOwnerMismatchException" in guarded.tool(as_user("bob"), "--renew", "--hmac", token_hmac, *period)
    assert "DelegationTokenNotFoundException" in guarded.tool(as_user("bob"), "--renew", "--hmac", "eA==", *period)
    group = guarded.tool(as_user("ann"), "--create", "--max-life-time-period", "-1", "--renewer-principal", "Group:g")
    assert "InvalidPrincipalTypeException" in group


def test_a_token_of_another_user(guarded: Guarded) -> None:
    token_id, token_hmac, owner, requester, *_ = guarded.create("ann", "--owner-principal", "User:carol")
    assert (owner, requester) == ("User:carol", "User:ann")
    guarded.node.create("carols", 1)
    assert guarded.produce("carols", by_token(token_id, token_hmac, "SCRAM-SHA-512")) == list(range(5))


def test_a_session_ends_with_its_token_and_sees_a_renewal(guarded: Guarded) -> None:
    """Java's consumer reads past the end that the token had at its login: it logs in again on the same connection."""
    token_id, token_hmac, *_ = guarded.create("ann")
    guarded.node.create("long", 1)
    settings = by_token(token_id, token_hmac, "SCRAM-SHA-256")
    assert guarded.produce("long", settings) == list(range(5))

    def token() -> DelegationToken:
        found = admin(guarded.logins, as_user("ann"), lambda client: client.delegation_tokens.describe())
        return next(each for each in found if each.token_id == token_id)

    before = token()
    admin(guarded.logins, as_user("ann"), lambda client: client.delegation_tokens.expire(before.hmac, 8000))
    renewal = threading.Timer(
        2, lambda: admin(guarded.logins, as_user("ann"), lambda client: client.delegation_tokens.renew(before.hmac))
    )
    renewal.start()
    read = guarded.java.ask(
        "consume",
        bootstrap=guarded.logins,
        topic="long",
        config=settings,
        partitions=[0],
        count=6,
        timeout_ms=12_000,
        **{"from": "beginning"},
    )
    renewal.join()
    assert [each["offset"] for each in read["records"]] == list(range(5))
    assert token().expires_ms > before.issued_ms + 60_000
    assert "the session is over" not in guarded.node.log_file.read_text()
