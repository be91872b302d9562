"""ApiVersions: the first request on every connection."""

from __future__ import annotations

from tidelog.broker.request import Context
from tidelog.metadata.supported_features import KRAFT_VERSION, supported_ranges
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")


NO_NODE = -1
KNOWS_NODES_FROM = 5


def broker_api_versions(ctx: Context, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """The served versions and the cluster's feature levels, for every client. One that means another cluster or another node is
    refused with REBOOTSTRAP_REQUIRED, because its addresses are out of date (KIP-1242); the rest is ``api_versions``."""
    response = api_versions(ctx, request)
    if request is None or response.error_code or ctx.api_version < KNOWS_NODES_FROM or request.cluster_id is None:
        return response
    if (request.cluster_id, request.node_id) != (ctx.node.cluster_id, ctx.node.node_id):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return response


def api_versions(ctx: Context, request: ApiVersionsRequest | None) -> ApiVersionsResponse:
    """The served versions and the cluster's feature levels. Sent by every client; ``request`` is None at an unknown version.

    v3 added the client's software name and version, and features; v4 may name features whose lowest level is 0, which readers of
    v3 treat as an error (KAFKA-17011); v5 may name the cluster and the node that the client means. Errors: UNSUPPORTED_VERSION
    (answered in version 0 with the whole list), INVALID_REQUEST for an invalid software name or version, and for only one of
    cluster and node.
    """
    if request is None:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_api_keys(ctx))
    version = ctx.api_version
    if version >= 3:
        if not (_is_software_text(request.client_software_name) and _is_software_text(request.client_software_version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if version >= KNOWS_NODES_FROM and (request.cluster_id is None) != (request.node_id == NO_NODE):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        ctx.session.client_software_name = request.client_software_name
        ctx.session.client_software_version = request.client_software_version
    image = ctx.image
    return ApiVersionsResponse(
        api_keys=_api_keys(ctx),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in supported_ranges().items()
            if low > 0 or version >= 4
        ],
        finalized_features_epoch=image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in {**image.features, KRAFT_VERSION: ctx.node.controller.kraft_version}.items()
            if level > 0
        ],
    )


def _api_keys(ctx: Context) -> list[ApiVersion]:
    return [ApiVersion(api_key=key, min_version=first, max_version=last) for key, (first, last) in ctx.node.advertised.items()]


def _is_software_text(text: str) -> bool:
    """Letters, digits, dashes and dots, beginning and ending with a letter or digit (KIP-511)."""
    return bool(text) and set(text) <= _NAME_CHARACTERS and text[0].isalnum() and text[-1].isalnum()
