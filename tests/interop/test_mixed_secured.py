"""Clusters of tidelog's and Apache Kafka's nodes whose listeners are all SASL_SSL: users, ACLs and tokens made by one kind
hold on the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.certificates import Authority
from tests.interop.test_mixed_cluster import MixedCluster
from tidelog.client import (
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclResourceType,
    AdminClient,
    DelegationToken,
    ErrorCode,
    KafkaError,
    NoConnection,
    NotAuthenticated,
    PatternType,
    PermissionType,
)
from tidelog.client.calls import Ask, Call, Node
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.security.scram import ScramMechanism, salted_password

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

JAAS = "org.apache.kafka.common.security"
PLAIN_USERS = {name: f"{name}-secret" for name in ("admin", "node", "ann", "bob")}
SCRAM = {each.title: each for each in ScramMechanism}
LIMIT_S = 30
T = TypeVar("T")


class SecuredCluster(MixedCluster):
    """One listener for clients and brokers, one for controllers, both with TLS and a login, and Kafka's authorizer."""

    def __init__(self, directory: Path, apache: Iterable[int]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = Authority()
        (directory / "authority.pem").write_text(self._authority.pem)
        super().__init__(directory, 2, apache, controllers=1)

    def settings(self, node_id: int) -> dict[str, str]:
        settings = super().settings(node_id)
        keys = self.directory / f"{node_id}.pem"
        if not keys.exists():
            keys.write_text(self._authority.issue(f"node-{node_id}", "127.0.0.1").both)
        users = " ".join(f'user_{name}="{password}"' for name, password in PLAIN_USERS.items())
        entry = f'{JAAS}.plain.PlainLoginModule required username="node" password="{PLAIN_USERS["node"]}" {users};'
        settings["listeners"] = settings["listeners"].replace("PLAINTEXT://", "CLIENTS://")
        settings |= {
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SASL_SSL",
            "inter.broker.listener.name": "CLIENTS",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": entry,
            "listener.name.clients.sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM)),
            "listener.name.clients.plain.sasl.jaas.config": entry,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "authority.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:node",
            "delegation.token.secret.key": "the-key-of-tokens",
        }
        for mechanism in SCRAM:
            settings[f"listener.name.clients.{mechanism.lower()}.sasl.jaas.config"] = f"{JAAS}.scram.ScramLoginModule required;"
        return settings

    def as_user(
        self, via: int, user: tuple[str, str, str], call: Callable[[AdminClient], Awaitable[T]], token: bool = False
    ) -> T:
        """What the user, (mechanism, name, password), is answered by way of this broker."""
        mechanism, name, password = user
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        more = ' tokenauth="true"' if token else ""
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.directory / "authority.pem"),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{JAAS}.{module} required username="{name}" password="{password}"{more};',
        }

        async def run() -> T:
            async with AdminClient(f"127.0.0.1:{self.ports[via]}", settings) as client:
                return await call(client)

        return asyncio.run(asyncio.wait_for(run(), LIMIT_S))

    def admin(self, via: int, call: Callable[[AdminClient], Awaitable[T]]) -> T:
        return self.as_user(via, plain("admin"), call)

    def names(self, via: int, user: tuple[str, str, str], token: bool = False) -> set[str] | None:
        """The topics that a user sees there; None for one who cannot log in."""
        try:
            return set(self.as_user(via, user, lambda client: client.topics.names(), token))
        except NotAuthenticated:
            return None

    def brokers_seen(self, via: int) -> set[int]:
        try:
            return {each.node_id for each in self.admin(via, lambda client: client.cluster.describe()).nodes}
        except (KafkaError, NoConnection, TimeoutError):
            return set()


def plain(name: str) -> tuple[str, str, str]:
    return "PLAIN", name, PLAIN_USERS[name]


def scram(via: int, name: str, mechanism: str, password: str | None) -> Call[Any]:
    """A request to one broker: the user gets this password, or is deleted."""
    kind = SCRAM[mechanism]
    if password is None:
        request = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name, kind)])
    else:
        salt = os.urandom(16)
        made = ScramCredentialUpsertion(name, kind, 4096, salt, salted_password(kind, password, salt, 4096))
        request = AlterUserScramCredentialsRequest(upsertions=[made])
    answer = yield Ask(request, Node(via))
    (result,) = answer.results
    assert result.error_code == ErrorCode.NONE, result.error_message


