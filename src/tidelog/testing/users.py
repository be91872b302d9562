"""The users and ACLs of a test's broker: the settings that they and its certificates need, and the requests that make them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tidelog.config.authorizer import AUTHORIZER, STANDARD_AUTHORIZER
from tidelog.config.jaas import PLAIN_MODULE, SCRAM_MODULE
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.security.scram import ScramMechanism, salted_password
from tidelog.testing.node_thread import NodeThread
from tidelog.testing.permissions import Rule

if TYPE_CHECKING:
    from tidelog.testing.certificates import Certificates

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
ITERATIONS = 4096
SALT_BYTES = 16
NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.$")
"""Of a user; PLAIN users are option names in Kafka's files."""


class Users:
    """Users and passwords, and the first ACLs; ``acls`` None: every client may do everything."""

    def __init__(self, users: Mapping[str, str], acls: Sequence[Rule] | None, certificates: Certificates | None = None) -> None:
        """ValueError for a name or a password that no client could send, or for ACLs that ``allow`` and ``deny`` did not make;
        TypeError for one that is no text."""
        for name, password in users.items():
            if not isinstance(name, str) or not isinstance(password, str):
                # The password itself stays out of a test's output.
                raise TypeError(
                    f"user {name!r}: the name is a {_kind(name)} and the password a {_kind(password)}; both must be text"
                )
            if not name or not NAME_CHARACTERS.issuperset(name) or not password:
                raise ValueError(f"user {name!r}: a name has letters, digits and - _ . $, and a password is not empty")
        self._users = dict(users)
        self._acls = None if acls is None else _checked_rules(acls)
        protocol = ("SASL_" if users else "") + ("PLAINTEXT" if certificates is None else "SSL")
        self._protocol = protocol
        self._certificates = {} if certificates is None else certificates.settings(protocol)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the users."""
        return tuple(self._users)

    def settings(self, port: int) -> dict[str, str]:
        """The settings of a node with these users and certificates."""
        settings = {} if self._acls is None else {AUTHORIZER: STANDARD_AUTHORIZER}
        if self._protocol == "PLAINTEXT":
            return settings
        settings |= {
            "listeners": f"{self._protocol}://127.0.0.1:{port}",
            "inter.broker.listener.name": self._protocol,
            **self._certificates,
        }
        if self._users:
            accepted = " ".join(f"user_{name}={_quoted(password)}" for name, password in self._users.items())
            settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            settings[f"listener.name.{self._protocol.lower()}.plain.sasl.jaas.config"] = f"{PLAIN_MODULE} required {accepted};"
        return settings

    def create(self, thread: NodeThread) -> None:
        """Makes the users and the first ACLs on a node that runs, instead of those that there are."""
        for mechanism in ScramMechanism if self._users else ():
            # Not in one request: it may name each user once.
            answer = thread.ask(QuorumController.alter_user_scram_credentials, self._credentials(mechanism))
            for result in answer.results:
                assert not result.error_code, result.error_message
        if self._acls is not None:
            self.replace_acls(thread, self._acls)

    def replace_acls(self, thread: NodeThread, acls: Sequence[Rule]) -> None:
        """These ACLs instead of those that there are. ValueError with the reason when one is refused."""
        if self._acls is None:
            raise ValueError("the broker has no authorizer: give it ACLs from the start, Broker(acls=[])")
        acls = _checked_rules(acls)
        everything = DeleteAclsFilter(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=PermissionType.ANY,
        )
        thread.ask(QuorumController.delete_acls, DeleteAclsRequest(filters=[everything]))
        creations = [
            AclCreation(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                resource_pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for rule in acls
            for each in rule
        ]
        if creations:
            for result in thread.ask(QuorumController.create_acls, CreateAclsRequest(creations=creations)).results:
                if result.error_code:
                    raise ValueError(f"an ACL was refused: {result.error_message}")

    def password(self, user: str, mechanism: str) -> str:
        """The user's password. ValueError for a user or a mechanism that does not exist."""
        if user not in self._users:
            raise ValueError(f"there is no user {user!r}; there are {', '.join(self._users) or 'none'}")
        if mechanism not in MECHANISMS:
            raise ValueError(f"{mechanism} is not offered; {', '.join(MECHANISMS)} are")
        return self._users[user]

    def _credentials(self, mechanism: ScramMechanism) -> AlterUserScramCredentialsRequest:
        made = []
        for name, password in self._users.items():
            salt = os.urandom(SALT_BYTES)
            salted = salted_password(mechanism, password, salt, ITERATIONS)
            made.append(ScramCredentialUpsertion(name, mechanism, ITERATIONS, salt, salted))
        return AlterUserScramCredentialsRequest(upsertions=made)


def _checked_rules(acls: Iterable[Rule]) -> list[Rule]:
    found = list(acls) if isinstance(acls, Iterable) else [acls]
    for rule in found:
        if not isinstance(rule, tuple) or not all(isinstance(each, AccessControlEntry) for each in rule):
            raise ValueError(f"ACLs are a list of what allow() and deny() make, such as acls=[allow(...)], but it holds {rule!r}")
    return found


def _kind(value: object) -> str:
    return type(value).__name__


def jaas_entry(mechanism: str, user: str, password: str) -> str:
    """``sasl.jaas.config`` of a Java client."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    return f"{module} required username={_quoted(user)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    """A value of a JAAS entry."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
