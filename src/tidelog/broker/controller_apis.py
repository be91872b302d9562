"""What a controller's listener serves: the metadata quorum's own requests, and what the active controller decides.

A row is here when it is complete for a controller that is asked directly, by an admin client or by a broker that passes on what
it was asked. A controller that is not the active one answers NOT_CONTROLLER; brokers know the active one by their fetches of
metadata, clients find it through DescribeQuorum and DescribeCluster.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

from tidelog.broker import envelope
from tidelog.broker.api import Api
from tidelog.broker.apis import (
    acls,
    alter_configs,
    client_quotas,
    cluster,
    features,
    partitions,
    quorum,
    reassignments,
    topics,
    versions,
)
from tidelog.broker.context import CLOSE_CONNECTION, Context, ControllerHandler
from tidelog.broker.controller_side import ControllerSide
from tidelog.broker.operations import CLUSTER_OPERATIONS
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from tidelog.protocol.messages.alter_partition import AlterPartitionResponse
from tidelog.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tidelog.protocol.messages.broker_registration import BrokerRegistrationResponse
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_CONTROLLERS = 2
_ENDPOINT_TYPE_FROM = 1


async def raft(ctx: Context, request: Any) -> Any:
    """Between replicas of the metadata quorum; kafka-metadata-quorum adds and removes voters.

    Errors: see ``raft``.
    """
    side = cast(ControllerSide, ctx.broker)
    try:
        return await side.quorum.ask(ctx.api_key, ctx.api_version, ctx.listener, request)
    except KafkaError:
        # It stops: to the other side it is gone.
        return CLOSE_CONNECTION


def decided_by(method: ControllerHandler, purpose: str) -> Callable[[Context, Any], Coroutine[Any, Any, Any]]:
    """A handler that only asks the controller; ``purpose`` is what the reference says of it."""

    async def decide(ctx: Context, request: Any) -> Any:
        return await ctx.submit(method, request)

    decide.__doc__ = purpose
    return decide


def refused_as(response: Callable[..., Any]) -> Callable[[Any, KafkaError], Any]:
    """The whole request failed, and the response has one place to say so."""
    return lambda request, error: response(error_code=error.code)


async def broker_heartbeat(ctx: Context, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    """Sent by brokers, each on a connection that ends with its process. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH."""
    side = cast(ControllerSide, ctx.broker)
    response: BrokerHeartbeatResponse = await ctx.submit(QuorumController.broker_heartbeat, request)
    side.lives.heard(request.broker_id)
    ctx.on_closed = partial(side.lives.hung_up, request.broker_id, request.broker_epoch)
    return response


def list_reassignments(ctx: Context, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Passed on by Apache's brokers. Error: NOT_CONTROLLER, for another one may have decided more."""
    side = cast(ControllerSide, ctx.broker)
    if side.quorum.leader_id != side.node_id:
        return ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=None)
    return reassignments.list_partition_reassignments(ctx, request)


