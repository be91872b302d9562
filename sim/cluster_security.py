"""A simulated cluster whose listeners ask for a login and whose nodes have an authorizer (``ClusterRun(seed, secure=True)``).

Nodes and the administrator log in by PLAIN, clients by SCRAM-SHA-256. While faults come and go, one user's ACLs are deleted and
created again, denied and no longer denied, and its credential is removed and set again; ``guarded_clients`` check what that
user may do. The random numbers are a generator's of its own, so a seed means the same faults with and without it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sim.cluster_checks import Violation
from sim.controller_acls import Client as Asker
from sim.guarded_clients import PARTITIONS, Guarded, GuardedReader, GuardedWriter, SessionReader, Visitor
from sim.guarded_state import TOPICS, USER, GuardedState
from sim.security_ledger import may
from tidelog.client.settings import Sasl
from tidelog.config.authorizer import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.model.acl import AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.scram import MIN_ITERATIONS, ScramMechanism, salted_password
from tidelog.server.cluster.node_login import NodeLogin
from tidelog.testing.simulation.client import PASSING, Client, Later

if TYPE_CHECKING:
    from sim.cluster_world import ClusterRun

NODE = 'username="node" password="node-secret" user_node="node-secret"'
SETTINGS: Mapping[str, str] = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "listener.name.plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": f'{PLAIN_MODULE} required {NODE} user_admin="admin-secret";',
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {NODE};",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    AUTHORIZER: STANDARD_AUTHORIZER,
    SUPER_USERS: "User:node;User:admin",
}
ADMIN_LOGIN = NodeLogin(Sasl("PLAIN", "admin", "admin-secret"))
APP = "app"
"""The user of all other clients, whose rights stay."""
PASSWORDS = {APP: "app-secret", USER: "rex-secret"}
LOGINS = {name: NodeLogin(Sasl("SCRAM-SHA-256", name, password)) for name, password in PASSWORDS.items()}
EVERYTHING = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)


class ClusterSecurity:
    """See the module."""

    def __init__(self, run: ClusterRun, seed: int) -> None:
        self.run = run
        self.state = GuardedState()
        self._rng = random.Random(f"secure {seed}")
        self.admin = self.process(ADMIN_LOGIN)
        self._granted, self._denied, self._known = True, False, True

    def process(self, login: NodeLogin) -> Client:
        """One more machine, logged in."""
        cluster = self.run.cluster
        return Client(cluster.process(), self._rng.getrandbits(64), cluster.bootstrap, login)

    # The beginning

    async def prepare(self) -> None:
        """Users and their ACLs."""
        for user in PASSWORDS:
            await self._until(self._credential(user))
        await self._until(CreateAclsRequest(creations=[_acl(f"User:{APP}", "*", kind=kind) for kind in EVERYTHING]))
        await self._until(self._grant())

    def ready(self) -> bool:
        """Whether every node has read the users and the ACLs."""
        return all(len(image.acls) == len(EVERYTHING) + 1 and len(image.scram) == 2 for image in self._images())

    def _images(self) -> list[Any]:
        return [machine.node.replica.image for machine in self.run.cluster.machines if machine.node is not None]

    # While it runs

    def tasks(self, stop: Callable[[], bool]) -> list[asyncio.Task[None]]:
        """The guarded clients, a client that wakes their long polls, and the administrator."""
        history, tasks = self.run.history, []
        kinds: tuple[tuple[str, type[Guarded], float], ...] = (
            (APP, GuardedWriter, 0.4),
            (USER, GuardedWriter, 0.3),
            (USER, GuardedReader, 0.2),
            (USER, SessionReader, 0.2),
            (USER, Visitor, 0.7),
        )
        for user, kind, pace_s in kinds:
            guide = self.process(LOGINS[APP])
            client = kind(guide, LOGINS[user], history, self.state, f"{user}'s {kind.__name__}")
            tasks.append(guide.loop.create_task(client.run(stop, pace_s)))
        tasks.append(self.admin.loop.create_task(self._change(stop)))
        return tasks

    async def _change(self, stop: Callable[[], bool]) -> None:
        while not stop():
            await self.admin.pause(2.0)
            kind = self._rng.choice(("grant", "deny", "know"))
            if kind == "grant":
                self._granted = not self._granted
                await self._until(self._grant() if self._granted else _without(PermissionType.ALLOW))
            elif kind == "deny":
                self._denied = not self._denied
                await self._until(self._deny() if self._denied else _without(PermissionType.DENY))
            else:
                self._known = not self._known
                await self._until(self._credential(USER) if self._known else _forgotten())

    def _grant(self) -> CreateAclsRequest:
        return CreateAclsRequest(creations=[_acl(f"User:{USER}", "guarded-", prefixed=True)])

    def _deny(self) -> CreateAclsRequest:
        operation = self._rng.choice((AclOperation.READ, AclOperation.WRITE, AclOperation.ALL))
        acl = _acl(f"User:{USER}", "guarded-", prefixed=True, operation=operation, permission=PermissionType.DENY)
        return CreateAclsRequest(creations=[acl])

    def _credential(self, user: str) -> AlterUserScramCredentialsRequest:
        mechanism, salt = ScramMechanism.SHA_256, self._rng.randbytes(16)
        salted = salted_password(mechanism, PASSWORDS[user], salt, MIN_ITERATIONS)
        made = ScramCredentialUpsertion(user, mechanism, MIN_ITERATIONS, salt, salted)
        return AlterUserScramCredentialsRequest(upsertions=[made])

    async def _until(self, request: Any) -> None:
        """Asks until it is done. A request that was done before, and whose answer got lost, may be refused."""

        async def attempt() -> None:
            response = await self.admin.ask_any(request)
            results = getattr(response, "results", None) or getattr(response, "filter_results", ())
            for code in (getattr(response, "error_code", 0), *(each.error_code for each in results)):
                error = ErrorCode(code)
                if error in PASSING:
                    raise Later(error.name)
                assert error in (ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND), f"{type(request).__name__}: {error.name}"

        await self.admin.until(attempt, lambda: False, lambda: None)
        self.run.history.operations += 1

    # The end

    def caught_up(self) -> bool:
        """Whether all nodes have the same ACLs and credentials."""
        images = self._images()
        return all(each.acls == images[0].acls and each.scram == images[0].scram for each in images)

    def compare(self) -> None:
        """Every node decides as its ACLs say, and so as every other one. Violation."""
        for machine in self.run.cluster.machines:
            replica: Any = machine.node.replica  # type: ignore[union-attr]
            acls = list(replica.image.acls.values())
            for user in (USER, APP, "stranger"):
                asker = Asker(KafkaPrincipal("User", user))
                for operation in OPERATIONS:
                    for topic in (*TOPICS, "plain", "guarded"):
                        said = replica.access.allows(asker, operation, ResourceType.TOPIC, topic, True)
                        right = may(acls, f"User:{user}", asker.peer_host, operation, ResourceType.TOPIC, topic)
                        if said != right:
                            raise Violation(f"node {machine.node_id} says {said} to {operation.name} of {user} on {topic}")


def topics() -> dict[str, int]:
    """The guarded topics, with their partitions."""
    return dict.fromkeys(TOPICS, PARTITIONS)


def _acl(
    principal: str,
    name: str,
    *,
    kind: ResourceType = ResourceType.TOPIC,
    prefixed: bool = False,
    operation: AclOperation = AclOperation.ALL,
    permission: PermissionType = PermissionType.ALLOW,
) -> AclCreation:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return AclCreation(kind, name, pattern, principal, "*", operation, permission)


def _without(permission: PermissionType) -> DeleteAclsRequest:
    """The guarded user's ACLs with this permission are deleted."""
    pattern, principal = PatternType.PREFIXED, f"User:{USER}"
    wanted = DeleteAclsFilter(ResourceType.TOPIC, "guarded-", pattern, principal, None, AclOperation.ANY, permission)
    return DeleteAclsRequest(filters=[wanted])


def _forgotten() -> AlterUserScramCredentialsRequest:
    """The guarded user's credential is removed."""
    gone = ScramCredentialDeletion(name=USER, mechanism=ScramMechanism.SHA_256)
    return AlterUserScramCredentialsRequest(deletions=[gone])
