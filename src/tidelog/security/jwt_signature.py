"""Signatures of JSON Web Tokens: which key of the issuer signed a token, and whether it did (RFC 7515, RFC 7517).

Only asymmetric algorithms count: with a symmetric one, or with none, everyone who knows the public key could sign. ``joserfc``,
which belongs to the extra ``oauth``, does the mathematics.
"""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key

from tidelog.security.oauthbearer import TokenRefused

ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms that are accepted, and the type of their keys."""
NO_TOKEN = "the token is not a JSON Web Token of three parts"
MAX_KEYS = 100
MAX_KEY_ID_CHARACTERS = 1000
_REGISTRY = jws.JWSRegistry(algorithms=list(ALGORITHMS))


class UnknownKey(TokenRefused):
    """The issuer's keys, as this node has them, lack the key of the token. The issuer may have a new one."""


class IssuerKeys:
    """The public keys of an issuer, as a JWKS document lists them."""

    def __init__(self, document: bytes) -> None:
        """ValueError when this is no such document, or has no usable key."""
        try:
            listed = json.loads(document)
        except RecursionError:
            raise ValueError("the JWKS document is nested too deeply") from None
        entries = listed.get("keys") if isinstance(listed, dict) else None
        if not isinstance(entries, list) or len(entries) > MAX_KEYS:
            raise ValueError(f"a JWKS document is an object with at most {MAX_KEYS} entries in the list 'keys'")
        self._keys = [(each, key) for each in entries if isinstance(each, dict) and (key := _public(each)) is not None]
        if not self._keys:
            raise ValueError("the JWKS document has no RSA, EC or OKP key for signatures")

    def __len__(self) -> int:
        return len(self._keys)

    def claims(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that one of the keys signed. TokenRefused; UnknownKey when no key fits."""
        header = _part(token, 0)
        algorithm, key_id = header.get("alg"), header.get("kid")
        kind = ALGORITHMS.get(algorithm) if isinstance(algorithm, str) else None
        if kind is None:
            raise TokenRefused(f"the token is signed by the algorithm {str(algorithm)[:20]!r}, which is not accepted")
        if key_id is not None and (not isinstance(key_id, str) or len(key_id) > MAX_KEY_ID_CHARACTERS):
            raise TokenRefused("the token's key id is no short text")
        fitting = [
            key
            for entry, key in self._keys
            if entry["kty"] == kind and entry.get("alg") in (None, algorithm) and key_id in (None, entry.get("kid"))
        ]
        if not fitting:
            raise UnknownKey(f"the issuer has no key {str(key_id)[:100]!r} for {algorithm}")
        for key in fitting:
            if (payload := _signed(token, key, str(algorithm))) is not None:
                return _object(payload)
        raise TokenRefused("the signature of the token is wrong")


def unsecured_claims(token: str) -> Mapping[str, Any]:
    """The claims of a token without a signature (``alg`` is ``none``), for tests. TokenRefused."""
    if _part(token, 0).get("alg") != "none" or token.rpartition(".")[2]:
        raise TokenRefused("the token is signed, but this listener takes tokens without a signature")
    return _part(token, 1)


def _public(entry: Mapping[str, Any]) -> Key | None:
    """The key of an entry; None for one that is for something else, or cannot be read."""
    if entry.get("kty") not in set(ALGORITHMS.values()) or entry.get("use") not in (None, "sig"):
        return None
    try:
        return import_key(dict(entry))
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _signed(token: str, key: Key, algorithm: str) -> bytes | None:
    """What the key signed; None when it did not sign this."""
    try:
        return jws.deserialize_compact(token, key, algorithms=[algorithm], registry=_REGISTRY).payload
    except (JoseError, ValueError, TypeError, RecursionError):
        return None


def _part(token: str, index: int) -> dict[str, Any]:
    """The header (0) or the claims (1) of a token of three parts."""
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenRefused(NO_TOKEN)
    try:
        return _object(urlsafe_b64decode(parts[index] + "=" * (-len(parts[index]) % 4)))
    except (ValueError, binascii.Error):
        raise TokenRefused(NO_TOKEN) from None


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TokenRefused(NO_TOKEN)
    return found