async def controller_registration(ctx: Context, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    """Sent by standby controllers to the active one. Errors: NOT_CONTROLLER, UNSUPPORTED_VERSION."""
    response: ControllerRegistrationResponse = await ctx.submit(QuorumController.register_standby, request)
    return response


def controller_registration_refused(request: ControllerRegistrationRequest, error: KafkaError) -> ControllerRegistrationResponse:
    """It is not registered."""
    return ControllerRegistrationResponse(error_code=error.code, error_message=error.detail or None)


def describe_controllers(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Sent by admin clients that begin at controllers (KIP-919): the voters, and which of them is active.

    Error: MISMATCHED_ENDPOINT_TYPE (brokers are described on their own listeners).
    """
    if request.endpoint_type != _CONTROLLERS:
        mismatch = DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to a controller's listener and asks for brokers. Use the brokers' bootstrap servers."
            ),
        )
        if ctx.api_version >= _ENDPOINT_TYPE_FROM:
            mismatch.endpoint_type = _CONTROLLERS
        return mismatch
    side = cast(ControllerSide, ctx.broker)
    known = [
        DescribeClusterBroker(broker_id=voter.voter_id, host=at.host, port=at.port)
        for voter in side.quorum.voters.voters
        for at in voter.endpoints
        if at.name == ctx.listener
    ]
    response = DescribeClusterResponse(
        endpoint_type=_CONTROLLERS, cluster_id=side.cluster_id, controller_id=side.quorum.leader_id, brokers=known
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


CONTROLLER_API_TABLE: tuple[Api, ...] = (
    Api(ApiKey.FETCH, (4, 18), raft),
    Api(ApiKey.API_VERSIONS, (0, 4), versions.api_versions),
    Api(ApiKey.CREATE_TOPICS, (2, 7), topics.create_topics, on_error=topics.create_topics_refused),
    Api(ApiKey.DELETE_TOPICS, (1, 6), topics.delete_topics, on_error=topics.delete_topics_refused),
    Api(ApiKey.DESCRIBE_ACLS, (1, 3), acls.describe_acls),
    Api(ApiKey.CREATE_ACLS, (1, 3), acls.create_acls),
    Api(ApiKey.DELETE_ACLS, (1, 3), acls.delete_acls),
    Api(ApiKey.ALTER_CONFIGS, (0, 2), alter_configs.alter_configs, on_error=alter_configs.alter_configs_refused),
    Api(ApiKey.CREATE_PARTITIONS, (0, 3), partitions.create_partitions, on_error=partitions.create_partitions_refused),
    Api(ApiKey.ELECT_LEADERS, (0, 2), partitions.elect_leaders, on_error=partitions.elect_leaders_refused),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (0, 1),
        alter_configs.incremental_alter_configs,
        on_error=alter_configs.incremental_alter_configs_refused,
    ),
    Api(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        (0, 1),
        reassignments.alter_partition_reassignments,
        on_error=reassignments.alter_partition_reassignments_refused,
    ),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, (0, 0), list_reassignments),
    Api(
        ApiKey.ALTER_CLIENT_QUOTAS,
        (0, 1),
        client_quotas.alter_client_quotas,
        on_error=client_quotas.alter_client_quotas_refused,
    ),
    Api(ApiKey.VOTE, (0, 2), raft),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, (0, 1), raft),
    Api(ApiKey.END_QUORUM_EPOCH, (0, 1), raft),
    Api(ApiKey.DESCRIBE_QUORUM, (0, 2), quorum.describe_quorum),
    Api(
        ApiKey.ALTER_PARTITION,
        (2, 3),
        decided_by(
            QuorumController.alter_partition,
            "Sent by leaders: who is in sync, and whether the leader recovers. Answered when the new ISR is committed.",
        ),
        on_error=refused_as(AlterPartitionResponse),
    ),
    Api(ApiKey.UPDATE_FEATURES, (0, 2), features.update_features, on_error=features.update_features_refused),
    Api(ApiKey.ENVELOPE, (0, 0), envelope.envelope),
    Api(ApiKey.FETCH_SNAPSHOT, (0, 1), raft),
    Api(ApiKey.DESCRIBE_CLUSTER, (0, 2), describe_controllers),
    Api(
        ApiKey.BROKER_REGISTRATION,
        (0, 4),
        decided_by(
            QuorumController.register_broker,
            "Sent by a broker at its start: its addresses, features, rack and log dirs; answered with its epoch.",
        ),
        on_error=refused_as(BrokerRegistrationResponse),
    ),
    Api(
        ApiKey.BROKER_HEARTBEAT,
        (0, 2),
        broker_heartbeat,
        on_error=refused_as(BrokerHeartbeatResponse),
    ),
    Api(ApiKey.UNREGISTER_BROKER, (0, 0), cluster.unregister_broker, on_error=cluster.unregister_broker_refused),
    Api(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        (0, 0),
        decided_by(
            QuorumController.allocate_producer_ids,
            "Sent by brokers that run out of producer ids: a thousand of them.",
        ),
        on_error=refused_as(AllocateProducerIdsResponse),
    ),
    Api(ApiKey.CONTROLLER_REGISTRATION, (0, 0), controller_registration, on_error=controller_registration_refused),
    Api(
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        (0, 0),
        decided_by(
            QuorumController.assign_replicas_to_dirs,
            "Sent by brokers: in which of their log dirs their replicas lie (KIP-858).",
        ),
        on_error=refused_as(AssignReplicasToDirsResponse),
    ),
    Api(ApiKey.ADD_RAFT_VOTER, (0, 1), raft),
    Api(ApiKey.REMOVE_RAFT_VOTER, (0, 0), raft),
    Api(ApiKey.UPDATE_RAFT_VOTER, (0, 0), raft),
)

CONTROLLER_APIS: dict[int, Api] = {row.key: row for row in CONTROLLER_API_TABLE}
"""The rows by their number on the wire."""
