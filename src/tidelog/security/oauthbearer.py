"""SASL OAUTHBEARER (RFC 7628, KIP-255), the server's side: one message with a token.

A token that is refused is not an error of SASL yet: the server answers with a small JSON text, the client acknowledges it with
one byte, and only then does the exchange fail. Clients rely on these three steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tidelog.security.principal import USER, KafkaPrincipal, with_groups
from tidelog.security.sasl import Authenticated, AuthenticationFailed

REFUSED = '{"status":"invalid_token"}'
"""The answer to a token that is not accepted. It says nothing about the reason, which is in the node's log."""
MALFORMED = "the OAUTHBEARER message cannot be read"
MAX_TOKEN_CHARACTERS = 64 * 1024
MAX_MESSAGE_BYTES = 2 * MAX_TOKEN_CHARACTERS
"""Of a first message: the token, and what stands around it."""
MAX_PAIRS = 100
"""Of a first message; ``auth`` and a few extensions."""
_ACKNOWLEDGED = b"\x01"
_FIRST = re.compile(r"n,(?:a=(?P<as>[^,]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)*)\x01")
# Possessive: 128 KiB of spaces without a token would be tried from each of them.
_BEARER = re.compile(r"bearer ++(?P<token>[-A-Za-z0-9._~+/]+=*)", re.IGNORECASE)


class TokenRefused(Exception):
    """The token is not accepted; the text is the reason, for the log."""


class Bearer(NamedTuple):
    """What a token says that is accepted."""

    name: str
    expires_ms: int
    """When the token ends, in ms since the epoch."""
    groups: frozenset[str] = frozenset()
    """Principals of the groups that the token names."""


TokenCheck = Callable[[str], Bearer]
"""The content of a token that is accepted; TokenRefused otherwise."""


class OAuthBearerServer:
    """One exchange."""

    def __init__(self, check: TokenCheck) -> None:
        self._check = check
        self._refused: str | None = None
        self.outcome: Authenticated | None = None

    def answer(self, token: bytes) -> bytes:
        """Empty after a token that is accepted; ``REFUSED`` after another one, and AuthenticationFailed with the message after
        that. AuthenticationFailed at once for a message that cannot be read."""
        if self._refused is not None:
            acknowledged = "" if token == _ACKNOWLEDGED else ", and the client did not acknowledge that"
            raise AuthenticationFailed(REFUSED, self._refused + acknowledged)
        bearer_token, acts_as = _read(token)
        try:
            bearer = self._check(bearer_token)
        except TokenRefused as refused:
            self._refused = f"OAUTHBEARER: {refused}"
            return REFUSED.encode()
        if acts_as not in ("", bearer.name):
            raise AuthenticationFailed(MALFORMED, f"{bearer.name[:100]!r} asks to act as {acts_as[:100]!r}")
        principal = with_groups(KafkaPrincipal(USER, bearer.name), bearer.groups)
        self.outcome = Authenticated(principal, bearer.expires_ms)
        return b""


def _read(message: bytes) -> tuple[str, str]:
    """The token, and the user that the client asks to act as ("" for none)."""
    if len(message) > MAX_MESSAGE_BYTES:
        raise AuthenticationFailed(MALFORMED, f"an OAUTHBEARER message of {len(message)} bytes")
    try:
        first = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        first = None
    if first is None:
        raise AuthenticationFailed(MALFORMED, "an OAUTHBEARER message that is not as in RFC 7628")
    if first["pairs"].count("\x01") > MAX_PAIRS:
        raise AuthenticationFailed(MALFORMED, f"an OAUTHBEARER message with more than {MAX_PAIRS} pairs")
    pairs = [each.partition("=")[::2] for each in first["pairs"].split("\x01") if each]
    values = [value for name, value in pairs if name == "auth"]
    bearer = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    if bearer is None or len(bearer["token"]) > MAX_TOKEN_CHARACTERS:
        raise AuthenticationFailed(MALFORMED, "an OAUTHBEARER message without exactly one bearer token")
    return bearer["token"], (first["as"] or "").replace("=2C", ",").replace("=3D", "=")
