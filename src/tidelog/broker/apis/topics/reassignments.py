"""Replicas that move from broker to broker."""

from __future__ import annotations

from tidelog.broker.request import Context
from tidelog.controller import reassignments
from tidelog.controller.quorum_controller import QuorumController
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def alter_partition_reassignments(
    ctx: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Sent by kafka-reassign-partitions and tools that balance clusters. v1 may forbid another number of replicas.

    Errors per partition: see ``controller.reassignments``.
    """
    response: AlterPartitionReassignmentsResponse = await ctx.submit(QuorumController.alter_partition_reassignments, request)
    return response


def list_partition_reassignments(ctx: Context, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Sent by the same tools, to see how far it is; null asks for all topics."""
    return reassignments.list_partition_reassignments(ctx.image, request)
