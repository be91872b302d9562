from __future__ import annotations

from typing import Any

import pytest

from tidelog.console.oidc.identity import LEEWAY_S, LoginRefused, identity_of, values_at
from tidelog.console.oidc.settings import OidcSettings

CLAIMS = {"sub": "42", "exp": 1000, "groups": ["staff"]}


def settings(**changes: Any) -> OidcSettings:
    roles = {"staff": ("viewer",), "operators": ("admin", "viewer")}
    return OidcSettings(
        **{"issuer": "https://a.example", "client_id": "c", "roles_claim": ("groups",), "roles": roles, **changes}
    )


def test_values_of_the_claim_give_roles_exactly() -> None:
    found = identity_of(CLAIMS, settings())
    assert (found.name, found.subject, found.roles) == ("42", "42", {"viewer"})
    assert found.until_ms == (1000 + LEEWAY_S) * 1000
    assert identity_of({**CLAIMS, "groups": ["staff", "operators", "x"]}, settings()).roles == {"viewer", "admin"}
    assert identity_of({**CLAIMS, "groups": "staff"}, settings()).roles == {"viewer"}
    for groups in ("staff operators", ["Staff"], ["sta*"], [], [""], None):
        with pytest.raises(LoginRefused) as refused:
            identity_of({**CLAIMS, "groups": groups}, settings())
        assert refused.value.code == "no-role"
    assert identity_of({"sub": "1", "exp": 1}, settings(everyone=("viewer",))).roles == {"viewer"}


def test_a_claim_may_lie_inside_of_others() -> None:
    nested = {**CLAIMS, "realm_access": {"roles": ["staff"]}}
    assert values_at(nested, ("realm_access", "roles")) == ["staff"]
    assert values_at(nested, ("realm_access", "more", "roles")) == []
    assert values_at({"groups": "x"}, ("groups", "roles")) == []
    assert values_at(nested, ()) == []


@pytest.mark.parametrize(
    "claims",
    [{"groups": 5}, {"groups": {"staff": 1}}, {"groups": ["staff", 5]}, {"groups": ["x"] * 1001},
     {"_claim_names": {"groups": "src1"}}],
)  # fmt: skip
def test_a_claim_that_cannot_be_read_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(LoginRefused, match="claim groups"):
        values_at(claims, ("groups",))


@pytest.mark.parametrize("name", [None, "", " ann", "a\nb", "a\x00b", "\ud800", "x" * 201, 5, ["ann"]])
def test_a_name_that_cannot_be_shown_is_refused(name: Any) -> None:
    with pytest.raises(LoginRefused, match="name"):
        identity_of({**CLAIMS, "name": name}, settings(name_claim="name"))


def test_an_address_that_is_not_verified_is_no_name() -> None:
    mail = {**CLAIMS, "email": "ann@example.org"}
    for verified in ({}, {"email_verified": False}, {"email_verified": "true"}):
        with pytest.raises(LoginRefused, match="verified"):
            identity_of({**mail, **verified}, settings(name_claim="email"))
    assert identity_of({**mail, "email_verified": True}, settings(name_claim="email")).name == "ann@example.org"
