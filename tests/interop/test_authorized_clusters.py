"""Brokers that forward to a controller in another process: the client's rights decide, whichever kind each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.interop.nodes import free_ports
from tests.interop.test_mixed_cluster import MixedCluster

pytestmark = pytest.mark.interop
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The nodes and the administrator, who do not log in.
    "super.users": "User:ANONYMOUS",
}
USERS = {
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.users.plain.sasl.jaas.config": f'{PLAIN} required user_alice="alice-secret";',
}
MAY_NOT_TOPIC, MAY_NOT_CLUSTER = "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"


class AuthorizedCluster(MixedCluster):
    """Each broker has a listener where alice logs in."""

    def __init__(self, directory: Path, apache: Iterable[int], count: int, controllers: int) -> None:
        self.login_ports = dict(enumerate(free_ports(count), 1))
        super().__init__(directory, count, apache, controllers=controllers, properties=SETTINGS)

    def settings(self, node_id: int) -> dict[str, str]:
        settings = super().settings(node_id)
        if node_id in self.brokers:
            settings["listeners"] += f",USERS://127.0.0.1:{self.login_ports[node_id]}"
            settings |= USERS
        return settings

    def administrator(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": f"127.0.0.1:{self.ports[1]}"})

    def alice(self, via: int) -> AdminClient:
        """Connected to this broker; librdkafka sends what controllers decide to the broker that is named as the controller."""
        return AdminClient(
            {
                "bootstrap.servers": f"127.0.0.1:{self.login_ports[via]}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "alice",
                "sasl.password": "alice-secret",
            }
        )


def outcome(asked: dict[Any, Any]) -> str:
    """The name of the error of a request about one thing; empty without an error."""
    (future,) = asked.values()
    try:
        future.result(60)
    except KafkaException as error:
        return str(error.args[0].name())
    return ""


def may(operation: AclOperation, name: str) -> AclBinding:
    kind, prefixed = ResourceType.TOPIC, ResourcePatternType.PREFIXED
    return AclBinding(kind, name, prefixed, "User:alice", "127.0.0.1", operation, AclPermissionType.ALLOW)


@pytest.mark.parametrize(
    ("apache", "count", "controllers"),
    [((), 3, 3), ((2,), 2, 1), ((101,), 2, 1), ((2, 101), 2, 1)],
    ids=["tidelog", "apache-broker", "apache-controller", "apache-broker-and-controller"],
)
def test_the_rights_of_the_client_decide(tmp_path: Path, apache: tuple[int, ...], count: int, controllers: int) -> None:
    with AuthorizedCluster(tmp_path, apache, count, controllers) as cluster:
        cluster.until(lambda: cluster.alive(1) == set(cluster.brokers), "all brokers are unfenced")
        administrator = cluster.administrator()
        assert outcome(administrator.create_topics([NewTopic("secret", 1, 1)])) == ""
        hers: set[str] = set()
        for via in cluster.brokers:
            alice = cluster.alice(via)
            name = f"mine-{via}"
            assert outcome(alice.create_topics([NewTopic(name, 1, 1)])) == MAY_NOT_TOPIC
            rights = (AclOperation.CREATE, AclOperation.DESCRIBE)
            for right in rights:
                assert outcome(administrator.create_acls([may(right, name)])) == ""
            cluster.until(lambda: outcome(alice.create_topics([NewTopic(name, 1, 1)])) == "", "alice may create it")  # noqa: B023
            assert outcome(alice.create_topics([NewTopic(f"other-{via}", 1, 1)])) == MAY_NOT_TOPIC
            assert outcome(alice.create_partitions([NewPartitions(name, 4)])) == MAY_NOT_TOPIC
            assert outcome(alice.delete_topics([name])) == MAY_NOT_TOPIC
            assert outcome(alice.delete_topics(["secret"])) == MAY_NOT_TOPIC
            entry = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
            change = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
            assert outcome(alice.incremental_alter_configs([change])) == MAY_NOT_TOPIC
            assert outcome(alice.create_acls([may(AclOperation.ALL, "s")])) == MAY_NOT_CLUSTER
            hers.add(name)
            cluster.until(lambda: set(alice.list_topics(timeout=30).topics) == hers, "alice sees hers")  # noqa: B023
        assert set(administrator.list_topics(timeout=30).topics) == {"secret", *hers}


@pytest.mark.parametrize(
    ("apache", "answer"),
    [((), ""), ((2,), "UNSUPPORTED_VERSION"), ((101,), "")],
    ids=["tidelog", "apache-broker", "apache-controller"],
)
def test_acls_for_groups_are_refused_beside_brokers_that_do_not_count_them(
    tmp_path: Path, apache: tuple[int, ...], answer: str
) -> None:
    """Unless a controller of Apache Kafka decides, which takes every principal."""
    with AuthorizedCluster(tmp_path, apache, 2, 1) as cluster:
        cluster.until(lambda: cluster.alive(1) == set(cluster.brokers), "all brokers are unfenced")
        administrator = cluster.administrator()
        for principal in ("Group:staff", "Role:readers"):
            for permission in (AclPermissionType.ALLOW, AclPermissionType.DENY):
                binding = AclBinding(
                    ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, principal, "*", AclOperation.READ, permission
                )
                assert outcome(administrator.create_acls([binding])) == answer
