"""The access control of a node with an authorizer: follows the ACLs of the metadata, answers handlers, counts and reports.

It takes each committed change in the same turn of the loop in which requests begin to see the new image, so questions that a
handler asks in a row are decided by one version of the ACLs. Until the ACLs are known, only super users may do anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tidelog.broker.ports import Client
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.security.authorizer import Authorizer, Decision, address_text

if TYPE_CHECKING:
    from tidelog.metadata.delta import ClusterDelta
    from tidelog.metadata.image import ClusterImage


class DecisionLog(Protocol):
    """Writes decisions to the authorizer's log."""

    def denied(self, client: Client, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        """A question was answered "no"."""
        ...

    def allowed(self, client: Client, operation: int, resource_type: int, name: str, decision: Decision, quiet: bool) -> None:
        """A question was answered "yes"; called only while ``tells_allowed`` says so."""
        ...

    @property
    def tells_allowed(self) -> Callable[[], bool]:
        """Says whether the log takes allowed operations at present; called for each."""
        ...


class AclAccessControl:
    """Implements ``broker.ports.AccessControl``. Not shared between threads."""

    __slots__ = ("_authorizer", "_decided", "_is_loaded", "_loaded", "_log", "_tells_allowed", "allowed", "denied")

    def __init__(self, authorizer: Authorizer, log: DecisionLog, is_loaded: Callable[[], bool]) -> None:
        """``is_loaded``: whether the image that was followed last holds all committed ACLs; asked until it does."""
        self._authorizer = authorizer
        self._log = log
        self._is_loaded = is_loaded
        self._loaded = False
        self._decided = authorizer.decided
        self._tells_allowed = log.tells_allowed
        self.allowed = 0
        """Questions answered "yes" since the start, quiet ones included."""
        self.denied = 0
        """Questions answered "no"."""

    @property
    def version(self) -> int:
        """Rises with each change of the ACLs."""
        return self._authorizer.version

    @property
    def acls(self) -> int:
        """How many ACLs there are."""
        return len(self._authorizer)

    def follow(self, old: ClusterImage, new: ClusterImage, delta: ClusterDelta | None) -> None:
        """Takes the ACLs of a committed image; without ``delta`` anything may have changed."""
        if delta is None:
            self._authorizer.replace_all(new.acls)
        elif touched := delta.security.acls.touched:
            added = {acl_id: new.acls[acl_id] for acl_id in touched if acl_id in new.acls}
            self._authorizer.change(added, [acl_id for acl_id in touched if acl_id in old.acls])

    def allows(self, client: Client, operation: int, resource_type: int, name: str, quiet: bool) -> bool:
        """Whether the client may do the operation on the resource. KafkaError UNKNOWN_SERVER_ERROR until the ACLs are known."""
        if not self._loaded:
            self._check_loaded(client)
        decision = self._decided(client.principal, client.peer_host, operation, resource_type, name)
        if decision.allowed:
            self.allowed += 1
            if self._tells_allowed():
                self._log.allowed(client, operation, resource_type, name, decision, quiet)
            return True
        self.denied += 1
        self._log.denied(client, operation, resource_type, name, decision, quiet)
        return False

    def allows_any(self, client: Client, operation: int, resource_type: int) -> bool:
        """Whether the client may do the operation on some resource of the type. Errors: see ``allows``."""
        if not self._loaded:
            self._check_loaded(client)
        found = self._authorizer.allows_any(client.principal, address_text(client.peer_host), operation, resource_type)
        if found:
            self.allowed += 1
        else:
            self.denied += 1
        return found

    def _check_loaded(self, client: Client) -> None:
        if self._is_loaded():
            self._loaded = True
        elif not self._authorizer.is_super_user(client.principal):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "This node has not read the cluster's ACLs yet.")
