"""ACLs in the simulated controller: administrators create and delete them, and each broker decides by those that it has read.

What a broker decides has to be what the records up to its image say. The random numbers are not those of the world.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.controller_checkers import require
from sim.security_ledger import Ledger, may
from tidelog.broker.access_control import AclAccessControl
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.acl import AclOperation, PatternType, PermissionType, ResourceType
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.security.authorizer import Authorizer, Decision
from tidelog.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from sim.controller_world import World

NAMES = ("a", "ab", "abc", "b", "*")
USERS = ("User:ann", "User:bob", "User:*")
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL)
HOSTS = {"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.2": "10.0.0.2"}
"""A peer's address, and its form in ACLs."""


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
    """A client that asks."""

    principal: KafkaPrincipal
    peer_host: str = "10.0.0.1"
    api_key: int = 1
    listener: str = "CLIENTS"
    client_id: str | None = None
    correlation_id: int = 0


def new_access() -> AclAccessControl:
    """The access control of a node that has just started."""
    return AclAccessControl(Authorizer([KafkaPrincipal("User", "root")]), Silent(), lambda: True)


class Acls:
    """Changes of ACLs, and questions to brokers."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng

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
        groups = len(world.written)
        honest, world.controller._rng = world.controller._rng, rng
        try:
            world.ask(QuorumController.create_acls if creates else QuorumController.delete_acls, request)
        finally:
            world.controller._rng = honest
        for records, _ in world.written[groups:]:
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

    def look(self, where: str, access: AclAccessControl, ledger: Ledger) -> None:
        """Some questions, of any client."""
        for _ in range(4):
            self._ask(where, access, ledger, self._rng.choice(USERS), self._rng.choice(OPERATIONS), self._rng.choice(NAMES))

    def ask_everything(self, where: str, access: AclAccessControl, ledger: Ledger) -> None:
        """Every question."""
        for user in USERS:
            for operation in OPERATIONS:
                for name in NAMES:
                    self._ask(where, access, ledger, user, operation, name)

    def _ask(self, where: str, access: AclAccessControl, ledger: Ledger, user: str, operation: AclOperation, name: str) -> None:
        peer = self._rng.choice(tuple(HOSTS))
        client = Client(KafkaPrincipal("User", user.removeprefix("User:")), peer)
        said = access.allows(client, operation, ResourceType.TOPIC, name, False)
        right = may(ledger.acls.values(), user, HOSTS[peer], operation, ResourceType.TOPIC, name)
        require(said == right, f"{where} says {said} to {operation.name} of {user} on {name}, the records say {right}")
