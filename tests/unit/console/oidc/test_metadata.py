from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.console.oidc.metadata import BASIC, NONE, POST, Metadata, Unfit, location, metadata_of
from tidelog.console.oidc.settings import OidcSettings

ISSUER = "https://a.example/realm"
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
    "end_session_endpoint": f"{ISSUER}/logout",
    "userinfo_endpoint": f"{ISSUER}/userinfo",
}


def settings(**changes: Any) -> OidcSettings:
    return OidcSettings(**{"issuer": ISSUER, "client_id": "c", **changes})


def read(own: OidcSettings | None = None, **changes: Any) -> Metadata:
    found = {name: value for name, value in {**DOCUMENT, **changes}.items() if value is not None}
    return metadata_of(json.dumps(found).encode(), own or settings())


def test_where_it_is() -> None:
    assert location(settings()) == f"{ISSUER}/.well-known/openid-configuration"
    assert location(settings(issuer="https://a.example/")) == "https://a.example/.well-known/openid-configuration"


def test_what_is_needed_is_enough() -> None:
    found = read(end_session_endpoint=None, userinfo_endpoint=None)
    assert (found.authorization, found.method, found.logout, found.userinfo) == (f"{ISSUER}/auth", NONE, None, None)
    assert read(settings(userinfo=True)).userinfo == f"{ISSUER}/userinfo"
    assert read(authorization_response_iss_parameter_supported=True).states_issuer


def test_the_secret_goes_by_what_the_provider_takes() -> None:
    own = settings(secret_file="f")
    assert read(own).method == BASIC
    assert read(own, token_endpoint_auth_methods_supported=[POST, BASIC]).method == BASIC
    assert read(own, token_endpoint_auth_methods_supported=["private_key_jwt", POST]).method == POST
    with pytest.raises(Unfit, match="secret"):
        read(own, token_endpoint_auth_methods_supported=["private_key_jwt"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": "https://evil.example"}, "calls itself"),
        ({"issuer": ISSUER + "/"}, "calls itself"),
        ({"issuer": None}, "calls itself"),
        ({"authorization_endpoint": None}, "authorization_endpoint"),
        ({"token_endpoint": "http://a.example/token"}, "token_endpoint"),
        ({"token_endpoint": "http://127.0.0.1/token"}, "token_endpoint"),
        ({"jwks_uri": "file:///etc/passwd"}, "jwks_uri"),
        ({"jwks_uri": 5}, "jwks_uri"),
        ({"end_session_endpoint": "javascript:alert(1)"}, "end_session_endpoint"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"response_types_supported": ["id_token"]}, "authorization code"),
        ({"id_token_signing_alg_values_supported": ["HS256"]}, "HS256"),
        ({"id_token_signing_alg_values_supported": "ES256"}, "list of texts"),
    ],
)
def test_a_provider_that_does_not_fit_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unfit, match=reason):
        read(**changes)


def test_userinfo_that_is_wanted_must_be_there() -> None:
    with pytest.raises(Unfit, match="userinfo"):
        read(settings(userinfo=True), userinfo_endpoint=None)


@pytest.mark.parametrize("document", [b"", b"[]", b"<html>", b"[" * 100_000, b"\xff"])
def test_what_is_no_document_is_refused(document: bytes) -> None:
    with pytest.raises(Unfit, match="no JSON object"):
        metadata_of(document, settings())
