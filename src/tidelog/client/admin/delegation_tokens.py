"""Delegation tokens: created, renewed, expired and described (KIP-48, KIP-373).

Brokers refuse these calls on connections without authentication, and after a login by a token
(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED); DELEGATION_TOKEN_AUTH_DISABLED where tokens are off.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, VersionOf
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode, KafkaError

_OWNER_FROM = 3


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token. Principals are texts such as ``User:alice``; times in ms since 1970.

    A client logs in by SCRAM with ``token_id`` as its name, ``password``, and ``tokenauth=true``.
    """

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    """Who asked for it; empty from a broker before Kafka 3.3."""
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time past which it cannot be renewed."""

    @property
    def password(self) -> str:
        """``hmac`` as base64."""
        return base64.b64encode(self.hmac).decode()


def create(renewers: Iterable[str] = (), *, owner: str | None = None, max_lifetime_ms: int = -1) -> Call[DelegationToken]:
    """Create a token of the client's user, or of ``owner``, on whom the user needs CREATE_TOKENS.

    ``renewers`` may renew and expire it, too. ``max_lifetime_ms``: at most, and with -1, ``delegation.token.max.lifetime.ms``.
    KafkaError, such as DELEGATION_TOKEN_AUTHORIZATION_FAILED and INVALID_PRINCIPAL_TYPE for a renewer that is not a user;
    UnsupportedByBroker where a broker before Kafka 3.3 cannot take an owner.
    """
    from tidelog.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest

    named = [_principal(each) for each in renewers]
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(kind, name) for kind, name in named], max_lifetime_ms=max_lifetime_ms
    )
    if owner is not None:
        version = yield VersionOf(request.API_KEY)
        if version < _OWNER_FROM:
            raise UnsupportedByBroker(
                f"The broker serves CreateDelegationToken v{version}; a token of another owner needs v{_OWNER_FROM}."
            )
        request.owner_principal_type, request.owner_principal_name = _principal(owner)
    response = yield Ask(request)
    check(response.error_code)
    return DelegationToken(
        token_id=response.token_id,
        hmac=bytes(response.hmac),
        owner=f"{response.principal_type}:{response.principal_name}",
        requester=_text(response.token_requester_principal_type, response.token_requester_principal_name),
        renewers=tuple(f"{kind}:{name}" for kind, name in named),
        issued_ms=response.issue_timestamp_ms,
        expires_ms=response.expiry_timestamp_ms,
        max_ms=response.max_timestamp_ms,
    )


def renew(token_hmac: bytes, period_ms: int = -1) -> Call[int]:
    """Let a token end ``period_ms`` from now (at most, and with -1, ``delegation.token.expiry.time.ms``). Returns when it ends.

    KafkaError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH.
    """
    from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

    response = yield Ask(RenewDelegationTokenRequest(hmac=token_hmac, renew_period_ms=period_ms))
    check(response.error_code)
    ends_ms: int = response.expiry_timestamp_ms
    return ends_ms


def expire(token_hmac: bytes, period_ms: int = -1) -> Call[int]:
    """Let a token end ``period_ms`` from now, or remove it at once with a negative period. Returns when it ends.

    KafkaError as for ``renew``.
    """
    from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest

    response = yield Ask(ExpireDelegationTokenRequest(hmac=token_hmac, expiry_time_period_ms=period_ms))
    check(response.error_code)
    ends_ms: int = response.expiry_timestamp_ms
    return ends_ms


def describe(owners: Iterable[str] | None = None) -> Call[list[DelegationToken]]:
    """The tokens that the client's user may see, or those among them that one of ``owners`` owns or may renew. KafkaError."""
    from tidelog.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest

    asked = None if owners is None else [DescribeDelegationTokenOwner(*_principal(each)) for each in owners]
    response = yield Ask(DescribeDelegationTokenRequest(owners=asked))
    check(response.error_code)
    return [
        DelegationToken(
            token_id=each.token_id,
            hmac=bytes(each.hmac),
            owner=f"{each.principal_type}:{each.principal_name}",
            requester=_text(each.token_requester_principal_type, each.token_requester_principal_name),
            renewers=tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers),
            issued_ms=each.issue_timestamp,
            expires_ms=each.expiry_timestamp,
            max_ms=each.max_timestamp,
        )
        for each in response.tokens
    ]


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{text!r} is not a principal: write its type and its name, as in User:alice")
    return kind, name


def _text(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind else ""
