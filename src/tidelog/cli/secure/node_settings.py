"""The nodes of a secured cluster and their settings: every listener speaks TLS, and an authorizer decides.

Clients log in by SASL_SSL with SCRAM-SHA-512. Brokers and controllers show each other the node's certificate, whose name is a
super user. Ports are those of ``tidelog cluster``; the listener between brokers is 3000 above that of the clients.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.cli.cluster.local_layout import CONTROLLER_OFFSET, LAST_PORT, METRICS_OFFSET, VOTERS
from tidelog.cli.refusal import CommandFailed
from tidelog.config.authorizer import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS

NODES_OFFSET = 3000
"""Difference between the ports for brokers and for clients."""
MECHANISM = "SCRAM-SHA-512"
PROTOCOLS = {"CLIENTS": "SASL_SSL", "NODES": "SSL", "CONTROLLER": "SSL"}
KEY_STORE, TRUST_STORE, SETTINGS, DATA = "node.pem", "authority.pem", "server.properties", "data"
LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class SecuredNode:
    """A node. ``names``: host names and addresses that it is reached by; clients hear of the first."""

    id: int
    names: tuple[str, ...]
    port: int
    voter: bool
    directory_id: str

    @property
    def host(self) -> str:
        """Where it listens."""
        return self.names[0]

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"node-{self.id}"

    @property
    def common_name(self) -> str:
        """The name in its certificate."""
        return self.folder

    @property
    def address(self) -> str:
        """The address for clients."""
        return _address(self.host, self.port)

    @property
    def controller_port(self) -> int:
        """The port of its controller, if it is one."""
        return self.port + CONTROLLER_OFFSET


def plan_nodes(count: int, hosts: Sequence[str], port: int, directory_ids: Sequence[str]) -> tuple[SecuredNode, ...]:
    """``count`` nodes from id 1 on, three voters or one.

    ``hosts``: one for each node, or one for all, whose ports are then in a row; each may be several names, split by commas.
    CommandFailed when the numbers do not fit.
    """
    if len(hosts) not in (1, count):
        raise CommandFailed(f"--host is given {len(hosts)} times for {count} nodes. Give it once for each node, or once for all.")
    apart = len(hosts) == 1
    last = port + (count - 1 if apart else 0) + NODES_OFFSET
    if last > LAST_PORT or (apart and count >= CONTROLLER_OFFSET):
        raise CommandFailed(f"--port {port} leaves no room: brokers listen {NODES_OFFSET} above it, up to {LAST_PORT}.")
    voters = VOTERS if count >= VOTERS else 1
    return tuple(
        SecuredNode(
            index + 1,
            _names(hosts[0 if apart else index]),
            port + (index if apart else 0),
            index < voters,
            directory_ids[index],
        )
        for index in range(count)
    )


def settings_of(node: SecuredNode, nodes: Sequence[SecuredNode], admin: str, folder: str) -> dict[str, str]:
    """The ``server.properties`` of a node whose files are in ``folder``."""
    factor = min(3, len(nodes))
    listeners = [f"CLIENTS://{node.address}", f"NODES://{_address(node.host, node.port + NODES_OFFSET)}"]
    if node.voter:
        listeners.append(f"CONTROLLER://{_address(node.host, node.controller_port)}")
    voters = [_address(each.host, each.controller_port) for each in nodes if each.voter]
    super_users = [*(f"User:CN={each.common_name}" for each in nodes), f"User:{admin}"]
    return {
        "process.roles": "broker,controller" if node.voter else "broker",
        "node.id": str(node.id),
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()),
        "inter.broker.listener.name": "NODES",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(voters),
        "log.dirs": f"{folder}/{DATA}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{folder}/{KEY_STORE}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{folder}/{TRUST_STORE}",
        "listener.name.nodes.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "listener.name.clients.sasl.enabled.mechanisms": MECHANISM,
        AUTHORIZER: STANDARD_AUTHORIZER,
        SUPER_USERS: ";".join(super_users),
        "default.replication.factor": str(factor),
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(min(2, factor)),
        "share.coordinator.state.topic.replication.factor": str(factor),
        "share.coordinator.state.topic.min.isr": str(min(2, factor)),
        "tidelog.http.listener": f"localhost:{node.port + METRICS_OFFSET}",
    }


def _names(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandFailed("--host is empty. Name the host that clients connect to.")
    if names[0] in LOOPBACK:
        names += LOOPBACK
    return tuple(dict.fromkeys(names))


def _address(host: str, port: int) -> str:
    try:
        written = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        written = host
    return f"{written}:{port}"
