"""A cluster that is locked step by step as the guide says it, or has been from its start; and what its administrator does."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.certificates import Authority
from tests.interop.nodes import free_ports
from tests.matrix.cluster import METADATA
from tests.node.cluster import CLUSTER_ID, Cluster
from tests.security_changes.access import Access
from tests.security_changes.account import LIMIT_S, Place
from tests.security_changes.clients import PARTITIONS
from tests.security_changes.steps import CLIENTS, CONTROLLER, NODES, PLAIN, QUORUM, settings_after
from tidelog.metadata.snapshot import scram_record
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.security.scram import MIN_ITERATIONS, credential_of, salted_password
from tidelog.security.scram import ScramMechanism as OurMechanism
from tidelog.server.disk import DiskFileSystem

LOCKED = 3
"""The last step."""
ADMIN = "admin"
SALT = b"0123456789abcdef"
CALL_S = 30.0
MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
TYPES = {"Topic": ResourceType.TOPIC, "Group": ResourceType.GROUP, "TransactionalId": ResourceType.TRANSACTIONAL_ID}
TYPES["Cluster"] = ResourceType.BROKER
_WOULD_BE = re.compile(
    r"Principal = (\S+) would be Denied operation = (\w+) from host = \S+ on resource = (\w+):LITERAL:(\S+) for"
)


class SecurableCluster(Cluster):
    """``step``: how far it is when it starts. ``more``: settings beside those of the guide, of nodes that are locked. ``static``:
    the voters are in ``controller.quorum.voters``."""

    def __init__(
        self,
        directory: Path,
        step: int = 0,
        *,
        combined: bool = True,
        static: bool = False,
        properties: dict[str, str] | None = None,
        more: dict[str, str] | None = None,
    ) -> None:
        self.step = dict.fromkeys([1, 2, 3, *(() if combined else (101, 102, 103))], step)
        self.more = dict(more or {})
        self._spare: dict[tuple[int, int], int] = {}
        self.first_step = step
        self.static = static
        super().__init__(directory, 3, roles="broker,controller" if combined else "broker", properties=properties)

    # Nodes

    def _format(self, features: dict[str, int] | None) -> None:
        taken = {*self.ports.values(), *self.controller_ports.values()}
        spare = (each for each in free_ports(3 * len(self.ids) + len(taken)) if each not in taken)
        self._spare = {(node_id, port): next(spare) for node_id in self.ids for port in (CLIENTS, NODES, QUORUM)}
        self.directory.mkdir(parents=True, exist_ok=True)
        authority = Authority()
        self.authority.write_text(authority.pem)
        for node_id in self.ids:
            (self.directory / f"node-{node_id}.pem").write_text(authority.issue(f"node-{node_id}", "127.0.0.1").both)
            first = self._voters() if node_id in self.controllers and not self.static else None
            users = [_credential(ADMIN)] if self.first_step else []
            request = FormatRequest([str(self.path(node_id))], node_id, CLUSTER_ID, initial_voters=first, scram=users)
            format_dirs(DiskFileSystem(), request, rng=random.Random(node_id), now_ms=time.time_ns() // 1_000_000)

    def _voters(self) -> VoterSet:
        name, port = ("QUORUM", QUORUM) if self.first_step == LOCKED else ("CONTROLLER", CONTROLLER)
        return VoterSet.of(
            Voter(each, self._directory_id(each), (Endpoint(name, "127.0.0.1", self.port(each, port)),))
            for each in self.controllers
        )

    @property
    def authority(self) -> Path:
        return self.directory / "authority.pem"

    def port(self, node_id: int, documented: int) -> int:
        """The port of a node that has this number in the guide."""
        if documented in (PLAIN, CONTROLLER):
            return (self.ports if documented == PLAIN else self.controller_ports)[node_id]
        return self._spare[node_id, documented]

    def settings(self, node_id: int) -> dict[str, str]:
        before = super().settings(node_id)
        step = self.step[node_id]
        after = settings_after(step, node_id, before["process.roles"], str(self.directory), self.controllers, self.port)
        settings = {**before, **after, **(self.more if step == LOCKED else {})}
        if self.static:
            addresses = settings.pop("controller.quorum.bootstrap.servers").split(",")
            named = zip(self.controllers, addresses, strict=True)
            settings["controller.quorum.voters"] = ",".join(f"{each}@{address}" for each, address in named)
        return settings

    def roll(self, step: int, administrator: Callable[[], Access], going_on: Callable[[], object]) -> None:
        """Restarts node after node with the settings of that step; each is in sync before the next one stops."""
        for node_id in sorted(self.ids, key=lambda each: (each in self.brokers, each)):
            self.stop(node_id)
            self.step[node_id] = step
            self.start(node_id)
            self.in_sync(administrator())
            going_on()

    def voters_have(self, *listeners: str) -> bool:
        """Whether the voter set has exactly these listeners of every controller."""
        with contextlib.suppress(OSError):
            for node in self.brokers:
                told = self.ask(node, DescribeQuorumRequest(topics=METADATA))
                found = {each.node_id: sorted(at.name for at in each.listeners) for each in told.nodes}
                return found == dict.fromkeys(self.controllers, sorted(listeners))
        return False

    # Clients

    def plain(self) -> Access:
        """Without a login."""
        return Access(",".join(f"127.0.0.1:{self.ports[each]}" for each in self.brokers))

    def user(self, name: str, password: str = "", mechanism: str = "SCRAM-SHA-512", only: int | None = None) -> Access:
        """As a user. ``only``: through one broker at first."""
        chosen = self.brokers if only is None else [only]
        bootstrap = ",".join(f"127.0.0.1:{self.port(each, CLIENTS)}" for each in chosen)
        return Access(bootstrap, name, password or f"{name}-secret", mechanism, str(self.authority))

    def administrator(self) -> Access:
        return self.user(ADMIN)

    def in_sync(self, access: Access) -> None:
        """Waits until all replicas of all partitions are, and all brokers are there."""
        self.until(lambda: all_in_sync(access), "all replicas are in sync")


def all_in_sync(access: Access) -> bool:
    """Whether all three replicas of all partitions are, and all three brokers are there."""
    with contextlib.suppress(KafkaException):
        told = AdminClient(access.librdkafka).list_topics(timeout=CALL_S)
        partitions = [part for topic in told.topics.values() for part in topic.partitions.values()]
        return len(told.brokers) == 3 and all(len(each.isrs) == 3 and each.leader >= 0 for each in partitions)
    return False


class Administrator:
    """What it changes; each call returns when the controller has committed it."""

    def __init__(self, access: Access) -> None:
        self.client = AdminClient(access.librdkafka)

    def create(self, *topics: str) -> None:
        new = [NewTopic(topic, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for topic in topics]
        for made in self.client.create_topics(new).values():
            made.result(CALL_S)

    def password(self, user: str, password: str = "", mechanism: str = "SCRAM-SHA-512") -> None:
        """Adds the user, or changes the password."""
        info = ScramCredentialInfo(MECHANISMS[mechanism], MIN_ITERATIONS)
        self._scram(UserScramCredentialUpsertion(user, info, (password or f"{user}-secret").encode()))

    def remove(self, user: str, mechanism: str = "SCRAM-SHA-512") -> None:
        self._scram(UserScramCredentialDeletion(user, MECHANISMS[mechanism]))

    def _scram(self, change: UserScramCredentialAlteration) -> None:
        for done in self.client.alter_user_scram_credentials([change]).values():
            done.result(CALL_S)

    def allow(self, *acls: AclBinding) -> None:
        """Adds ACLs (allowing or denying)."""
        for done in self.client.create_acls(list(acls)).values():
            done.result(CALL_S)

    def take_back(self, *acls: AclBinding) -> None:
        """Removes ACLs."""
        if not acls:
            return
        wanted = [
            AclBindingFilter(a.restype, a.name, a.resource_pattern_type, a.principal, a.host, a.operation, a.permission_type)
            for a in acls
        ]
        for done in self.client.delete_acls(wanted).values():
            done.result(CALL_S)


def acl(
    user: str,
    operation: str,
    kind: ResourceType = ResourceType.TOPIC,
    name: str = "*",
    *,
    prefixed: bool = False,
    deny: bool = False,
) -> AclBinding:
    """One ACL for all hosts."""
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", AclOperation[operation], permission)


def would_be_denied(logs: Iterable[str]) -> dict[AclBinding, str]:
    """The ACLs that dry runs miss, by their log."""
    found = {}
    for log in logs:
        for principal, operation, kind, name in _WOULD_BE.findall(log):
            found[acl(principal.removeprefix("User:"), operation, TYPES[kind], name)] = principal
    return found


def everything(access: Access, *topics: str) -> dict[Place, bytes]:
    """All committed records of these topics."""
    settings = {"group.id": "judge", "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({**access.librdkafka, **settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for topic in topics for partition in range(PARTITIONS)])
    found: dict[Place, bytes] = {}
    ended: set[tuple[str, int]] = set()
    deadline = time.monotonic() + LIMIT_S
    while len(ended) < PARTITIONS * len(topics):
        assert time.monotonic() < deadline, "the topics cannot be read to their ends"
        for each in consumer.consume(500, 0.1):
            if each.error() is None:
                found[each.topic(), each.partition(), each.offset()] = each.value()
            else:
                assert each.error().code() == KafkaError._PARTITION_EOF, each.error()
                ended.add((each.topic(), each.partition()))
    consumer.close()
    return found


def _credential(user: str) -> UserScramCredentialRecord:
    mechanism = OurMechanism.SHA_512
    salted = salted_password(mechanism, f"{user}-secret", SALT, MIN_ITERATIONS)
    return scram_record(user, mechanism, credential_of(mechanism, salted, SALT, MIN_ITERATIONS))
