"""AddRaftVoter and RemoveRaftVoter on a broker's listener: forwarded to the leader of the metadata quorum."""

from __future__ import annotations

from tidelog.broker.node import BrokerContext
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


async def add_raft_voter(ctx: BrokerContext, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Sent by kafka-metadata-quorum. Errors: see ``raft.voter_changes``; REQUEST_TIMED_OUT when no leader answers."""
    response: AddRaftVoterResponse = await ctx.node.controller.forward(ctx.api_key, ctx.api_version, request, ctx.forwarded_for)
    return response


async def remove_raft_voter(ctx: BrokerContext, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Sent by kafka-metadata-quorum. Errors: the same as for AddRaftVoter."""
    response: RemoveRaftVoterResponse = await ctx.node.controller.forward(
        ctx.api_key, ctx.api_version, request, ctx.forwarded_for
    )
    return response
