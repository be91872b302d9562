"""A node that takes tickets, its KDC, and the keytabs of its clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, free_ports, running
from tests.kerberos.kdc import REALM, Kdc, kinit

REAUTH_MS = 2000
RULES = "RULE:[1:$1@$0](eve@.*),DEFAULT"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"


class Realm:
    """A node with tickets, its KDC, and the keytabs of clients."""

    def __init__(self, node: Node, kdc: Kdc, ports: list[int], keytabs: dict[str, Path]) -> None:
        self.node, self.kdc, self.keytabs = node, kdc, keytabs
        self.port = ports[0]
        self.long, self.short = (f"localhost:{port}" for port in ports)

    def become(self, user: str) -> Path:
        """Makes a ticket of this user the one that libraries of this process, and kcat, find."""
        cache = self.kdc.home / f"{user}.cache"
        kinit(self.kdc, user, self.keytabs[user], cache)
        os.environ["KRB5CCNAME"] = str(cache)
        return cache

    def jaas(self, user: str) -> dict[str, str]:
        """The settings of a Java client that logs in as this user."""
        return {**client_settings(by_keytab(user, self.keytabs[user])), "max.block.ms": "20000"}


def by_keytab(user: str, keytab: Path) -> str:
    """The JAAS entry of a client or a node."""
    return f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{user}@{REALM}";'


def client_settings(entry: str) -> dict[str, str]:
    """The settings of a client with this JAAS entry."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": entry,
    }


@contextmanager
def realm_of(kdc: Kdc, java: JavaSide, home: Path) -> Iterator[Realm]:
    """A started node of the KDC."""
    keytabs = {user: kdc.add(user) for user in ("ann", "bob", "eve")}
    keytabs["brief"] = kdc.add("brief", max_life="10s")
    ports = free_ports(4)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", "LONG", "SHORT"), ports, strict=True))
    jaas = by_keytab("kafka/localhost", kdc.add("kafka/localhost"))
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LONG:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT",
        "listener.name.long.gssapi.sasl.jaas.config": jaas,
        "listener.name.short.gssapi.sasl.jaas.config": jaas,
        "listener.name.short.connections.max.reauth.ms": str(REAUTH_MS),
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:ann",
    }
    with running(Node("tidelog", home, java, properties, ports=ports[:2])) as started:
        yield Realm(started, kdc, ports[2:], keytabs)
