"""Apache Kafka's own tools as a user with few rights, who gets more of them one by one; the same against Apache Kafka."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, free_ports, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"
TOPICS, ACLS = "org.apache.kafka.tools.TopicCommand", "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
NO_TOPIC, NO_CLUSTER = "TopicAuthorizationException", "ClusterAuthorizationException"
FAILED = re.compile("Exception: |Error while executing")
"""The status says nothing about tools that end their own JVM, which this one must not."""
AGAIN_S = 20
"""A change of the ACLs is not everywhere at once."""

Tool = Callable[..., str]


class Operator:
    """Runs tools as the administrator or as alice, until one ends as expected."""

    def __init__(self, java: JavaSide, node: Node, logins: int, config: Path) -> None:
        self._java = java
        self._at = {"administrator": node.bootstrap, "alice": f"127.0.0.1:{logins}"}
        self._config = config

    def run(self, who: str, tool: str, *args: str, says: str, succeeds: bool = False) -> str:
        """What the tool printed."""
        own = ("--command-config", str(self._config)) if who == "alice" else ()
        deadline = time.monotonic() + AGAIN_S
        while True:
            done = self._java.tool(tool, "--bootstrap-server", self._at[who], *own, *args)
            said = str(done["out"]) + str(done["err"])
            if re.search(says, said, re.S) and not (succeeds and FAILED.search(said)):
                return said
            assert time.monotonic() < deadline, f"{who}: {tool} {' '.join(args)} printed:\n{said[-2000:]}"

    def alice(self, tool: str, *args: str, says: str = "") -> str:
        """``says``: what is printed; without it the tool must succeed."""
        return self.run("alice", tool, *args, says=says, succeeds=not says)

    def administrator(self, tool: str, *args: str, says: str = "") -> str:
        return self.run("administrator", tool, *args, says=says, succeeds=True)


@pytest.fixture(scope="module", params=["tidelog", "apache"])
def operator(request: pytest.FixtureRequest, java: JavaSide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    folder = tmp_path_factory.mktemp(request.param)
    broker, controller, logins = ports = free_ports(3)
    named = {"PLAINTEXT": broker, "CONTROLLER": controller, "USERS": logins}
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker},USERS://127.0.0.1:{logins}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{JAAS} required user_alice="secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    config = folder / "alice.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\ndefault.api.timeout.ms=30000\n"
        f'sasl.jaas.config={JAAS} required username="alice" password="secret";\n'
    )
    with running(Node(request.param, folder / "node", java, properties, ports=ports[:2])) as node:
        yield Operator(java, node, logins, config)


def allow(operator: Operator, *rule: str, topic: str, pattern: str = "literal") -> None:
    operations = [word for operation in rule for word in ("--operation", operation)]
    place = ("--topic", topic, "--resource-pattern-type", pattern)
    operator.administrator(ACLS, "--add", "--allow-principal", "User:alice", *operations, *place, says="Adding ACLs")


def test_a_user_without_rights_sees_and_changes_nothing(operator: Operator) -> None:
    operator.administrator(TOPICS, "--create", "--topic", "secret", says="Created topic secret")
    assert "secret" not in operator.alice(TOPICS, "--list")
    operator.alice(TOPICS, "--describe", "--topic", "secret", says="does not exist as expected")
    operator.alice(TOPICS, "--create", "--topic", "mine", says=NO_TOPIC)
    operator.alice(TOPICS, "--delete", "--topic", "secret", says="does not exist as expected")
    operator.alice(CONFIGS, "--describe", "--topic", "secret", says="doesn't exist")
    operator.alice(
        CONFIGS, "--alter", "--topic", "secret", "--add-config", "retention.ms=1000", says="TopicAuthorizationException"
    )
    operator.alice(CONFIGS, "--describe", "--broker", "1", "--all", says=NO_CLUSTER)
    operator.alice(CONFIGS, "--alter", "--broker", "1", "--add-config", "log.cleaner.threads=2", says=NO_CLUSTER)
    operator.alice(CONFIGS, "--describe", "--entity-type", "users", says=NO_CLUSTER)
    operator.alice(
        CONFIGS,
        *("--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config", "producer_byte_rate=9"),
        says=NO_CLUSTER,
    )
    operator.alice(ACLS, "--list", says=NO_CLUSTER)
    operator.alice(ACLS, "--add", "--allow-principal", "User:alice", "--operation", "All", "--cluster", says=NO_CLUSTER)
    seen = operator.administrator(TOPICS, "--describe", "--topic", "secret", says="secret")
    assert "retention.ms" not in seen


def test_each_right_lets_her_do_one_thing_more(operator: Operator) -> None:
    operator.administrator(TOPICS, "--create", "--if-not-exists", "--topic", "orders", "--partitions", "2")
    allow(operator, "Describe", topic="orders")
    listed = operator.alice(TOPICS, "--list", says="orders")
    assert "secret" not in listed
    operator.alice(TOPICS, "--describe", "--topic", "orders", says=f"PartitionCount: 2|{NO_TOPIC}")
    operator.alice(TOPICS, "--alter", "--topic", "orders", "--partitions", "3", says=NO_TOPIC)
    operator.alice(TOPICS, "--delete", "--topic", "orders", says=NO_TOPIC)
    allow(operator, "DescribeConfigs", topic="orders")
    operator.alice(TOPICS, "--describe", "--topic", "orders", says="PartitionCount: 2")
    operator.alice(CONFIGS, "--describe", "--topic", "orders", "--all", says="cleanup.policy=delete")
    operator.alice(
        CONFIGS, "--alter", "--topic", "orders", "--add-config", "retention.ms=1000", says="TopicAuthorizationException"
    )
    allow(operator, "AlterConfigs", "Alter", topic="orders")
    operator.alice(CONFIGS, "--alter", "--topic", "orders", "--add-config", "retention.ms=1000", says="Completed updating")
    operator.alice(TOPICS, "--alter", "--topic", "orders", "--partitions", "3")
    operator.alice(TOPICS, "--describe", "--topic", "orders", says="PartitionCount: 3.*retention.ms=1000")


def test_rights_on_a_prefix_and_their_end(operator: Operator) -> None:
    allow(operator, "Create", "Describe", "Delete", topic="mine-", pattern="prefixed")
    operator.alice(TOPICS, "--create", "--topic", "mine-1", says="Created topic mine-1|already exists")
    operator.alice(TOPICS, "--create", "--topic", "other-1", says=NO_TOPIC)
    operator.alice(TOPICS, "--create", "--topic", "mine-2", says="Created topic mine-2|already exists")
    operator.alice(TOPICS, "--delete", "--topic", "mine-2")
    listed = operator.administrator(ACLS, "--list", "--principal", "User:alice", says="mine-")
    assert "patternType=PREFIXED" in listed
    rule = ("--allow-principal", "User:alice", "--topic", "mine-", "--resource-pattern-type", "prefixed")
    operator.administrator(ACLS, "--remove", "--force", "--operation", "Create", "--operation", "Describe", *rule)
    operator.alice(TOPICS, "--create", "--topic", "mine-3", says=NO_TOPIC)
    # DELETE, which is left, implies DESCRIBE.
    operator.alice(TOPICS, "--describe", "--topic", "mine-1", says=f"mine-1|{NO_TOPIC}")
    operator.administrator(ACLS, "--remove", "--force", "--operation", "Delete", *rule)
    operator.alice(TOPICS, "--describe", "--topic", "mine-1", says="does not exist as expected")
