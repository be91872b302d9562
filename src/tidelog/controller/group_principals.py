"""Groups and roles in a mixed cluster: all nodes must decide alike, and Apache Kafka's authorizer does not know them.

A node that counts ACLs for groups and roles registers the feature ``tidelog.group.principals``. Such ACLs are created only while
every registered node has it, and while there are such ACLs, a node without it cannot register. An active controller of Apache
Kafka checks neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.metadata.image import ClusterImage
from tidelog.metadata.supported_features import CONTROLLER_REGISTRATION_MV, GROUP_PRINCIPALS
from tidelog.model.acl import AccessControlEntry, PermissionType
from tidelog.model.acl_groups import ROLE, is_beyond_kafka, is_membership
from tidelog.model.errors import ErrorCode, KafkaError


def check_new_acl(image: ClusterImage, entry: AccessControlEntry) -> None:
    """KafkaError UNSUPPORTED_VERSION for an ACL that some node would not count as the others do; INVALID_REQUEST for a role that
    would be a member of a role."""
    if not is_beyond_kafka(entry):
        return
    if is_membership(entry) and entry.principal.startswith(f"{ROLE}:"):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "users and groups are members of a role; a role is not")
    if unaware := _unaware(image):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"ACLs for groups and roles need nodes that all count them, and this one does not: {unaware}.",
        )


def _unaware(image: ClusterImage) -> str | None:
    """A registered node that does not count ACLs for groups and roles."""
    if image.metadata_version < CONTROLLER_REGISTRATION_MV:
        return f"controllers do not register with metadata.version {image.metadata_version}"
    kinds: tuple[tuple[str, Iterable[tuple[int, Mapping[str, object]]]], ...] = (
        ("broker", ((each.id, each.features) for each in image.brokers.values())),
        ("controller", ((each.id, each.features) for each in image.controllers.values())),
    )
    for kind, nodes in kinds:
        for node_id, features in nodes:
            if GROUP_PRINCIPALS not in features:
                return f"{kind} {node_id}"
    return None


def check_registration(image: ClusterImage, node: str, features: Mapping[str, object]) -> None:
    """KafkaError UNSUPPORTED_VERSION for a node that does not count the ACLs for groups and roles which the cluster has."""
    if GROUP_PRINCIPALS in features:
        return
    found = next((each for each in image.acls.values() if is_beyond_kafka(each)), None)
    if found is not None:
        kind = "DENY" if found.permission_type == PermissionType.DENY else "ALLOW"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"The cluster has ACLs for groups or roles (such as {kind} for {found.principal} on {found.resource_name}), which "
            f"{node} does not count. Remove them first.",
        )
