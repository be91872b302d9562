"""A token issuer for tests: its keys, and tokens that it signs."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, Key, RSAKey

RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
NOW_MS = 1_800_000_000_000


def jwks(*keys: Key, **extra: Any) -> bytes:
    """The document that lists these keys."""
    return json.dumps({"keys": [{**key.as_dict(private=False), **extra} for key in keys]}).encode()


def claims(now_ms: int = NOW_MS, **changes: Any) -> dict[str, Any]:
    """Claims of a token that is valid for a minute; a change to None leaves one out."""
    now_s = now_ms // 1000
    whole = {"sub": "alice", "iat": now_s, "exp": now_s + 60, "iss": "https://issuer", "aud": "tidelog", **changes}
    return {name: value for name, value in whole.items() if value is not None}


def signed(content: dict[str, Any], key: Key = EC, algorithm: str = "ES256", **header: Any) -> str:
    """A token."""
    return jws.serialize_compact({"alg": algorithm, "kid": key.kid, **header}, json.dumps(content), key, algorithms=[algorithm])


def unsigned(content: dict[str, Any], algorithm: str = "none") -> str:
    """A token without a signature."""
    return ".".join(
        [*(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({"alg": algorithm}, content)), ""]
    )
