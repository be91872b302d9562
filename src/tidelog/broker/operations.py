"""The operations that a client may do on a resource, as bit sets for Metadata, DescribeCluster and DescribeGroups.

Without an authorizer a client may do every operation that the resource type has. Bit n stands for operation n (KIP-430).
"""

from __future__ import annotations

from tidelog.model.acl import AclOperation as Op

NOT_ASKED = -(1 << 31)
"""The value when the client did not ask."""


def _bits(*operations: Op) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
GROUP_OPERATIONS = _bits(Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
CLUSTER_OPERATIONS = _bits(
    Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS, Op.IDEMPOTENT_WRITE
)