def check_users_and_acls(cluster: SecuredCluster, via: int, other: int) -> None:
    """A user and an ACL that are made by way of one broker, and changed by way of the other."""
    both = (via, other)
    name, topic = f"eve-{via}", f"seen-{via}"
    users = {mechanism: (mechanism, name, f"{mechanism}-first") for mechanism in SCRAM}
    for mechanism, user in users.items():
        cluster.admin(via, lambda client: client.run(scram(via, name, mechanism, user[2])))  # noqa: B023
        for by in both:
            cluster.until(lambda: cluster.names(by, user) is not None, "the user logs in")  # noqa: B023
            assert cluster.names(by, (mechanism, name, "wrong")) is None
    eve = users["SCRAM-SHA-512"]
    cluster.admin(via, lambda client: client.topics.create(topic, 1, 2))
    entry = AccessControlEntry(
        AclResourceType.TOPIC, topic, PatternType.LITERAL, f"User:{name}", "*", AclOperation.DESCRIBE, PermissionType.ALLOW
    )
    assert cluster.admin(via, lambda client: client.acls.create(entry)) == {}
    for by in both:
        cluster.until(lambda: cluster.names(by, eve) == {topic}, "the user sees the topic")  # noqa: B023
    cluster.admin(other, lambda client: client.acls.delete(AclFilter(principal=f"User:{name}")))
    for by in both:
        cluster.until(lambda: cluster.names(by, eve) == set(), "the user sees nothing")  # noqa: B023
    changed = ("SCRAM-SHA-512", name, "second")
    cluster.admin(other, lambda client: client.run(scram(other, name, "SCRAM-SHA-512", "second")))
    for by in both:
        cluster.until(lambda: cluster.names(by, changed) is not None, "the new password counts")  # noqa: B023
        cluster.until(lambda: cluster.names(by, eve) is None, "the old password does not")  # noqa: B023
    cluster.admin(other, lambda client: client.run(scram(other, name, "SCRAM-SHA-512", None)))
    for by in both:
        cluster.until(lambda: cluster.names(by, changed) is None, "the user is gone")  # noqa: B023


def check_tokens(cluster: SecuredCluster, via: int, other: int) -> None:
    """A token that is made by way of one broker, and renewed and ended by way of the other."""

    def described(by: int, user: str) -> dict[str, DelegationToken]:
        found = cluster.as_user(by, plain(user), lambda client: client.delegation_tokens.describe())
        return {each.token_id: each for each in found}

    made = cluster.as_user(via, plain("ann"), lambda client: client.delegation_tokens.create("User:bob"))
    logins = [(mechanism, made.token_id, made.password) for mechanism in SCRAM]
    for by in (via, other):
        for login in logins:
            cluster.until(lambda: cluster.names(by, login, token=True) is not None, "it logs in")  # noqa: B023
        assert described(by, "bob")[made.token_id] == made
        with pytest.raises(KafkaError) as error:
            cluster.as_user(by, logins[0], lambda client: client.delegation_tokens.create(), token=True)
        assert error.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    ends_ms = cluster.as_user(other, plain("bob"), lambda client: client.delegation_tokens.renew(made.hmac, 60_000))
    for by in (via, other):
        cluster.until(lambda: described(by, "ann")[made.token_id].expires_ms == ends_ms, "it is renewed")  # noqa: B023
    cluster.as_user(other, plain("ann"), lambda client: client.delegation_tokens.expire(made.hmac))
    for by in (via, other):
        cluster.until(lambda: cluster.names(by, logins[1], token=True) is None, "it is gone")  # noqa: B023
        assert made.token_id not in described(by, "ann")


@pytest.mark.parametrize("apache", [(2,), (2, 101)], ids=["our controller", "Apache's controller"])
def test_what_one_kind_of_node_makes_holds_on_the_other(tmp_path: Path, apache: tuple[int, ...]) -> None:
    with SecuredCluster(tmp_path, apache) as cluster:
        cluster.until(lambda: cluster.brokers_seen(1) == set(cluster.brokers), "all brokers are unfenced")
        for via, other in ((1, 2), (2, 1)):
            check_users_and_acls(cluster, via, other)
            check_tokens(cluster, via, other)
