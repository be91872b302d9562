"""DescribeCluster and UnregisterBroker."""

from __future__ import annotations

from tidelog.broker.authorization import cluster_operations
from tidelog.broker.node import BrokerContext
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

_BROKERS = 1
_CONTROLLERS = 2


def describe_cluster(ctx: BrokerContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Sent by admin clients and tools. v1 added the endpoint type, v2 fenced brokers.

    Errors: MISMATCHED_ENDPOINT_TYPE (controllers are described on their own listener), UNSUPPORTED_ENDPOINT_TYPE.
    """
    if request.endpoint_type != _BROKERS:
        known = request.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=(
                "The request was sent to a broker's listener and asks for controllers. Use the controllers' bootstrap servers."
                if known
                else f"Endpoint type {request.endpoint_type} is not known; 1 stands for brokers, 2 for controllers."
            ),
            endpoint_type=_BROKERS,
        )
    brokers = []
    for broker in ctx.image.brokers.values():
        endpoint = broker.endpoints.get(ctx.listener)
        if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
            continue
        brokers.append(
            DescribeClusterBroker(
                broker_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced
            )
        )
    # An unfenced broker: administrators send requests to it, and it forwards what the controller decides.
    alive = [each.broker_id for each in brokers if not each.is_fenced]
    controller_id = ctx.node.node_id if ctx.node.node_id in alive else next(iter(alive), NO_BROKER)
    response = DescribeClusterResponse(
        endpoint_type=_BROKERS, cluster_id=ctx.node.cluster_id, controller_id=controller_id, brokers=brokers
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(ctx)
    return response


async def unregister_broker(ctx: BrokerContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Sent by kafka-cluster: removes a broker that will not return. Error: BROKER_ID_NOT_REGISTERED."""
    response: UnregisterBrokerResponse = await ctx.submit(QuorumController.unregister_broker, request)
    return response
