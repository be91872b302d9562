"""UpdateFeatures: the cluster's finalized feature levels."""

from __future__ import annotations

from tidelog.broker.request import Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


async def update_features(ctx: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Sent by kafka-features. v1 added dry runs and downgrade types, v2 one result for all updates.

    Errors: see ``controller.update_features``.
    """
    version = ctx.api_version

    def decide(controller: QuorumController, request: UpdateFeaturesRequest, now_ms: int) -> ControllerResult:
        return controller.update_features(request, now_ms, version)

    response: UpdateFeaturesResponse = await ctx.submit(decide, request)
    return response
