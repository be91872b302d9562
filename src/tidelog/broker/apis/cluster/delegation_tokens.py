"""Delegation tokens (KIP-48, KIP-373): decided by the active controller, described by any broker.

A client that may ask for them has authenticated, and not by a token. The controller has to know the client: brokers forward its
principal in an Envelope, with or without an authorizer. For a request that came in an Envelope, the broker has looked at the
client's connection; the controller knows of it whether a token was the password.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from tidelog.broker.answer_types import Answer
from tidelog.broker.authorization import allows, require
from tidelog.broker.forwarding import by_controller
from tidelog.broker.node import BrokerContext
from tidelog.broker.request import Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.metadata.image import DelegationToken
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.acl_groups import groups_take_rights, is_group_or_role
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from tidelog.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from tidelog.security.principal import ANONYMOUS, USER, KafkaPrincipal

_REQUESTER_FROM = 3
"""The version from which answers name who asked for a token."""


def create_delegation_token(
    ctx: Context, request: CreateDelegationTokenRequest
) -> Coroutine[Any, Any, CreateDelegationTokenResponse]:
    """Sent by admin clients and kafka-delegation-tokens; the answer has the token's secret. v3 added another owner than the
    client (KIP-373).

    Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED over connections without authentication, after a login by a token, and for
    another owner while groups take rights away; DELEGATION_TOKEN_AUTHORIZATION_FAILED without CREATE_TOKENS on another owner;
    INVALID_PRINCIPAL_TYPE for a renewer that is not a user, or for a group or a role as the owner; see
    ``controller.delegation_tokens``.
    """
    owner = _owner(ctx, request)
    _check_may_ask(ctx)
    if is_group_or_role(owner.type):
        # The membership in a role includes CREATE_TOKENS on it, and a DENY for the member would not count for such a token.
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, "Only users own delegation tokens.")
    if owner != ctx.principal:
        require(ctx, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner))
        if groups_take_rights(ctx.image.acls.values()):
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
                "The groups of the owner are not known, and ACLs deny groups or give them roles.",
            )
    if any(each.principal_type != USER for each in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    return _created(ctx, request, owner)


async def _created(ctx: Context, request: CreateDelegationTokenRequest, owner: KafkaPrincipal) -> CreateDelegationTokenResponse:
    response: CreateDelegationTokenResponse = await _decided(
        ctx, partial(QuorumController.create_delegation_token, owner=owner), request
    )
    if ctx.api_version < _REQUESTER_FROM:
        response = response.replace(token_requester_principal_type="", token_requester_principal_name="")
    return response


def refuse_creation(ctx: Context, request: CreateDelegationTokenRequest, error: KafkaError) -> CreateDelegationTokenResponse:
    """The refusal, which names owner and requester."""
    try:
        owner = _owner(ctx, request)
    except KafkaError:
        owner = ANONYMOUS
    response = CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if ctx.api_version >= _REQUESTER_FROM:
        response.token_requester_principal_type, response.token_requester_principal_name = ctx.principal
    return response


def renew_delegation_token(
    ctx: Context, request: RenewDelegationTokenRequest
) -> Coroutine[Any, Any, RenewDelegationTokenResponse]:
    """Sent by a token's owner or one of its renewers. Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED as for creation; see
    ``controller.delegation_tokens``."""
    _check_may_ask(ctx)
    return _decided(ctx, QuorumController.renew_delegation_token, request)


def expire_delegation_token(
    ctx: Context, request: ExpireDelegationTokenRequest
) -> Coroutine[Any, Any, ExpireDelegationTokenResponse]:
    """Sent by a token's owner or one of its renewers, to end it sooner or at once. Errors: as for RenewDelegationToken."""
    _check_may_ask(ctx)
    return _decided(ctx, QuorumController.expire_delegation_token, request)


def describe_delegation_token(ctx: BrokerContext, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    """Sent by admin clients and kafka-delegation-tokens: the tokens of which the client is the owner or a renewer, and those that
    it may describe, with their secrets. ``owners``: only tokens that one of them owns or may renew; null: all.

    Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED as for creation, DELEGATION_TOKEN_AUTH_DISABLED.
    """
    _check_may_ask(ctx)
    from tidelog.security.delegation_tokens import may_use, principal_of, secrets_of  # Only for a client that logged in.

    secrets = secrets_of(ctx.config.delegation_token_secret_key)
    if secrets is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None if request.owners is None else [f"{each.principal_type}:{each.principal_name}" for each in request.owners]
    described = []
    for token_id, token in ctx.image.tokens.items():
        if owners is not None and not any(may_use(token, owner) for owner in owners):
            continue
        if not may_use(token, str(ctx.principal)) and not _may_describe(ctx, token_id, token):
            continue
        owner, requester = principal_of(token.owner), principal_of(token.requester)
        answer = DescribedDelegationToken(
            principal_type=owner.type,
            principal_name=owner.name,
            issue_timestamp=token.issue_timestamp,
            expiry_timestamp=token.expiration_timestamp,
            max_timestamp=token.max_timestamp,
            token_id=token_id,
            hmac=secrets.hmac_of(token_id),
            renewers=[DescribedDelegationTokenRenewer(*principal_of(each)) for each in token.renewers],
        )
        if ctx.api_version >= _REQUESTER_FROM:
            answer.token_requester_principal_type, answer.token_requester_principal_name = requester
        described.append(answer)
    return DescribeDelegationTokenResponse(tokens=described)


def _owner(ctx: Context, request: CreateDelegationTokenRequest) -> KafkaPrincipal:
    """The owner that the request names, or the client. KafkaError INVALID_REQUEST for a name without a type."""
    if not request.owner_principal_name:
        return ctx.principal
    if request.owner_principal_type is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The owner of a delegation token has a name, but no type.")
    return KafkaPrincipal(request.owner_principal_type, request.owner_principal_name)


def _may_describe(ctx: Context, token_id: str, token: DelegationToken) -> bool:
    return allows(ctx, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token_id, quiet=True) or allows(
        ctx, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner, quiet=True
    )


def _check_may_ask(ctx: Context) -> None:
    """KafkaError DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    if ctx.principal.groups:
        # A login by the token has the owner's name and none of these groups, so a DENY for one of them would not count.
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "A client in groups may not use delegation tokens.")
    session = ctx.session
    protocol = ctx.config.protocol_map.get(ctx.listener, "PLAINTEXT")
    unknown = protocol == "PLAINTEXT" or (protocol == "SSL" and ctx.principal == ANONYMOUS)
    if session.token_authenticated or (unknown and not session.forwarded):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


async def _decided(ctx: Context, method: Callable[..., ControllerResult], request: Any) -> Any:
    """The active controller's answer to this client. Unlike ``ctx.submit``, it always names the client."""

    async def decide(ctx: Context, request: Any) -> Answer:
        handler = partial(method, requester=ctx.principal)
        answer: Answer = await ctx.node.controller.submit(handler, request, ctx.api_version, ctx.asker)
        return answer

    return await by_controller(ctx, request, decide, always=True)
