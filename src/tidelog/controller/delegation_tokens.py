"""Delegation tokens (KIP-48, KIP-373): created, renewed and expired, as records of the metadata log; old ones are removed.

The requester is the client's principal, also where a broker forwarded its request. Whether it may ask for tokens at all, and for
those of other owners, is asked before (``broker.apis.cluster.delegation_tokens``). Errors are in the responses, as in Kafka.
"""

from __future__ import annotations

from itertools import islice

from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import DelegationToken
from tidelog.metadata.snapshot import token_record
from tidelog.metadata.supported_features import DELEGATION_TOKENS_MV
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import random_uuid, uuid_to_text
from tidelog.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from tidelog.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from tidelog.security.delegation_tokens import TokenRules, is_expired, may_use
from tidelog.security.principal import USER, KafkaPrincipal

MAX_REMOVALS = 1000
"""Tokens that one step removes."""
MAX_PRINCIPALS_BYTES = 32_767
"""Of a token's owner, requester and renewers together. Apache Kafka reads no longer text in a record."""
_LATEST_MS = 2**63 - 1


def create_token(
    decision: Decision, request: CreateDelegationTokenRequest, owner: KafkaPrincipal, requester: KafkaPrincipal, now_ms: int
) -> ControllerResult:
    """A new token. ``max_lifetime_ms`` of the request can only shorten ``delegation.token.max.lifetime.ms``.

    Errors: DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION (metadata.version below 3.6-IV2), INVALID_PRINCIPAL_TYPE for a
    renewer that is not a user. KafkaError INVALID_REQUEST for principals of more than 32,767 bytes.
    """
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
    )
    try:
        rules = _rules(decision)
        renewers = [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.renewers]
        if any(each.type != USER for each in renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except KafkaError as error:
        response.error_code = error.code
        return ControllerResult(response)
    token = DelegationToken(
        owner=str(owner),
        requester=str(requester),
        renewers=tuple(map(str, renewers)),
        issue_timestamp=now_ms,
        max_timestamp=_after(now_ms, _shorter(request.max_lifetime_ms, rules.max_lifetime_ms)),
        expiration_timestamp=0,
    )
    if sum(len(text.encode()) for text in (token.owner, token.requester, *token.renewers)) > MAX_PRINCIPALS_BYTES:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The owner and the renewers of a delegation token have at most {MAX_PRINCIPALS_BYTES} bytes together.",
        )
    token = token._replace(expiration_timestamp=min(token.max_timestamp, _after(now_ms, rules.expiry_ms)))
    token_id = uuid_to_text(random_uuid(decision.rng))
    response.issue_timestamp_ms = now_ms
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.max_timestamp_ms = token.max_timestamp
    response.token_id = token_id
    response.hmac = rules.secrets.hmac_of(token_id)
    return ControllerResult.of(response, [token_record(token_id, token)])


def renew_token(
    decision: Decision, request: RenewDelegationTokenRequest, requester: KafkaPrincipal, now_ms: int
) -> ControllerResult:
    """Moves the end of a token, never past its ``max_timestamp``. ``renew_period_ms``: at most, and by default,
    ``delegation.token.expiry.time.ms``.

    Errors: as for ``create_token``, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH for
    a client that is neither the owner nor a renewer.
    """
    try:
        rules = _rules(decision)
        token_id, token = _token(decision, rules, bytes(request.hmac))
        if is_expired(token, now_ms):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_may_use(token, requester)
    except KafkaError as error:
        return ControllerResult(RenewDelegationTokenResponse(error_code=error.code))
    ends_ms = min(token.max_timestamp, _after(now_ms, _shorter(request.renew_period_ms, rules.expiry_ms)))
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=ends_ms)
    return ControllerResult.of(response, [token_record(token_id, token._replace(expiration_timestamp=ends_ms))])


def expire_token(
    decision: Decision, request: ExpireDelegationTokenRequest, requester: KafkaPrincipal, now_ms: int
) -> ControllerResult:
    """Ends a token ``expiry_time_period_ms`` from now, never after its ``max_timestamp``; at once for a negative one.

    Errors: as for ``renew_token``; an expired token can still be removed.
    """
    try:
        rules = _rules(decision)
        token_id, token = _token(decision, rules, bytes(request.hmac))
        _check_may_use(token, requester)
        if request.expiry_time_period_ms < 0:
            response = ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms)
            return ControllerResult.of(response, [RemoveDelegationTokenRecord(token_id=token_id)])
        if is_expired(token, now_ms):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    except KafkaError as error:
        return ControllerResult(ExpireDelegationTokenResponse(error_code=error.code))
    ends_ms = min(token.max_timestamp, _after(now_ms, request.expiry_time_period_ms))
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=ends_ms)
    return ControllerResult.of(response, [token_record(token_id, token._replace(expiration_timestamp=ends_ms))])


def remove_expired(decision: Decision, now_ms: int) -> ControllerResult:
    """Removes some tokens that have ended; the response says whether there are more."""
    expired = (token_id for token_id, token in decision.image.tokens.items() if is_expired(token, now_ms))
    found = list(islice(expired, MAX_REMOVALS + 1))
    records = (RemoveDelegationTokenRecord(token_id=token_id) for token_id in found[:MAX_REMOVALS])
    return ControllerResult.of(len(found) > MAX_REMOVALS, records)


def _rules(decision: Decision) -> TokenRules:
    rules = decision.settings.tokens
    if rules is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if decision.image.metadata_version < DELEGATION_TOKENS_MV:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return rules


def _token(decision: Decision, rules: TokenRules, shown: bytes) -> tuple[str, DelegationToken]:
    token_id = rules.secrets.find(decision.image.tokens, shown)
    if token_id is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token_id, decision.image.tokens[token_id]


def _check_may_use(token: DelegationToken, requester: KafkaPrincipal) -> None:
    if not may_use(token, str(requester)):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _shorter(asked_ms: int, most_ms: int) -> int:
    """The period that is asked for, within the setting; the setting itself for none."""
    return min(asked_ms, most_ms) if asked_ms > 0 else most_ms


def _after(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _LATEST_MS)
