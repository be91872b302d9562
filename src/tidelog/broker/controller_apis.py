"""What a controller's listener serves: the metadata quorum's own requests, and what the active controller decides.

A row is here when it is complete for a controller that is asked directly. A controller that is not the active one answers
NOT_CONTROLLER; clients find the active one through DescribeQuorum and DescribeCluster.
"""

from __future__ import annotations

from typing import Any, cast

from tidelog.broker.api import Api
from tidelog.broker.apis import alter_configs, features, quorum, versions
from tidelog.broker.context import CLOSE_CONNECTION, Context
from tidelog.broker.controller_side import ControllerSide
from tidelog.broker.operations import CLUSTER_OPERATIONS
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

_CONTROLLERS = 2


async def raft(ctx: Context, request: Any) -> Any:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter.

    Sent by other replicas of the metadata quorum; the last three but one also by kafka-metadata-quorum. Errors: see ``raft``.
    """
    side = cast(ControllerSide, ctx.broker)
    try:
        return await side.quorum.ask(ctx.api_key, ctx.api_version, ctx.listener, request)
    except KafkaError:
        # It stops: to the other side it is gone.
        return CLOSE_CONNECTION


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
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to a controller's listener and asks for brokers. Use the brokers' bootstrap servers."
            ),
            endpoint_type=_CONTROLLERS,
        )
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
    Api(ApiKey.ALTER_CONFIGS, (0, 2), alter_configs.alter_configs, on_error=alter_configs.alter_configs_refused),
    Api(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (0, 1),
        alter_configs.incremental_alter_configs,
        on_error=alter_configs.incremental_alter_configs_refused,
    ),
    Api(ApiKey.VOTE, (0, 2), raft),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, (0, 1), raft),
    Api(ApiKey.END_QUORUM_EPOCH, (0, 1), raft),
    Api(ApiKey.DESCRIBE_QUORUM, (0, 2), quorum.describe_quorum),
    Api(ApiKey.UPDATE_FEATURES, (0, 2), features.update_features, on_error=features.update_features_refused),
    Api(ApiKey.FETCH_SNAPSHOT, (0, 1), raft),
    Api(ApiKey.DESCRIBE_CLUSTER, (0, 2), describe_controllers),
    Api(ApiKey.CONTROLLER_REGISTRATION, (0, 0), controller_registration, on_error=controller_registration_refused),
    Api(ApiKey.ADD_RAFT_VOTER, (0, 1), raft),
    Api(ApiKey.REMOVE_RAFT_VOTER, (0, 0), raft),
    Api(ApiKey.UPDATE_RAFT_VOTER, (0, 0), raft),
)

CONTROLLER_APIS: dict[int, Api] = {row.key: row for row in CONTROLLER_API_TABLE}
"""The rows by their number on the wire."""
