"""May a client read what it fetches? A consumer needs READ on each topic, a follower CLUSTER_ACTION on the cluster.

Each topic is asked for once per fetch. A fetch that waits asks again when the ACLs have changed meanwhile, so a long poll never
returns records that the client may not read any more.
"""

from __future__ import annotations

from tidelog.broker.authorization import allows, allows_on_cluster
from tidelog.broker.node import BrokerContext
from tidelog.broker.ports import AccessControl
from tidelog.model.acl import AclOperation, ResourceType


class ReadGate:
    """The permissions of the client of one fetch (``replication.fetch.Gate``)."""

    __slots__ = ("_access", "_ctx", "_follower", "_refused", "_version")

    def __init__(self, ctx: BrokerContext, access: AccessControl, *, follower: bool) -> None:
        self._ctx = ctx
        self._access = access
        self._follower = follower
        self._version = access.version
        self._refused: dict[str | None, bool] = {}

    @property
    def decider(self) -> object:
        """The version of the ACLs, and the client that they are asked for."""
        principal = self._ctx.principal
        return self._version, principal, principal.groups, self._ctx.peer_host

    def refuses(self, topic: str | None) -> bool:
        """Whether the client may not read the topic; for a follower the topic makes no difference."""
        key = None if self._follower else topic
        refused = self._refused.get(key)
        if refused is None:
            refused = self._refused[key] = self._ask(key)
        return refused

    def _ask(self, topic: str | None) -> bool:
        if self._follower:
            return not allows_on_cluster(self._ctx, AclOperation.CLUSTER_ACTION)
        return topic is not None and not allows(self._ctx, AclOperation.READ, ResourceType.TOPIC, topic)

    def renew(self) -> bool:
        """Whether the ACLs have changed; what was decided by the older ones is forgotten."""
        version = self._access.version
        if version == self._version:
            return False
        self._version = version
        self._refused.clear()
        return True
