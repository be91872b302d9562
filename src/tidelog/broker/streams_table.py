"""Rows of the API table: streams groups (KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker.api import Api, by_resource
from tidelog.broker.deferred import deferred
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from tidelog.broker.apis.groups import streams_groups
else:
    (streams_groups,) = deferred("groups", "streams_groups")

CLUSTER, GROUP, TOPIC = ResourceType.CLUSTER, ResourceType.GROUP, ResourceType.TOPIC

STREAMS_APIS = (
    # CREATE for the internal topics of the topology that do not exist.
    Api(
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        (0, 0),
        broker=streams_groups.streams_group_heartbeat,
        needs=by_resource((Op.READ, GROUP), (Op.DESCRIBE, TOPIC), (Op.CREATE, CLUSTER), (Op.CREATE, TOPIC)),
    ),
    Api(
        ApiKey.STREAMS_GROUP_DESCRIBE,
        (0, 0),
        broker=streams_groups.streams_group_describe,
        needs=by_resource((Op.DESCRIBE, GROUP), (Op.DESCRIBE, TOPIC)),
    ),
)
"""Of the groups of Kafka Streams applications."""
