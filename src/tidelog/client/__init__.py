"""A client for any Kafka cluster: the admin client on asyncio, its results and its errors.

Names are imported on first use, so that tools without asyncio do not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog.client.admin.acls import (
        AccessControlEntry,
        AclFilter,
        AclOperation,
        AclResourceType,
        PatternType,
        PermissionType,
    )
    from tidelog.client.admin.delegation_tokens import DelegationToken
    from tidelog.client.admin.group_results import (
        Committed,
        Group,
        GroupListing,
        Member,
        ShareGroup,
        ShareMember,
        ShareOffset,
        StreamsGroup,
        StreamsMember,
        StreamsSubtopology,
        StreamsTasks,
    )
    from tidelog.client.admin.results import (
        ClusterDescription,
        ConfigEntry,
        LogDir,
        NodeDescription,
        PartitionDescription,
        QuorumDescription,
        QuorumReplica,
        Quota,
        Reassignment,
        ResourceType,
        TopicDescription,
        TransactionDescription,
        TransactionListing,
    )
    from tidelog.client.connection import UnsupportedByBroker
    from tidelog.client.failures import NoConnection, NotAuthenticated
    from tidelog.client.net.admin_client import (
        AclAdmin,
        AdminClient,
        ClusterAdmin,
        ConfigAdmin,
        DelegationTokenAdmin,
        GroupAdmin,
        QuotaAdmin,
        ReplicaAdmin,
        ShareGroupAdmin,
        StreamsGroupAdmin,
        TopicAdmin,
        TransactionAdmin,
    )
    from tidelog.model.errors import ConfigError, ErrorCode, KafkaError

__all__ = [
    "AccessControlEntry",
    "AclAdmin",
    "AclFilter",
    "AclOperation",
    "AclResourceType",
    "AdminClient",
    "ClusterAdmin",
    "ClusterDescription",
    "Committed",
    "ConfigAdmin",
    "ConfigEntry",
    "ConfigError",
    "DelegationToken",
    "DelegationTokenAdmin",
    "ErrorCode",
    "Group",
    "GroupAdmin",
    "GroupListing",
    "KafkaError",
    "LogDir",
    "Member",
    "NoConnection",
    "NodeDescription",
    "NotAuthenticated",
    "PartitionDescription",
    "PatternType",
    "PermissionType",
    "QuorumDescription",
    "QuorumReplica",
    "Quota",
    "QuotaAdmin",
    "Reassignment",
    "ReplicaAdmin",
    "ResourceType",
    "ShareGroup",
    "ShareGroupAdmin",
    "ShareMember",
    "ShareOffset",
    "StreamsGroup",
    "StreamsGroupAdmin",
    "StreamsMember",
    "StreamsSubtopology",
    "StreamsTasks",
    "TopicAdmin",
    "TopicDescription",
    "TransactionAdmin",
    "TransactionDescription",
    "TransactionListing",
    "UnsupportedByBroker",
]

_ELSEWHERE = {
    "AccessControlEntry": "tidelog.client.admin.acls",
    "AclFilter": "tidelog.client.admin.acls",
    "AclOperation": "tidelog.client.admin.acls",
    "AclResourceType": "tidelog.client.admin.acls",
    "PatternType": "tidelog.client.admin.acls",
    "PermissionType": "tidelog.client.admin.acls",
    "AclAdmin": "tidelog.client.net.admin_client",
    "ShareGroup": "tidelog.client.admin.group_results",
    "ShareMember": "tidelog.client.admin.group_results",
    "ShareOffset": "tidelog.client.admin.group_results",
    "StreamsGroup": "tidelog.client.admin.group_results",
    "StreamsMember": "tidelog.client.admin.group_results",
    "StreamsSubtopology": "tidelog.client.admin.group_results",
    "StreamsTasks": "tidelog.client.admin.group_results",
    "ShareGroupAdmin": "tidelog.client.net.admin_client",
    "StreamsGroupAdmin": "tidelog.client.net.admin_client",
    "Committed": "tidelog.client.admin.group_results",
    "Group": "tidelog.client.admin.group_results",
    "GroupListing": "tidelog.client.admin.group_results",
    "Member": "tidelog.client.admin.group_results",
    "AdminClient": "tidelog.client.net.admin_client",
    "DelegationToken": "tidelog.client.admin.delegation_tokens",
    "DelegationTokenAdmin": "tidelog.client.net.admin_client",
    "TransactionAdmin": "tidelog.client.net.admin_client",
    "QuotaAdmin": "tidelog.client.net.admin_client",
    "ReplicaAdmin": "tidelog.client.net.admin_client",
    "ClusterAdmin": "tidelog.client.net.admin_client",
    "GroupAdmin": "tidelog.client.net.admin_client",
    "ConfigAdmin": "tidelog.client.net.admin_client",
    "TopicAdmin": "tidelog.client.net.admin_client",
    "ConfigError": "tidelog.model.errors",
    "ErrorCode": "tidelog.model.errors",
    "KafkaError": "tidelog.model.errors",
    "NoConnection": "tidelog.client.failures",
    "NotAuthenticated": "tidelog.client.failures",
    "UnsupportedByBroker": "tidelog.client.connection",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "tidelog.client.admin.results")), name)
