from __future__ import annotations

from typing import Any

import pytest

from tidelog.console.oidc.id_token import check_token
from tidelog.console.oidc.identity import LEEWAY_S, LoginRefused
from tidelog.console.oidc.settings import OidcSettings

SETTINGS = OidcSettings("https://a.example", "c", everyone=("viewer",))
NOW_S = 1_000_000
CLAIMS = {"iss": "https://a.example", "aud": "c", "sub": "42", "iat": NOW_S, "exp": NOW_S + 60, "nonce": "n"}


def check(**changes: Any) -> None:
    found = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    check_token(found, SETTINGS, "n", NOW_S * 1000)


def test_a_right_token_passes() -> None:
    check()
    check(aud=["c"])
    check(aud=["c", "d"], azp="c")
    check(exp=NOW_S - LEEWAY_S + 5, iat=NOW_S + LEEWAY_S)


@pytest.mark.parametrize(
    "changes",
    [{"iss": "https://a.example/"}, {"iss": ["https://a.example"]}, {"aud": ["d"]}, {"aud": []}, {"aud": {"c": 1}}, {"aud": "cc"},
     {"aud": ["c", "d"]}, {"azp": "d"}, {"exp": NOW_S - LEEWAY_S - 5}, {"exp": "later"}, {"exp": True}, {"exp": float("inf")},
     {"exp": -1}, {"iat": NOW_S + LEEWAY_S + 5}, {"iat": None}, {"nbf": NOW_S + LEEWAY_S + 5}, {"nonce": ""}, {"nonce": "N"},
     {"nonce": ["n"]}, {"nonce": "\ud800"}, {"sub": ""}, {"sub": 42}],
)  # fmt: skip
def test_a_token_that_fails_one_check_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(LoginRefused) as refused:
        check(**changes)
    assert refused.value.code == "failed"


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "exp", "iat", "nonce"])
def test_a_token_without_a_claim_is_refused(name: str) -> None:
    with pytest.raises(LoginRefused):
        check(**{name: None})
