"""The operations that mean something on each type of resource, and bit sets of them for Metadata, DescribeCluster and others.

Without an authorizer a client may do every operation that the resource type has. Bit n stands for operation n (KIP-430).
"""

from __future__ import annotations

from tidelog.model.acl import OPERATIONS, ResourceType
from tidelog.model.acl import AclOperation as Op

__all__ = ["CLUSTER_OPERATIONS", "GROUP_OPERATIONS", "NOT_ASKED", "OPERATIONS", "TOPIC_OPERATIONS", "bits"]

NOT_ASKED = -(1 << 31)
"""The value when the client did not ask."""


def bits(*operations: Op) -> int:
    """The bit set of the operations."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bits(*OPERATIONS[ResourceType.TOPIC])
GROUP_OPERATIONS = bits(*OPERATIONS[ResourceType.GROUP])
CLUSTER_OPERATIONS = bits(*OPERATIONS[ResourceType.CLUSTER])
