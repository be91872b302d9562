"""From plain text to a secured cluster by the steps of the guide, node after node, while clients work through all of it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AclBinding, AdminClient

from tests.interop.java import JavaSide
from tests.security_changes.account import Account
from tests.security_changes.clients import AiokafkaReader, KafkaPythonWriter, Reader, Transactions, Writer
from tests.security_changes.cluster import ADMIN, LOCKED, Administrator, SecurableCluster, everything, would_be_denied
from tests.security_changes.crowd import Crowd, JavaClients
from tests.security_changes.steps import CONTROLLER, PLAIN

TOPIC, USER = "orders", "app"
CLIENTS = {
    "writer": Writer,
    "reader": Reader,
    "transactions": Transactions,
    "kafka-python": KafkaPythonWriter,
    "aiokafka": AiokafkaReader,
}


class Locking:
    """One run on a cluster in plain text. ``java``: None without Kafka's own clients."""

    def __init__(self, cluster: SecurableCluster, java: JavaSide | None, say: Callable[[str], None]) -> None:
        self.cluster, self.say = cluster, say
        self.account = Account()
        Administrator(cluster.plain()).create(TOPIC)
        self.java = None if java is None else JavaClients(java, self.account, cluster.plain(), TOPIC)
        self.crowd = Crowd(self.account, self.java)

    def run(self) -> list[str]:
        """All that is wrong."""
        cluster, account = self.cluster, self.account
        with self.crowd as crowd:
            for name, kind in CLIENTS.items():
                crowd.add(kind(name, account, cluster.plain(), TOPIC))
            self.go_on()
            cluster.roll(1, cluster.plain, self.check)
            if not cluster.static:
                cluster.until(lambda: cluster.voters_have("CONTROLLER", "QUORUM"), "the voters know both listeners")
            self.say("every node has the listeners with TLS")
            administrator = Administrator(cluster.plain())
            for user in (ADMIN, USER):
                administrator.password(user)
            cluster.roll(2, cluster.plain, self.check)
            self.say("nodes talk by TLS, and an authorizer tries its ACLs")
            self.move_clients()
            self.give_what_is_missing()
            cluster.roll(LOCKED, cluster.administrator, self.check)
            self.go_on()
            self.say("ACLs decide, and plain text is closed")
            self.is_locked()
            groups = crowd.finish()
        found = everything(cluster.administrator(), TOPIC)
        wrong = account.verdict(found, groups) + ([] if self.java is None else self.java.finish(found))
        refused = [each for each in account.notices if "AUTH" in each[1] or "SSL" in each[1]]
        return wrong + ([f"clients were refused: {refused[:5]}"] if refused else [])

    def go_on(self) -> None:
        """Every client does."""
        if self.java is not None:
            self.java.write()
        self.account.go_on(self.crowd.names)

    def check(self) -> None:
        """After each node: no client has failed."""
        assert not self.account.problems, self.account.problems[:5]

    def move_clients(self) -> None:
        """One after another."""
        access = self.cluster.user(USER)
        for name in self.crowd.names:
            self.crowd[name].move(access)
            self.account.go_on([name])
        if self.java is not None:
            self.java.move(access)
        self.say("clients log in by TLS")

    def give_what_is_missing(self) -> None:
        """ACLs by what the dry run says would be denied, until nothing would be. Only the clients' user may be among it."""
        begun = self._logs()
        given: set[AclBinding] = set()
        while True:
            self.go_on()
            missing = would_be_denied(log[begun[node] :] for node, log in self.cluster_logs().items()).keys() - given
            if given and not missing:
                break
            others = [each for each in missing if each.principal != f"User:{USER}"]
            assert not others, others
            Administrator(self.cluster.administrator()).allow(*missing)
            given |= missing
        self.say(f"{len(given)} ACLs are given, as the dry run named them")

    def cluster_logs(self) -> dict[int, str]:
        return {node: self.cluster.log(node) for node in self.cluster.ids}

    def _logs(self) -> dict[int, int]:
        """The length of each node's log."""
        return {node: len(log) for node, log in self.cluster_logs().items()}

    def is_locked(self) -> None:
        """Ports in plain text are closed, and a user without ACLs sees nothing."""
        cluster = self.cluster
        for node_id, port in [(each, PLAIN) for each in cluster.brokers] + [(each, CONTROLLER) for each in cluster.controllers]:
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", cluster.port(node_id, port))), f"node {node_id} serves port {port}"
        Administrator(cluster.administrator()).password("stranger")
        stranger = AdminClient(cluster.user("stranger").librdkafka)
        cluster.until(lambda: _topics(stranger) == set(), "a user without ACLs sees no topic")


def _topics(client: AdminClient) -> set[str] | None:
    try:
        return set(client.list_topics(timeout=10).topics)
    except KafkaException:
        return None


def lock(
    home: Path, java: JavaSide | None, say: Callable[[str], None], *, combined: bool = True, static: bool = False
) -> list[str]:
    """The whole way on a fresh cluster in ``home``; all that is wrong."""
    properties = {"auto.create.topics.enable": "false"}
    with SecurableCluster(home, combined=combined, static=static, properties=properties) as cluster:
        wrong = Locking(cluster, java, say).run()
        wrong += [f"a node complained: {line}" for line in cluster.complaints()[:10]]
    return wrong
