"""Delegation tokens: of the client's own, of others, by a secret that fits none, and those that it sees."""

from __future__ import annotations

from tests.security_matrix.case import Case, plain
from tidelog.protocol.api_keys import ApiKey

OWNERS = {"exists": "open-owner", "hidden": "hidden-owner"}
"""Users for whom there is a token before the first cell."""


def _owned(name: str) -> dict[str, str]:
    return {"principal_type": "User", "principal_name": name}


def cases() -> list[Case]:
    """All of delegation tokens. Tokens that cells make have other owners than those that are described."""
    own = {"renewers": [_owned("renewer")], "max_lifetime_ms": -1}
    owner = {"owner_principal_type": "User", "owner_principal_name": "open-other"}
    described = [
        plain(ApiKey.DESCRIBE_DELEGATION_TOKEN, f"owner {state}", owners=[_owned(name)]) for state, name in OWNERS.items()
    ]
    others = {"versions": (3,)}
    return [
        plain(ApiKey.CREATE_DELEGATION_TOKEN, "own", **own),
        plain(ApiKey.CREATE_DELEGATION_TOKEN, "of another user", **own, **owner, options=others),
        plain(
            ApiKey.CREATE_DELEGATION_TOKEN,
            "of a hidden user",
            **own,
            **{**owner, "owner_principal_name": "hidden-other"},
            options=others,
        ),
        plain(
            ApiKey.CREATE_DELEGATION_TOKEN,
            "renewed by a group",
            **{**own, "renewers": [{"principal_type": "Group", "principal_name": "g"}]},
        ),
        plain(ApiKey.RENEW_DELEGATION_TOKEN, "missing", hmac=b"guess", renew_period_ms=-1),
        plain(ApiKey.EXPIRE_DELEGATION_TOKEN, "missing", hmac=b"guess", expiry_time_period_ms=-1),
        *described,
        plain(ApiKey.DESCRIBE_DELEGATION_TOKEN, "owner missing", owners=[_owned("open-nobody")]),
        plain(ApiKey.DESCRIBE_DELEGATION_TOKEN, "no owners", owners=[]),
    ]
