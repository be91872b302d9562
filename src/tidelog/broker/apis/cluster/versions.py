"""ApiVersions: the first request on every connection."""

from __future__ import annotations

from tidelog.broker.answer_types import Encoded
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


def broker_api_versions(ctx: Context, request: ApiVersionsRequest | None) -> ApiVersionsResponse | Encoded:
    """The served versions and the cluster's feature levels, for every client. One that means another cluster or another node is
    refused with REBOOTSTRAP_REQUIRED, because its addresses are out of date (KIP-1242); the rest is ``api_versions``."""
    if request is not None and _means_another(ctx, request) and not _refusal(ctx, request):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return api_versions(ctx, request)


def _means_another(ctx: Context, request: ApiVersionsRequest) -> bool:
    """Whether the client says that it expects another cluster or node here."""
    said = ctx.api_version >= KNOWS_NODES_FROM and request.cluster_id is not None
    return said and (request.cluster_id, request.node_id) != (ctx.node.cluster_id, ctx.node.node_id)


def api_versions(ctx: Context, request: ApiVersionsRequest | None) -> ApiVersionsResponse | Encoded:
    """The served versions and the cluster's feature levels. Sent by every client; ``request`` is None at an unknown version.

    v3 added the client's software name and version, and features; v4 may name features whose lowest level is 0, which readers of
    v3 treat as an error (KAFKA-17011); v5 may name the cluster and the node that the client means. Errors: UNSUPPORTED_VERSION
    (answered in version 0 with the whole list), INVALID_REQUEST for an invalid software name or version, and for only one of
    cluster and node.
    """
    if request is None:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_api_keys(ctx))
    refusal = _refusal(ctx, request)
    if refusal:
        return ApiVersionsResponse(error_code=refusal)
    if ctx.api_version >= 3:
        ctx.session.client_software_name = request.client_software_name
        ctx.session.client_software_version = request.client_software_version
    kept = ctx.node.version_answers
    body = kept.get(ctx.image, ctx.node.controller.kraft_version, ctx.api_version)
    if body is None:
        body = _answer(ctx).encode(ctx.api_version)
        kept.keep(ctx.api_version, body)
    return Encoded((body,), len(body))


def _refusal(ctx: Context, request: ApiVersionsRequest) -> ErrorCode:
    """NONE for a valid request."""
    if ctx.api_version >= 3:
        if not (_is_software_text(request.client_software_name) and _is_software_text(request.client_software_version)):
            return ErrorCode.INVALID_REQUEST
        if ctx.api_version >= KNOWS_NODES_FROM and (request.cluster_id is None) != (request.node_id == NO_NODE):
            return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _answer(ctx: Context) -> ApiVersionsResponse:
    """To a valid request; depends on nothing but the version, the image and the level of kraft.version."""
    image, version = ctx.image, ctx.api_version
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
