"""ACLs in the simulated controller: they are created and deleted, and each broker decides by those that it has read.

Brokers read several groups of records at once, or start with a snapshot. What a broker decides has to be what the ACLs of its
image say, and all brokers agree once they have caught up. Records must be such that a node which takes nothing twice can
replay them. The random numbers are not those of the world, so that ACLs leave the rest of a run as it is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.controller_checkers import require
from tidelog.broker.access_control import AclAccessControl
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.security.authorizer import Authorizer, Decision
from tidelog.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from sim.controller_brokers import SimBroker
    from sim.controller_world import World

NAMES = ("a", "ab", "abc", "b", "*")
USERS = ("User:ann", "User:bob", "User:*")
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL)
ROOT = KafkaPrincipal("User", "root")


class Silent:
    """No log of decisions."""

    def tells_allowed(self) -> bool:
        return False

    def denied(self, client: Any, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        """Not logged."""

    def allowed(self, client: Any, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        """Not logged."""


@dataclass(frozen=True)
class Client:
    """Who asks."""

    principal: KafkaPrincipal
    peer_host: str = "10.0.0.1"
    api_key: int = 1
    listener: str = "CLIENTS"
    client_id: str | None = None
    correlation_id: int = 0


@dataclass
class Node:
    """One process of a broker."""

    access: AclAccessControl
    image: ClusterImage


class Acls:
    """Changes of ACLs, and the brokers' decisions."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(f"acls {seed}")
        self._nodes: dict[int, Node] = {}

    # changes

    def change(self) -> None:
        """Sometimes an administrator creates or deletes some."""
        rng, world = self._rng, self._world
        if rng.random() > 0.25:
            return
        creates = rng.random() < 0.6
        request: Any = (
            CreateAclsRequest(creations=[self._creation() for _ in range(rng.randint(1, 3))])
            if creates
            else DeleteAclsRequest(filters=[self._filter() for _ in range(rng.randint(1, 2))])
        )
        before, groups = world.image, len(world.written)
        honest, world.controller._rng = world.controller._rng, rng
        try:
            world.ask(QuorumController.create_acls if creates else QuorumController.delete_acls, request)
        finally:
            world.controller._rng = honest
        for records, _ in world.written[groups:]:
            check_acl_records(before, records)
            world.counts["ACLs created" if creates else "ACLs deleted"] += len(records)

    def _creation(self) -> AclCreation:
        rng = self._rng
        return AclCreation(
            ResourceType.TOPIC,
            rng.choice(NAMES),
            rng.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            rng.choice(USERS),
            rng.choice(("*", "*", "10.0.0.1", "10.0.0.2")),
            rng.choice(OPERATIONS),
            rng.choice((PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)),
        )

    def _filter(self) -> DeleteAclsFilter:
        rng = self._rng
        return DeleteAclsFilter(
            ResourceType.TOPIC,
            rng.choice(NAMES),
            rng.choice((PatternType.LITERAL, PatternType.ANY, PatternType.MATCH)),
            rng.choice((None, *USERS)),
            None,
            AclOperation.ANY,
            PermissionType.ANY,
        )

    # brokers

    def restarted(self, broker: SimBroker) -> None:
        """Its next image is a snapshot."""
        self._nodes.pop(broker.id, None)

    def followed(self, broker: SimBroker, image: ClusterImage) -> None:
        """The broker has read up to this image; what it decides from now on is what the image says."""
        node = self._nodes.get(broker.id)
        if node is None:
            node = self._nodes[broker.id] = Node(AclAccessControl(Authorizer([ROOT]), Silent(), lambda: True), image)
            node.access.follow(image, image, None)
        elif self._rng.random() < 0.1:
            self._world.counts["ACLs of a snapshot"] += 1
            node.access.follow(node.image, image, None)
        else:
            delta = ClusterDelta(node.image)
            for records, last_offset in self._world.written:
                if node.image.offset < last_offset <= image.offset:
                    for record in records:
                        delta.replay(record)
            node.access.follow(node.image, image, delta)
        node.image = image
        for _ in range(4):
            self._check(broker.id, node, self._rng.choice(USERS), self._rng.choice(OPERATIONS), self._rng.choice(NAMES))

    def check_agreement(self) -> None:
        """All have caught up: each decides as the controller's image says, so all decide alike."""
        for broker in self._world.brokers.values():
            self.followed(broker, self._world.image)
            for user in USERS:
                for operation in OPERATIONS:
                    for name in NAMES:
                        self._check(broker.id, self._nodes[broker.id], user, operation, name)

    def _check(self, broker_id: int, node: Node, user: str, operation: AclOperation, name: str) -> None:
        principal = KafkaPrincipal("User", user.removeprefix("User:"))
        client = Client(principal, self._rng.choice(("10.0.0.1", "::ffff:10.0.0.2")))
        fresh = Authorizer([ROOT])
        fresh.replace_all(node.image.acls)
        said = node.access.allows(client, operation, ResourceType.TOPIC, name, False)
        right = fresh.allows(principal, client.peer_host, operation, ResourceType.TOPIC, name)
        require(said == right, f"broker {broker_id} says {said} to {operation.name} of {user} on {name}, its ACLs say {right}")
        require(node.access.acls == len(node.image.acls), f"broker {broker_id} counts {node.access.acls} ACLs")


def check_acl_records(before: ClusterImage, records: Any) -> None:
    """No known id, no equal content under a second id, no removal of an unknown id: Apache Kafka's nodes stop at each."""
    known = dict(before.acls)
    for record in records:
        if record.NAME == "RemoveAccessControlEntryRecord":
            require(record.id in known, "the removal of an ACL that is not there")
            del known[record.id]
            continue
        entry = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        require(record.id not in known, "an ACL with a known id")
        require(entry not in known.values(), f"an ACL a second time: {entry}")
        known[record.id] = entry
