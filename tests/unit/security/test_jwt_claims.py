from __future__ import annotations

from typing import Any

import pytest

from tests.unit.security.tokens import NOW_MS, claims
from tidelog.security.jwt_claims import ClaimRules, bearer_of
from tidelog.security.oauthbearer import Bearer, TokenRefused

NOW_S = NOW_MS // 1000
RULES = ClaimRules(audiences=("tidelog", "other"), issuer="https://issuer")


def test_a_valid_token_names_its_user_and_its_end() -> None:
    assert bearer_of(claims(), RULES, NOW_MS) == Bearer("alice", NOW_MS + 60_000)
    assert bearer_of(claims(sub=" bob "), RULES, NOW_MS).name == "bob"
    assert bearer_of(claims(aud=["x", "other"]), RULES, NOW_MS).name == "alice"
    assert bearer_of(claims(exp=NOW_S + 0.5), RULES, NOW_MS).expires_ms == NOW_MS + 500


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": None}, "exp is missing"),
        ({"exp": "soon"}, "exp is no time"),
        ({"exp": True}, "exp is no time"),
        ({"exp": 1e300}, "exp is no time"),
        ({"iat": None}, "iat is missing"),
        ({"exp": NOW_S - 30}, "ended 30000 ms ago"),
        ({"nbf": NOW_S + 31}, "begins in 31000 ms"),
        ({"iat": NOW_S + 61}, "ends before it begins"),
        ({"nbf": NOW_S + 10, "exp": NOW_S + 5}, "ends before it begins"),
        ({"iss": "https://else"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "else"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": [1]}, "aud is neither"),
        ({"sub": None}, "names no user"),
        ({"sub": "  "}, "names no user"),
        ({"sub": 7}, "names no user"),
        ({"sub": "a" * 2000}, "names no user"),
        ({"scope": "a b a"}, "names a scope twice"),
        ({"scope": {"a": 1}}, "scope is neither"),
        ({"scope": ["a", " "]}, "scope is neither"),
    ],
)
def test_another_token_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        bearer_of(claims(**changes), RULES, NOW_MS)


@pytest.mark.parametrize("half", [0xD800, 0xDFFF])
def test_half_of_a_character_is_no_name(half: int) -> None:
    name = "al" + chr(half) + "ice"
    with pytest.raises(TokenRefused) as refused:
        bearer_of(claims(sub=name), RULES, NOW_MS)
    assert "its claim sub holds half of a character" in str(refused.value).encode("ascii", "backslashreplace").decode()
    assert bearer_of(claims(sub="\U0001f512"), RULES, NOW_MS).name == "\U0001f512"


def test_clocks_may_differ_by_the_skew() -> None:
    bearer_of(claims(exp=NOW_S - 29, iat=NOW_S - 60), RULES, NOW_MS)
    bearer_of(claims(nbf=NOW_S + 30), RULES, NOW_MS)
    with pytest.raises(TokenRefused):
        bearer_of(claims(nbf=NOW_S + 1), ClaimRules(skew_ms=0), NOW_MS)


def test_other_claims_may_hold_the_name_and_the_scopes() -> None:
    rules = ClaimRules(name_claim="preferred_username", scope_claim="scp", required_scopes=frozenset({"kafka"}))
    given = claims(sub=None, preferred_username="eve", scp=["read", "kafka"])
    assert bearer_of(given, rules, NOW_MS).name == "eve"
    with pytest.raises(TokenRefused, match="lacks the scope 'kafka'"):
        bearer_of({**given, "scp": "read"}, rules, NOW_MS)


def test_a_token_without_a_signature_may_lack_its_time_of_issue() -> None:
    bearer_of(claims(iat=None), ClaimRules(wants_issue_time=False), NOW_MS)


GROUPED = ClaimRules(groups_claim="groups")


@pytest.mark.parametrize(
    ("value", "groups"),
    [
        (None, set()),
        ([], set()),
        ("staff", {"Group:staff"}),
        ("Domain Users", {"Group:Domain Users"}),
        (["staff", "on call", "staff"], {"Group:staff", "Group:on call"}),
    ],
)
def test_a_claim_names_groups_as_a_text_or_a_list(value: Any, groups: set[str]) -> None:
    assert bearer_of(claims(groups=value), GROUPED, NOW_MS).groups == groups
    assert bearer_of(claims(groups=value), ClaimRules(), NOW_MS).groups == set(), "only where a setting names the claim"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"groups": 7}, "neither a text"),
        ({"groups": {"staff": True}}, "neither a text"),
        ({"groups": ["staff", 7]}, "neither a text"),
        ({"groups": ["staff", ""]}, "not the name of a group"),
        ({"groups": ["*"]}, "not the name of a group"),
        ({"groups": ["g" * 300]}, "characters"),
        ({"groups": [f"g{number}" for number in range(201)]}, "201 groups"),
        ({"_claim_names": {"groups": "src1"}}, "says where to ask"),
    ],
)
def test_a_token_whose_groups_are_not_all_known_is_refused(changes: dict[str, Any], reason: str) -> None:
    """Else a DENY of one of them would not count."""
    with pytest.raises(TokenRefused, match=reason):
        bearer_of(claims(**changes), GROUPED, NOW_MS)
