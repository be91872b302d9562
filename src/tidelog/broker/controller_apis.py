"""Handlers of a controller's listener: requests of the metadata quorum, and those that only controllers serve.

Handlers that brokers share are in ``broker.apis``. A controller that is not active answers NOT_CONTROLLER; brokers know the
active one from fetching the metadata, clients find it through DescribeQuorum and DescribeCluster.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from tidelog.broker.answer_types import CLOSE_CONNECTION
from tidelog.broker.authorization import cluster_operations
from tidelog.broker.node import ControllerContext
from tidelog.broker.ports import ControllerHandler
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

if TYPE_CHECKING:
    from tidelog.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    )

_BROKERS = 1
_CONTROLLERS = 2
_ENDPOINT_TYPE_FROM = 1


async def raft(ctx: ControllerContext, request: Any) -> Any:
    """Between replicas of the metadata quorum; kafka-metadata-quorum adds and removes voters.

    Errors: see ``raft``.
    """
    try:
        return await ctx.node.quorum.ask(ctx.api_key, ctx.api_version, ctx.listener, request)
    except KafkaError:
        # This replica is stopping: act as if the connection broke.
        return CLOSE_CONNECTION


def decided_by(method: ControllerHandler, purpose: str) -> Callable[[ControllerContext, Any], Coroutine[Any, Any, Any]]:
    """A handler that only calls the controller; ``purpose`` is its text in the reference."""

    async def decide(ctx: ControllerContext, request: Any) -> Any:
        return await ctx.submit(method, request)

    decide.__doc__ = purpose
    return decide


broker_registration = decided_by(
    QuorumController.register_broker,
    "Sent by a broker at its start: its addresses, features, rack and log dirs; answered with its epoch.",
)
alter_partition = decided_by(
    QuorumController.alter_partition,
    "Sent by leaders: who is in sync, and whether the leader recovers. Answered when the new ISR is committed.",
)
allocate_producer_ids = decided_by(
    QuorumController.allocate_producer_ids, "Sent by brokers that run out of producer ids: a thousand of them."
)
assign_replicas_to_dirs = decided_by(
    QuorumController.assign_replicas_to_dirs, "Sent by brokers: in which of their log dirs their replicas lie (KIP-858)."
)


async def broker_heartbeat(ctx: ControllerContext, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    """Sent by brokers, each on a connection that closes with its process. Errors: NOT_CONTROLLER, STALE_BROKER_EPOCH."""
    response: BrokerHeartbeatResponse = await ctx.submit(QuorumController.broker_heartbeat, request)
    ctx.node.lives.heard(request.broker_id)
    ctx.session.on_closed = partial(ctx.node.lives.hung_up, request.broker_id, request.broker_epoch)
    return response


def list_reassignments(ctx: ControllerContext, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Forwarded by Apache Kafka's brokers. Error: NOT_CONTROLLER, because the active controller may have newer state."""
    from tidelog.broker.apis.topics import reassignments  # Only administrators ask.
    from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse

    if ctx.node.quorum.leader_id != ctx.node.node_id:
        return ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=None)
    return reassignments.list_partition_reassignments(ctx, request)


async def controller_registration(
    ctx: ControllerContext, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    """Sent by standby controllers to the active one. Errors: NOT_CONTROLLER, UNSUPPORTED_VERSION."""
    response: ControllerRegistrationResponse = await ctx.submit(QuorumController.register_standby, request)
    return response


def describe_controllers(ctx: ControllerContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Sent by admin clients that connect to controllers (KIP-919): the voters, and which of them is active.

    Errors: MISMATCHED_ENDPOINT_TYPE (brokers are described on their own listeners), UNSUPPORTED_ENDPOINT_TYPE, INVALID_REQUEST
    (version 0, which can only ask for brokers).
    """
    if request.endpoint_type != _CONTROLLERS:
        mismatch = DescribeClusterResponse(
            error_code=_wrong_endpoint(ctx.api_version, request.endpoint_type),
            error_message=(
                "The request was sent to a controller's listener and asks for brokers. Use the brokers' bootstrap servers."
                if request.endpoint_type == _BROKERS
                else f"Endpoint type {request.endpoint_type} is not known; 1 stands for brokers, 2 for controllers."
            ),
        )
        if ctx.api_version >= _ENDPOINT_TYPE_FROM:
            mismatch.endpoint_type = _CONTROLLERS
        return mismatch
    known = [
        DescribeClusterBroker(broker_id=voter.voter_id, host=at.host, port=at.port)
        for voter in ctx.node.quorum.voters.voters
        for at in voter.endpoints
        if at.name == ctx.listener
    ]
    response = DescribeClusterResponse(
        endpoint_type=_CONTROLLERS, cluster_id=ctx.node.cluster_id, controller_id=ctx.node.quorum.leader_id, brokers=known
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(ctx)
    return response


def _wrong_endpoint(version: int, endpoint_type: int) -> ErrorCode:
    if version < _ENDPOINT_TYPE_FROM:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.MISMATCHED_ENDPOINT_TYPE if endpoint_type == _BROKERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
