"""A cluster of the matrix whose listeners speak SASL_SSL, with an authorizer on every node (``python -m tests.matrix --secure``).

Nodes log in by PLAIN and are super users, the clients of the load by SCRAM as a user with ACLs. Between faults the rights of
another user change: its ACL comes and goes, and so does its credential. Every broker has to decide alike once it has read that.
"""

from __future__ import annotations

import itertools
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.certificates import Authority
from tests.matrix.cluster import MatrixCluster
from tests.transactions.worker import INPUT
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import authentication
from tidelog.client.failures import NotAuthenticated
from tidelog.client.settings import Sasl
from tidelog.config.authorizer import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.metadata.snapshot import scram_record
from tidelog.model.acl import AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.security.scram import MIN_ITERATIONS, ScramMechanism, credential_of, salted_password

NODE = 'username="node" password="node-secret" user_node="node-secret"'
ADMIN = Sasl("PLAIN", "admin", "admin-secret")
APP = Sasl("SCRAM-SHA-512", "app", "app-secret")
GUARDED = Sasl("SCRAM-SHA-512", "rex", "rex-secret")
SALT = b"0123456789abcdef"
NONCES = itertools.count()
READS, REFUSED, UNKNOWN = "may read", "may not read", "cannot log in"


class SecuredCluster(MatrixCluster):
    """See the module."""

    def __init__(self, directory: Path, count: int = 3, **settings: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        authority = Authority()
        self._key_store, self._trust_store = directory / "node.pem", directory / "authority.pem"
        self._key_store.write_text(authority.issue("node", "127.0.0.1").both)
        self._trust_store.write_text(authority.pem)
        self._context = ssl.create_default_context(cafile=str(self._trust_store))
        self._asker = ADMIN
        self._turns = itertools.count(1)
        super().__init__(directory, count, **settings)
        self.client_settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._trust_store),
            "sasl.mechanisms": APP.mechanism,
            "sasl.username": APP.username,
            "sasl.password": APP.password,
        }
        self.client_file.write_text(json.dumps(self.client_settings))
        self._tools_file.write_text("".join(f"{name}={value}\n" for name, value in self._tools_settings().items()))

    def first_users(self) -> list[UserScramCredentialRecord]:
        mechanism = ScramMechanism.SHA_512
        salted = salted_password(mechanism, APP.password, SALT, MIN_ITERATIONS)
        return [scram_record(APP.username, mechanism, credential_of(mechanism, salted, SALT, MIN_ITERATIONS))]

    def settings(self, node_id: int) -> dict[str, str]:
        return {
            **super().settings(node_id),
            "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
            "listener.name.plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": f'{PLAIN_MODULE} required {NODE} user_admin="admin-secret";',
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN_MODULE} required {NODE} user_admin="admin-secret";',
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trust_store),
            AUTHORIZER: STANDARD_AUTHORIZER,
            SUPER_USERS: "User:node;User:admin",
        }

    def start(self, *node_ids: int, **properties: str) -> None:
        first = not self._started
        super().start(*node_ids, **properties)
        if first:
            kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
            acls = CreateAclsRequest(creations=[_acl(kind, "*", APP.username, AclOperation.ALL) for kind in kinds])
            self.until(lambda: self._done(acls), "the ACLs of the clients")

    # What is asked of it

    @contextmanager
    def connection(self, port: int) -> Iterator[socket.socket]:
        with super().connection(port) as plain, self._context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
            yield tls

    def log_in(self, client: ClientConnection, exchange: Callable[[bytes], Any]) -> None:
        talk = authentication(client, self._asker, "127.0.0.1", f"nonce{next(NONCES)}")
        try:
            frame = next(talk)
            while True:
                frame = talk.send(exchange(frame))
        except StopIteration:
            pass

    @contextmanager
    def _as(self, user: Sasl) -> Iterator[None]:
        """Requests are this user's meanwhile."""
        former, self._asker = self._asker, user
        try:
            yield
        finally:
            self._asker = former

    # Tools

    @property
    def _tools_file(self) -> Path:
        return self.directory / "admin.properties"

    def _tools_settings(self) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trust_store),
            "sasl.mechanism": ADMIN.mechanism,
            "sasl.username": ADMIN.username,
            "sasl.password": ADMIN.password,
        }

    def tool(self, *args: str) -> None:
        """With the administrator's settings, after those of a node where the tool reads them."""
        file = self._tools_file
        command = list(args)
        if "--command-config" in command:
            at = command.index("--command-config")
            merged = self.directory / "node-and-admin.properties"
            merged.write_text(Path(command[at + 1]).read_text() + file.read_text())
            del command[at : at + 2]
            file = merged
        super().tool(command[0], "--command-config", str(file), *command[1:])

    # Rights that change

    def in_sync(self, bound_s: float = 90.0) -> None:
        super().in_sync(bound_s)
        self.decide_alike(bound_s)

    def decide_alike(self, bound_s: float) -> None:
        """Changes the guarded user's rights, and waits until every broker that runs decides by them."""
        turn = next(self._turns)
        allowed, known = turn % 2 == 1, turn % 3 != 0
        for change in (_right(allowed), _credential(known)):
            self.until(lambda change=change: self._done(change), "a change of rights", bound_s)  # type: ignore[misc]
        wanted = (READS if allowed else REFUSED) if known else UNKNOWN
        self.until(
            lambda: {self._answer(each) for each in self.answering(self.brokers)} == {wanted},
            f"every broker finds that {GUARDED.username} {wanted}",
            bound_s,
        )

    def _done(self, request: Any) -> bool:
        (node_id, *_) = self.answering(self.brokers)
        try:
            told = self.ask(node_id, request)
        except OSError:
            return False
        results = getattr(told, "results", None) or getattr(told, "filter_results", ())
        codes = {getattr(told, "error_code", 0), *(each.error_code for each in results)}
        return codes <= {ErrorCode.NONE, ErrorCode.RESOURCE_NOT_FOUND}

    def _answer(self, node_id: int) -> str:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=INPUT)], allow_auto_topic_creation=False)
        try:
            with self._as(GUARDED):
                code = self.ask(node_id, request).topics[0].error_code
        except NotAuthenticated:
            return UNKNOWN
        except OSError as error:
            return str(error)
        return {ErrorCode.NONE: READS, ErrorCode.TOPIC_AUTHORIZATION_FAILED: REFUSED}.get(code, ErrorCode(code).name)


def _acl(kind: ResourceType, name: str, user: str, operation: AclOperation) -> AclCreation:
    return AclCreation(kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, PermissionType.ALLOW)


def _right(allowed: bool) -> CreateAclsRequest | DeleteAclsRequest:
    """To read the input."""
    if allowed:
        return CreateAclsRequest(creations=[_acl(ResourceType.TOPIC, INPUT, GUARDED.username, AclOperation.READ)])
    user = f"User:{GUARDED.username}"
    wanted = DeleteAclsFilter(ResourceType.TOPIC, INPUT, PatternType.LITERAL, user, None, AclOperation.ANY, PermissionType.ANY)
    return DeleteAclsRequest(filters=[wanted])


def _credential(known: bool) -> AlterUserScramCredentialsRequest:
    """The guarded user has one, or has none any more."""
    mechanism = ScramMechanism.SHA_512
    if not known:
        return AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(GUARDED.username, mechanism)])
    salted = salted_password(mechanism, GUARDED.password, SALT, MIN_ITERATIONS)
    made = ScramCredentialUpsertion(GUARDED.username, mechanism, MIN_ITERATIONS, SALT, salted)
    return AlterUserScramCredentialsRequest(upsertions=[made])
