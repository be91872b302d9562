"""The checks of an ID token (OpenID Connect Core, 3.1.3.7) whose signature is right."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, Final

from joserfc.errors import JoseError
from joserfc.jwt import JWTClaimsRegistry

from tidelog.console.oidc.identity import LEEWAY_S, LoginRefused, is_name
from tidelog.console.oidc.settings import OidcSettings

MAX_SUBJECT: Final = 255
_LATEST_S: Final = 1e12


def check_token(claims: Mapping[str, Any], settings: OidcSettings, nonce: str, now_ms: int) -> None:
    """LoginRefused unless the token is of this issuer, for this client and login, and valid now. Its signature was checked."""
    registry = JWTClaimsRegistry(
        now=now_ms // 1000,
        leeway=LEEWAY_S,
        iss={"essential": True, "value": settings.issuer},
        aud={"essential": True, "value": settings.client_id},
        exp={"essential": True},
        iat={"essential": True},
        sub={"essential": True},
    )
    try:
        registry.validate(dict(claims))
    except (JoseError, ValueError, TypeError) as error:
        raise LoginRefused("failed", f"the ID token is refused: {error}") from None
    shown = claims.get("nonce")
    if not isinstance(shown, str) or not hmac.compare_digest(shown.encode("utf-8", "surrogatepass"), nonce.encode()):
        raise LoginRefused("failed", "the ID token is of another login: its nonce is wrong")
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    party = claims.get("azp")
    if party != settings.client_id and (party is not None or len(audiences) > 1):
        raise LoginRefused("failed", "the ID token was given to another client: its azp is not ours")
    if not 0 <= claims["exp"] < _LATEST_S:
        raise LoginRefused("failed", "the ID token's exp is no time")
    if not is_name(claims["sub"], MAX_SUBJECT):
        raise LoginRefused("failed", "the ID token's sub is no text that can be used")
