"""Three nodes whose listeners all take tickets, and whose nodes log in to each other with them (``make kerberos``).

The tickets of nodes live for ten seconds, so every connection between nodes renews its session a few times.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.java import JavaSide, as_text
from tests.interop.nodes import Node, NodeFailed, answers, free_ports
from tests.kerberos.kdc import REALM, Kdc
from tests.kerberos.realm import by_keytab, client_settings
from tidelog.client import AdminClient

LIMIT_S = 60
TICKET_S = 10
LOAD_S = 25
USERS = "User:kafka;User:carol"


class Cluster:
    """The nodes; clients log in as carol."""

    def __init__(self, kdc: Kdc, java: JavaSide, home: Path) -> None:
        keytab = kdc.add("kafka-node/localhost", max_life=f"{TICKET_S}s")
        entry = by_keytab("kafka-node/localhost", keytab)
        ports = free_ports(6)
        self.brokers, controllers = dict(enumerate(ports[:3], 1)), dict(enumerate(ports[3:], 1))
        self.bootstrap = ",".join(f"localhost:{port}" for port in self.brokers.values())
        self.settings = client_settings(by_keytab("carol", kdc.add("carol"))) | {"sasl.kerberos.service.name": "kafka-node"}
        common = {
            "controller.quorum.voters": ",".join(f"{each}@localhost:{port}" for each, port in controllers.items()),
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "CLIENTS",
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka-node",
            "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1]s/-node//,DEFAULT",
            "listener.name.clients.gssapi.sasl.jaas.config": entry,
            "listener.name.controller.gssapi.sasl.jaas.config": entry,
            "sasl.mechanism.inter.broker.protocol": "GSSAPI",
            "sasl.mechanism.controller.protocol": "GSSAPI",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": USERS,
            "min.insync.replicas": "2",
            "default.replication.factor": "3",
            "offsets.topic.replication.factor": "3",
        }
        self.nodes = {}
        for each, port in self.brokers.items():
            own = {
                "node.id": str(each),
                "listeners": f"CLIENTS://localhost:{port},CONTROLLER://localhost:{controllers[each]}",
                "advertised.listeners": f"CLIENTS://localhost:{port}",
            }
            self.nodes[each] = Node("tidelog", home / str(each), java, common | own, ports=[port, controllers[each]])

    def start(self) -> None:
        """All at once: the first one needs another for a quorum."""
        for node in self.nodes.values():
            node.launch()
        until(lambda: all(answers(port) for port in self.brokers.values()), "three nodes that answer")

    def logs(self) -> str:
        """What the nodes have said, in every life."""
        return "".join(file.read_text() for node in self.nodes.values() for file in node.home.glob("*.log"))

    async def in_sync(self, topic: str) -> int:
        async with AdminClient(self.bootstrap, self.settings) as admin:
            (found,) = await admin.topics.describe([topic])
            return len(found.partitions[0].in_sync)


def until(what: Callable[[], bool], name: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not what():
        if time.monotonic() > deadline:
            raise NodeFailed(f"no {name} within {LIMIT_S} s")
        time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster(kdc: Kdc, java: JavaSide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(kdc, java, tmp_path_factory.mktemp("nodes"))
    with ExitStack() as kills:
        for node in made.nodes.values():
            kills.callback(node.kill)
        made.start()
        yield made


def test_nodes_log_in_to_each_other_with_tickets(cluster: Cluster, java: JavaSide) -> None:
    """Javas producer loses nothing while sessions are renewed and a node is killed and comes back."""

    async def create() -> None:
        async with AdminClient(cluster.bootstrap, cluster.settings) as admin:
            await admin.topics.create("t", partitions=1, replication_factor=3)

    asyncio.run(asyncio.wait_for(create(), LIMIT_S))
    settings = {**cluster.settings, "acks": "all", "max.block.ms": "20000"}
    count, begun, killed, back = 0, time.monotonic(), False, False
    while time.monotonic() < begun + LOAD_S or not back:
        record = {"partition": 0, "key": None, "value": as_text(str(count).encode()), "timestamp": 1, "headers": []}
        answer = java.ask("produce", bootstrap=cluster.bootstrap, topic="t", config=settings, records=[record])
        assert answer["offsets"] == [count]
        count += 1
        age = time.monotonic() - begun
        if age > LOAD_S / 4 and not killed:
            cluster.nodes[3].kill()
            killed = True
        if age > LOAD_S / 2 and not back:
            cluster.nodes[3].start()
            back = True
    until(lambda: asyncio.run(cluster.in_sync("t")) == 3, "three replicas in sync")
    asked = {"topic": "t", "partitions": [0], "from": "beginning", "count": count, "timeout_ms": 1000 * LIMIT_S}
    read = java.ask("consume", bootstrap=cluster.bootstrap, config=cluster.settings, **asked)
    assert len(read["records"]) == count
    logs = cluster.logs()
    for complaint in ("cannot log in", "did not authenticate again", "the session is over", "refuses this node", "Traceback"):
        assert complaint not in logs, complaint


def test_a_node_says_what_its_keytab_lacks_and_that_its_principal_is_unknown(cluster: Cluster, kdc: Kdc) -> None:
    """The last test of these nodes: they lose their principal."""
    node = cluster.nodes[3]
    node.kill()
    right, keytab = node.properties, kdc.home / "kafka-node_localhost.keytab"
    wrong = {"listener.name.controller.gssapi.sasl.jaas.config": by_keytab("other/localhost", keytab)}
    node.properties = {name: text for name, text in right.items() if name != "sasl.kerberos.service.name"} | wrong
    with pytest.raises(NodeFailed, match=rf"{keytab} cannot be used for other/localhost@{REALM}: No key table entry"):
        node.start()
    kdc.remove("kafka-node/localhost")
    node.properties = right
    node.launch()
    said = f"no Kerberos ticket for kafka-node@localhost: Client 'kafka-node/localhost@{REALM}' not found in Kerberos database"
    until(lambda: said in node.log_file.read_text(), "reason in its log")
