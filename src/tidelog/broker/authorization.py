"""What a handler asks before it acts: may this client do this operation on this resource?

On a node without an authorizer everything is allowed. The answer for each resource is the handler's; the errors are Kafka's, one
for each type of resource. A handler asks before it looks whether the resource exists: a client without the permission must not
learn that. Requests that need one permission on the cluster as a whole are refused by the dispatcher, by their row of the table.

``quiet``: a question whose "no" is not a refusal yet, because another permission may do or because the answer just leaves the
resource out. It is neither logged nor counted as a denial, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from tidelog.broker.operations import OPERATIONS, bits
from tidelog.broker.request import RequestContext
from tidelog.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError

_Context: TypeAlias = RequestContext[Any]

DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error of a denied operation, by type of resource."""


def allows(ctx: _Context, operation: AclOperation, kind: ResourceType, name: str, *, quiet: bool = False) -> bool:
    """Whether the client may do the operation on one resource."""
    access = ctx.node.access
    return access is None or access.allows(ctx, operation, kind, name, quiet)


def allows_on_cluster(ctx: _Context, operation: AclOperation, *, quiet: bool = False) -> bool:
    """Whether the client may do the operation on the cluster."""
    access = ctx.node.access
    return access is None or access.allows(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME, quiet)


def allows_on_any(ctx: _Context, operation: AclOperation, kind: ResourceType) -> bool:
    """Whether the client may do the operation on at least one resource of this type, existing or not (KIP-679)."""
    access = ctx.node.access
    return access is None or access.allows_any(ctx, operation, kind)


def allowed(
    ctx: _Context, operation: AclOperation, kind: ResourceType, names: Iterable[str], *, quiet: bool = False
) -> frozenset[str]:
    """Those of ``names`` on which the client may do the operation; each is asked for once."""
    access = ctx.node.access
    different = frozenset(names)
    if access is None:
        return different
    return frozenset(name for name in different if access.allows(ctx, operation, kind, name, quiet))


def allowed_by_cluster(ctx: _Context, operation: AclOperation, kind: ResourceType, names: Iterable[str]) -> bool:
    """Whether the client may do the operation on all these resources, because it may on the cluster. A quiet question: where the
    answer is no, the permission on each resource decides."""
    access = ctx.node.access
    return access is None or access.allows_by_cluster(ctx, operation, kind, names)


def require(ctx: _Context, operation: AclOperation, kind: ResourceType, name: str) -> None:
    """KafkaError with the code of ``DENIED`` when the client may not; the API's row makes a response of it."""
    if not allows(ctx, operation, kind, name):
        raise KafkaError(DENIED[kind])


def require_on_cluster(ctx: _Context, operation: AclOperation) -> None:
    """KafkaError CLUSTER_AUTHORIZATION_FAILED when the client may not do the operation on the cluster."""
    require(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def allows_changes(ctx: _Context, operation: AclOperation, kind: ResourceType, name: str, changes: Iterable[str]) -> bool:
    """``allows`` for changes of one resource, whose names the audit has."""
    access = ctx.node.access
    return access is None or access.allows(ctx, operation, kind, name, False, tuple(changes))


def require_for_request(ctx: _Context, operation: AclOperation, request: object) -> None:
    """``require_on_cluster`` for a whole request, whose names the audit has."""
    access = ctx.node.access
    if access is not None and not access.allows(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME, False, request):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def config_resource(resource_type: int, name: str) -> tuple[ResourceType, str]:
    """The resource whose permissions protect the settings of a config resource: the cluster for brokers, their loggers and client
    metrics."""
    if resource_type == TOPIC_RESOURCE:
        return ResourceType.TOPIC, name
    if resource_type == GROUP_RESOURCE:
        return ResourceType.GROUP, name
    return ResourceType.CLUSTER, CLUSTER_NAME


def cluster_operations(ctx: _Context) -> int:
    """The operations on the cluster that the client may do, as a bit set; none without DESCRIBE on the cluster."""
    if not allows_on_cluster(ctx, AclOperation.DESCRIBE):
        return 0
    return authorized_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)


def authorized_operations(ctx: _Context, kind: ResourceType, name: str) -> int:
    """The operations on the resource that the client may do, as a bit set (KIP-430)."""
    access = ctx.node.access
    if access is None:
        return bits(*OPERATIONS[kind])
    return bits(*(each for each in OPERATIONS[kind] if access.shows(ctx, each, kind, name)))
