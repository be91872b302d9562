"""The claims of a JSON Web Token (RFC 7519): whether they name a user, and whether the token is for this cluster and for now.

The rules are those of Apache Kafka's BrokerJwtValidator (KIP-768, KIP-1139). The signature is checked before, by
``security.jwt_signature``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidelog.security.oauthbearer import Bearer, TokenRefused
from tidelog.security.principal import group_principals

MAX_NAME_CHARACTERS = 1024


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What a token must say. Kafka's settings ``sasl.oauthbearer.*``."""

    audiences: tuple[str, ...] = ()
    """The token names at least one of these; empty: any token does."""
    issuer: str | None = None
    """None: any."""
    skew_ms: int = 30_000
    name_claim: str = "sub"
    scope_claim: str = "scope"
    wants_issue_time: bool = True
    required_scopes: frozenset[str] = frozenset()
    groups_claim: str | None = None
    """The claim that names the user's groups; None: groups of tokens do not count."""


def bearer_of(claims: Mapping[str, Any], rules: ClaimRules, now_ms: int) -> Bearer:
    """The user that the claims name and the end of the token. TokenRefused, with the reason."""
    expires_ms = _time_ms(claims, "exp", required=True)
    issued_ms = _time_ms(claims, "iat", required=rules.wants_issue_time)
    begins_ms = _time_ms(claims, "nbf", required=False)
    assert expires_ms is not None
    if expires_ms + rules.skew_ms <= now_ms:
        raise TokenRefused(f"the token ended {now_ms - expires_ms} ms ago")
    if begins_ms is not None and begins_ms - rules.skew_ms > now_ms:
        raise TokenRefused(f"the token begins in {begins_ms - now_ms} ms")
    if any(begin is not None and begin > expires_ms for begin in (issued_ms, begins_ms)):
        raise TokenRefused("the token ends before it begins")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("the token is of another issuer (sasl.oauthbearer.expected.issuer)")
    if rules.audiences and not set(_texts(claims, "aud")) & set(rules.audiences):
        raise TokenRefused("the token is for another audience (sasl.oauthbearer.expected.audience)")
    scopes = _texts(claims, rules.scope_claim)
    if len(set(scopes)) != len(scopes):
        raise TokenRefused(f"the claim {rules.scope_claim} names a scope twice")
    if missing := sorted(rules.required_scopes.difference(scopes)):
        raise TokenRefused(f"the token lacks the scope {missing[0]!r}")
    name = claims.get(rules.name_claim)
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARACTERS:
        raise TokenRefused(f"the token names no user: its claim {rules.name_claim} is missing, blank, or no text")
    if not _is_utf8(name):
        raise TokenRefused(f"the token names no user: its claim {rules.name_claim} holds half of a character")
    return Bearer(name.strip(), expires_ms, _groups(claims, rules.groups_claim))


def _is_utf8(text: str) -> bool:
    """JSON can hold one half of a pair of surrogates, which no record, request or log can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _groups(claims: Mapping[str, Any], claim: str | None) -> frozenset[str]:
    """The principals of the groups in a claim: one text or a list of texts."""
    if claim is None:
        return frozenset()
    elsewhere = claims.get("_claim_names")
    if isinstance(elsewhere, dict) and claim in elsewhere:
        # A "distributed claim" (OpenID Connect): the issuer leaves out a list that is long for a token.
        raise TokenRefused(f"the token does not hold the claim {claim} but says where to ask for it")
    value = claims.get(claim, [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise TokenRefused(f"the claim {claim} is neither a text nor a list of texts")
    try:
        return group_principals(names)
    except ValueError as problem:
        raise TokenRefused(f"the claim {claim}: {problem}") from None


def _time_ms(claims: Mapping[str, Any], name: str, *, required: bool) -> int | None:
    """A time in seconds since the epoch, as ms."""
    value = claims.get(name)
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise TokenRefused(f"the claim {name} is {'missing' if value is None else 'no time'}")
    return int(value * 1000)


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    """A claim that is one text, with spaces between its parts where it is a scope, or a list of texts."""
    value = claims.get(name)
    if value is None:
        return []
    if isinstance(value, str):
        return [value] if name == "aud" else value.split()
    if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
        raise TokenRefused(f"the claim {name} is neither a text nor a list of texts")
    return [each.strip() for each in value]
