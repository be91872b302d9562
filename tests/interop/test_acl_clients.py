"""ACLs by Apache Kafka's own kafka-acls, by ``tidelog acls`` and by the admin clients of Python, on both kinds of node.

One directory is served by both kinds in turn: ACLs made on one hold on the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka.admin
import pytest
from click.testing import CliRunner
from confluent_kafka import admin as confluent
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType

from tests.interop.java import JavaFailed, JavaSide, as_text
from tests.interop.nodes import Node, free_ports, running
from tidelog.cli.main import main

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOOL = "org.apache.kafka.tools.AclCommand"
JAAS = "org.apache.kafka.common.security"
LIMIT_S = 30
SETTLE_S = 0.3
"""A change is answered when it is committed; the broker that lists the ACLs may read it a moment later."""
ON = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
COMMANDS = (
    "--add --topic orders --operation Read --operation Describe --allow-principal User:alice --deny-principal User:bob",
    "--add --topic orders --operation Read --allow-principal User:alice",
    "--add --producer --topic or --resource-pattern-type prefixed --allow-principal User:carol --transactional-id tx",
    "--add --producer --idempotent --topic idem --allow-principal User:carol",
    "--add --consumer --topic orders --group * --allow-principal User:* --allow-host 10.0.0.1 --allow-host ::1",
    "--add --cluster --operation DescribeConfigs --operation ClusterAction --allow-principal User:node",
    "--add --user-principal User:alice --operation CreateTokens --allow-principal User:bob",
    "--add --delegation-token id --operation Describe --allow-principal User:bob",
    "--add --group g --operation Write --allow-principal User:alice",
    "--list",
    "--list --topic orders",
    "--list --topic orders --resource-pattern-type match",
    "--list --topic or --resource-pattern-type any",
    "--list --principal User:carol",
    "--list --cluster --group *",
    "--remove --force --topic orders --operation Read --allow-principal User:alice",
    "--remove --force --topic missing",
    "--list --topic orders",
    "--remove --force --topic orders --resource-pattern-type match",
    "--remove --force --topic idem --group * --cluster --transactional-id tx",
    "--list",
)


@pytest.fixture(scope="module", params=["tidelog", "apache"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: JavaSide) -> Iterator[Node]:
    with running(Node(request.param, tmp_path_factory.mktemp("guarded"), java, ON)) as node:
        yield node


@pytest.fixture(autouse=True)
def without_acls(request: pytest.FixtureRequest) -> None:
    if "guarded" in request.fixturenames:
        delete_all(request.getfixturevalue("guarded"))


def any_acl(name: str | None = None) -> confluent.AclBindingFilter:
    return confluent.AclBindingFilter(
        confluent.ResourceType.ANY,
        name,
        confluent.ResourcePatternType.ANY,
        None,
        None,
        confluent.AclOperation.ANY,
        confluent.AclPermissionType.ANY,
    )


def delete_all(node: Node) -> None:
    client = confluent.AdminClient({"bootstrap.servers": node.bootstrap})
    client.delete_acls([any_acl()])[any_acl()].result(LIMIT_S)


def kafkas(java: JavaSide, node: Node, words: str) -> tuple[int, list[str]]:
    """What Kafka's own tool ends with, and its lines without an order: it has none."""
    done = java.tool(TOOL, "--bootstrap-server", node.bootstrap, *words.split())
    return done["status"], meant(done["out"])


def ours(node: Node, words: str) -> tuple[int, list[str]]:
    """What ``tidelog acls`` ends with, and its lines."""
    done = CliRunner().invoke(main, ["acls", "--bootstrap-server", node.bootstrap, *words.split()])
    return done.exit_code, meant(done.stdout)


def meant(out: str) -> list[str]:
    return sorted(
        filter(
            None, (line.strip() for line in out.splitlines() if not line.startswith(("Error", "java.", "\tat ", "Roundtrip$")))
        )
    )


def all_of(java: JavaSide, node: Node) -> list[list[tuple[int, list[str]]]]:
    """What each command says, by Kafka's tool and by ours."""
    found = []
    for say in (lambda words: kafkas(java, node, words), lambda words: ours(node, words)):
        said = []
        for words in COMMANDS:
            said.append(say(words))
            if "--list" not in words:
                time.sleep(SETTLE_S)
        found += [said, [kafkas(java, node, "--list")]]
        delete_all(node)
        time.sleep(SETTLE_S)
    return found


