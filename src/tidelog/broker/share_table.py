"""Rows of the API table: share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker.api import Api, on_cluster
from tidelog.broker.deferred import deferred
from tidelog.broker.refusals import regular
from tidelog.model.acl import AclOperation as Op
from tidelog.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from tidelog.broker.apis.groups import share_state
else:
    (share_state,) = deferred("groups", "share_state")

SHARE_APIS = (
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
)
"""Of the share coordinator."""
