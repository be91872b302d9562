"""The access control of a node with an authorizer: follows the ACLs of the metadata, answers handlers, counts and reports.

It takes each committed change in the same turn of the loop in which requests begin to see the new image, so questions that a
handler asks in a row are decided by one version of the ACLs. Until the ACLs are known, only super users may do anything.

In a dry run a refusal is logged, counted and audited, and the answer is "yes" all the same. A quiet question about the cluster
keeps its "no", because the narrower question after it is the one that would be refused; a list leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from tidelog.broker.ports import Client
from tidelog.model.acl import CLUSTER_NAME, WILDCARD, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.security.authorizer import Authorizer, Decision, Rule, address_text

if TYPE_CHECKING:
    from tidelog.broker.dry_run import DryRun
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


class Audit(Protocol):
    """Keeps what clients did and were refused (``broker.audit``)."""

    def allowed(
        self,
        client: Client,
        operation: int,
        resource_type: int,
        name: str,
        decision: Decision,
        request: object = None,
    ) -> None:
        """The client does the operation. ``request``: what was decided about, or a tuple of the names that are changed."""
        ...

    def denied(
        self,
        client: Client,
        operation: int,
        resource_type: int,
        name: str,
        decision: Decision,
        request: object = None,
        *,
        dry_run: bool,
    ) -> None:
        """The client was refused, or would have been but for a dry run."""
        ...


class AclAccessControl:
    """Implements ``broker.ports.AccessControl``. Not shared between threads."""

    __slots__ = (
        "_audit",
        "_authorizer",
        "_decided",
        "_is_loaded",
        "_loaded",
        "_log",
        "_tells_allowed",
        "allowed",
        "denied",
        "dry_run",
    )

    def __init__(
        self,
        authorizer: Authorizer,
        log: DecisionLog,
        is_loaded: Callable[[], bool],
        audit: Audit | None = None,
        dry_run: DryRun | None = None,
    ) -> None:
        """``is_loaded``: whether the image that was followed last holds all committed ACLs; asked until it does."""
        self.dry_run = dry_run
        """What went through and would have been denied; None where denials are denials."""
        self._authorizer = authorizer
        self._log = log
        self._audit = audit
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

    def allows(self, client: Client, operation: int, resource_type: int, name: str, quiet: bool, request: object = None) -> bool:
        """Whether the client may do the operation on the resource. KafkaError UNKNOWN_SERVER_ERROR until the ACLs are known."""
        if not self._loaded and self._goes_unchecked(client):
            return True
        decision = self._decided(client.principal, client.peer_host, operation, resource_type, name)
        if decision.allowed:
            self.allowed += 1
            if self._tells_allowed():
                self._log.allowed(client, operation, resource_type, name, decision, quiet)
            if self._audit is not None:
                self._audit.allowed(client, operation, resource_type, name, decision, request)
            return True
        self.denied += 1
        self._log.denied(client, operation, resource_type, name, decision, quiet)
        if self._audit is None and self.dry_run is None:
            return False
        if quiet:
            return self.dry_run is not None and resource_type != ResourceType.CLUSTER
        return self._refused(client, operation, resource_type, name, decision, request)

    def would_allow(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        """Whether ``allows`` would say "yes" because of a rule; nothing is counted, logged or audited, and a doubt is a "no"."""
        return self._loaded and self._decided(client.principal, client.peer_host, operation, resource_type, name).allowed

    def shows(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        """Whether the client may do the operation, for an answer that lists its permissions. Errors: see ``allows``."""
        if not self._loaded and self._goes_unchecked(client):
            return True
        decision = self._decided(client.principal, client.peer_host, operation, resource_type, name)
        if decision.allowed:
            self.allowed += 1
            if self._tells_allowed():
                self._log.allowed(client, operation, resource_type, name, decision, True)
        else:
            self.denied += 1
            self._log.denied(client, operation, resource_type, name, decision, True)
        return decision.allowed

    def allows_by_cluster(self, client: Client, operation: int, resource_type: int, names: Iterable[str]) -> bool:
        """Whether the operation on the cluster, which is asked quietly, allows it on these resources. Errors: see ``allows``."""
        if not self.shows(client, operation, ResourceType.CLUSTER, CLUSTER_NAME):
            return False
        if self._audit is not None:
            decision = self._decided(client.principal, client.peer_host, operation, ResourceType.CLUSTER, CLUSTER_NAME)
            for name in names:
                self._audit.allowed(client, operation, resource_type, name, decision)
        return True

    def allows_any(self, client: Client, operation: int, resource_type: int) -> bool:
        """Whether the client may do the operation on some resource of the type. Errors: see ``allows``."""
        if not self._loaded and self._goes_unchecked(client):
            return True
        found = self._authorizer.allows_any(client.principal, address_text(client.peer_host), operation, resource_type)
        if not found:
            self.denied += 1
            decision = Decision(False, Rule.NO_MATCH)
            if self.dry_run is not None:
                # Apache Kafka's log says nothing of this question, and a dry run has to.
                self._log.denied(client, operation, resource_type, WILDCARD, decision, False)
            return self._refused(client, operation, resource_type, WILDCARD, decision)
        self.allowed += 1
        if self._audit is not None:
            rule = Rule.SUPER_USER if self._authorizer.is_super_user(client.principal) else Rule.ALLOW
            self._audit.allowed(client, operation, resource_type, WILDCARD, Decision(True, rule))
        return True

    def _refused(
        self, client: Client, operation: int, resource_type: int, name: str, decision: Decision, request: object = None
    ) -> bool:
        """Whether the client may after all, in a dry run."""
        dry_run = self.dry_run
        if self._audit is not None:
            self._audit.denied(client, operation, resource_type, name, decision, request, dry_run=dry_run is not None)
        if dry_run is None:
            return False
        dry_run.denials += 1
        return True

    def _goes_unchecked(self, client: Client) -> bool:
        """Whether the client may do everything for now, because this is a dry run and the ACLs are not known yet."""
        if self._is_loaded():
            self._loaded = True
            return False
        if self._authorizer.is_super_user(client.principal):
            return False
        if self.dry_run is not None:
            return True
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "This node has not read the cluster's ACLs yet.")