def test_kafkas_tool_and_ours_say_and_do_the_same_on_both_kinds_of_node(tmp_path: Path, java: JavaSide) -> None:
    said = []
    for kind in ("tidelog", "apache"):
        with running(Node(kind, tmp_path / kind, java, ON)) as node:
            said.append(all_of(java, node))
    (theirs_here, left_here, ours_here, left_ours), (theirs_there, left_there, ours_there, _) = said
    assert theirs_here == theirs_there, "Kafka's tool on both nodes"
    assert left_here == left_there == left_ours, "what is left"
    for words, here, there in zip(COMMANDS, ours_here, ours_there, strict=True):
        assert here == there, words
    for words, one, other in zip(COMMANDS, theirs_here, ours_here, strict=True):
        assert one == other, words
    assert any("patternType=PREFIXED" in line for line in theirs_here[COMMANDS.index("--list")][1])


def test_librdkafkas_admin_client(guarded: Node) -> None:
    client = confluent.AdminClient({"bootstrap.servers": guarded.bootstrap})
    binding = confluent.AclBinding(
        confluent.ResourceType.TOPIC,
        "orders",
        confluent.ResourcePatternType.PREFIXED,
        "User:alice",
        "*",
        confluent.AclOperation.READ,
        confluent.AclPermissionType.ALLOW,
    )
    for _ in range(2):
        assert client.create_acls([binding])[binding].result(LIMIT_S) is None
    assert client.describe_acls(any_acl()).result(LIMIT_S) == [binding]
    assert client.describe_acls(any_acl("other")).result(LIMIT_S) == []
    bad = confluent.AclBinding(
        confluent.ResourceType.BROKER,
        "not the cluster",
        confluent.ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        confluent.AclOperation.READ,
        confluent.AclPermissionType.ALLOW,
    )
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        client.create_acls([bad])[bad].result(LIMIT_S)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError.INVALID_REQUEST
    assert client.delete_acls([any_acl("orders")])[any_acl("orders")].result(LIMIT_S) == [binding]
    assert client.describe_acls(any_acl()).result(LIMIT_S) == []


def test_kafka_pythons_admin_client(guarded: Node) -> None:
    client: Any = kafka.admin.KafkaAdminClient(bootstrap_servers=guarded.bootstrap)
    try:
        pattern = ResourcePattern(ResourceType.TOPIC, "orders", ACLResourcePatternType.LITERAL)
        acl = ACL("User:alice", "*", ACLOperation.WRITE, ACLPermissionType.ALLOW, pattern)
        client.create_acls([acl])
        found = client.describe_acls(ACLFilter("User:alice", "*", ACLOperation.ANY, ACLPermissionType.ANY, pattern))
        assert str(acl) in str(found)
        client.delete_acls([acl])
        found = client.describe_acls(ACLFilter("User:alice", "*", ACLOperation.ANY, ACLPermissionType.ANY, pattern))
        assert str(acl) not in str(found)
    finally:
        client.close()


def test_acls_made_on_one_kind_of_node_hold_on_the_other(tmp_path: Path, java: JavaSide) -> None:
    ports = free_ports(3)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", "LOGIN"), ports, strict=True))
    properties = ON | {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{JAAS}.plain.PlainLoginModule required user_ann="a" user_bob="b";',
    }
    node = Node("apache", tmp_path, java, properties, ports=ports[:2])
    login = f"127.0.0.1:{ports[2]}"

    def writes(user: str) -> bool:
        config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{JAAS}.plain.PlainLoginModule required username="{user}" password="{user[0]}";',
            "max.block.ms": "20000",
        }
        records = [{"partition": 0, "key": None, "value": as_text(b"v"), "timestamp": 1, "headers": []}]
        try:
            java.ask("produce", bootstrap=login, topic="orders", config=config, records=records)
        except JavaFailed as failed:
            assert "AuthorizationException" in str(failed)
            return False
        return True

    with running(node):
        node.create("orders")
        add = "--add --topic orders --operation Write --operation Describe --allow-principal User:"
        assert kafkas(java, node, f"{add}ann")[0] == 0
        assert (writes("ann"), writes("bob")) == (True, False)
        listed = kafkas(java, node, "--list")
        node.stop()
        node.start("tidelog")
        assert kafkas(java, node, "--list") == listed
        assert (writes("ann"), writes("bob")) == (True, False)
        assert kafkas(java, node, "--remove --force --topic orders --allow-principal User:ann --operation Write")[0] == 0
        assert kafkas(java, node, f"{add}bob")[0] == 0
        assert (writes("ann"), writes("bob")) == (False, True)
        listed = kafkas(java, node, "--list")
        node.stop()
        node.start("apache")
        assert kafkas(java, node, "--list") == listed
        assert (writes("ann"), writes("bob")) == (False, True)
