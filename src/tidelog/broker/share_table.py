"""Rows of the API table: share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker.api import Api, by_resource, on_cluster
from tidelog.broker.deferred import deferred
from tidelog.broker.refusals import regular
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from tidelog.broker.apis.groups import share_groups, share_state
    from tidelog.broker.apis.records import share_fetch
else:
    share_groups, share_state = deferred("groups", "share_groups", "share_state")
    (share_fetch,) = deferred("records", "share_fetch")

GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC

SHARE_APIS = (
    Api(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        (1, 1),
        broker=share_groups.share_group_heartbeat,
        needs=by_resource((Op.READ, GROUP), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.SHARE_GROUP_DESCRIBE,
        (1, 1),
        broker=share_groups.share_group_describe,
        needs=by_resource((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.SHARE_FETCH,
        (1, 2),
        broker=share_fetch.share_fetch,
        needs=by_resource((Op.READ, GROUP), (Op.READ, TOPIC)),
    ),
    Api(
        ApiKey.SHARE_ACKNOWLEDGE,
        (1, 2),
        broker=share_fetch.share_acknowledge,
        needs=by_resource((Op.READ, GROUP), (Op.READ, TOPIC)),
    ),
    Api(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        (0, 0),
        broker=share_state.initialize_share_group_state,
        needs=on_cluster(Op.CLUSTER_ACTION),
        between_brokers_from=0,
    ),
    Api(
        ApiKey.READ_SHARE_GROUP_STATE,
        (0, 0),
        broker=share_state.read_share_group_state,
        needs=on_cluster(Op.CLUSTER_ACTION),
        between_brokers_from=0,
    ),
    Api(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        (0, 1),
        broker=share_state.write_share_group_state,
        needs=on_cluster(Op.CLUSTER_ACTION),
        between_brokers_from=0,
    ),
    Api(
        ApiKey.DELETE_SHARE_GROUP_STATE,
        (0, 0),
        broker=share_state.delete_share_group_state,
        needs=on_cluster(Op.CLUSTER_ACTION),
        between_brokers_from=0,
    ),
    Api(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        (0, 1),
        broker=share_state.read_share_group_state_summary,
        needs=on_cluster(Op.CLUSTER_ACTION),
        between_brokers_from=0,
        refuse=regular(delivery_complete_count=-1),
    ),
    Api(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        (0, 1),
        broker=share_groups.describe_share_group_offsets,
        needs=by_resource((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TOPIC)),
    ),
    Api(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        (0, 0),
        broker=share_groups.alter_share_group_offsets,
        needs=by_resource((Op.READ, GROUP), (Op.READ, TOPIC)),
    ),
    Api(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        (0, 0),
        broker=share_groups.delete_share_group_offsets,
        needs=by_resource((Op.DELETE, GROUP), (Op.READ, TOPIC)),
    ),
)
"""Of the groups, of the partitions that they read, and of the share coordinator."""
