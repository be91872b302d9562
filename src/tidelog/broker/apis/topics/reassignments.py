"""AlterPartitionReassignments and ListPartitionReassignments."""

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
    """Sent by kafka-reassign-partitions and cluster balancers. v1 may forbid a change of the replication factor.

    Errors per partition: see ``controller.reassignments``.
    """
    response: AlterPartitionReassignmentsResponse = await ctx.submit(QuorumController.alter_partition_reassignments, request)
    return response


def list_partition_reassignments(ctx: Context, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """Sent by kafka-reassign-partitions and cluster balancers to watch progress; null asks for all topics."""
    return reassignments.list_partition_reassignments(ctx.image, request)
