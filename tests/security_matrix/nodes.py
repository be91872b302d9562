"""A node with an authorizer and a listener with logins, of either kind, with the same settings."""

from __future__ import annotations

from pathlib import Path

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, free_ports
from tests.security_matrix.principals import SUPER_USERS, jaas

HALF_AN_HOUR_MS = "1800000"


def secured_node(kind: str, folder: Path, java: JavaSide | None) -> tuple[Node, dict[str, int]]:
    """The node, not started, and the ports of its listeners: ``plain`` (super user), ``broker`` and ``controller`` (logins)."""
    broker, controller, users = ports = free_ports(3)
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller},USERS://127.0.0.1:{users}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker},USERS://127.0.0.1:{users}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,USERS:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": jaas(node=False),
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas(node=True),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in (*SUPER_USERS, "ANONYMOUS")),
        "delegation.token.secret.key": "matrix",
        "num.partitions": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        # The members that the matrix describes send no heartbeats.
        "group.consumer.session.timeout.ms": HALF_AN_HOUR_MS,
        "group.consumer.max.session.timeout.ms": HALF_AN_HOUR_MS,
        "group.streams.initial.rebalance.delay.ms": "0",
        "group.streams.session.timeout.ms": HALF_AN_HOUR_MS,
        "group.streams.max.session.timeout.ms": HALF_AN_HOUR_MS,
        "group.share.session.timeout.ms": HALF_AN_HOUR_MS,
        "group.share.max.session.timeout.ms": HALF_AN_HOUR_MS,
        "share.coordinator.state.topic.num.partitions": "1",
        "log.retention.ms": "-1",
    }
    node = Node(kind, folder, java, properties, ports=ports[:2])
    return node, {"plain": broker, "broker": users, "controller": controller}
