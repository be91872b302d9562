from __future__ import annotations

from typing import Any

import pytest

from tidelog.console.oidc.settings import ALGORITHMS, OidcSettings, is_safe_url, settings_of
from tidelog.model.errors import ConfigError

LEAST = {"issuer": "https://login.example/realm", "client_id": "c", "everyone": ["viewer"]}
ROLES = {"viewer", "admin"}


def made(**changes: Any) -> OidcSettings:
    found = {name: value for name, value in {**LEAST, **changes}.items() if value is not None}
    return settings_of(found, "users.json, oidc", ROLES)


def test_what_is_left_out_has_a_safe_default() -> None:
    found = made()
    assert (found.name_claim, found.scopes, found.secret_file, found.session_minutes) == ("sub", ("openid",), None, None)
    assert found.algorithms == ALGORITHMS
    assert not {"none", "HS256", "HS384", "HS512"} & set(found.algorithms)
    assert made(roles_claim="groups", roles={"g": ["admin"]}).roles_claim == ("groups",)
    assert made(roles_claim=["a", "b"], roles={"g": ["admin"]}).roles_claim == ("a", "b")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": None}, "issuer is missing"),
        ({"client_id": None}, "client_id is missing"),
        ({"client_id": 5}, "client_id must be a text"),
        ({"client_id": " "}, "client_id must be a text"),
        ({"issuer": "http://login.example"}, "must be like https"),
        ({"issuer": "https://login.example/?a=1"}, "must be like https"),
        ({"issuer": "https://ann:secret@login.example"}, "must be like https"),
        ({"issuer": "login.example"}, "must be like https"),
        ({"client_secret_file": ""}, "client_secret_file must be a text"),
        ({"everyone": None}, "no one could log in"),
        ({"everyone": []}, "no one could log in"),
        ({"everyone": ["root"]}, "no role root"),
        ({"roles": {"g": ["admin"]}}, "belong together"),
        ({"roles_claim": "groups"}, "belong together"),
        ({"roles_claim": "groups", "roles": {"g": ["root"]}}, "no role root"),
        ({"roles_claim": "groups", "roles": {"g": "admin"}}, "list of texts"),
        ({"roles_claim": "groups", "roles": ["admin"]}, "must be an object"),
        ({"roles_claim": 5, "roles": {"g": ["admin"]}}, "list of texts"),
        ({"scopes": ["email"]}, "must have openid"),
        ({"algorithms": ["none"]}, "none is not accepted"),
        ({"algorithms": ["HS256"]}, "HS256 is not accepted"),
        ({"algorithms": []}, "there is none"),
        ({"session_minutes": 0}, "session_minutes"),
        ({"session_minutes": 1441}, "session_minutes"),
        ({"session_minutes": True}, "session_minutes"),
        ({"userinfo": "yes"}, "true or false"),
        ({"clientid": "c"}, "'clientid' is unknown"),
    ],
)
def test_a_login_that_is_half_configured_is_refused_with_what_is_missing(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"users\.json, oidc.*{reason}"):
        made(**changes)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ConfigError, match="JSON object"):
        settings_of([], "users.json, oidc", ROLES)


@pytest.mark.parametrize(
    ("url", "over_http", "safe"),
    [
        ("https://a.example/x?y=1", False, True),
        ("http://127.0.0.1:8080/x", True, True),
        ("http://localhost/x", True, True),
        ("http://127.0.0.1/x", False, False),
        ("http://a.example/x", True, False),
        ("https://user@a.example", True, False),
        ("https://a.example/#x", True, False),
        ("https://a.example:x/", True, False),
        ("https:///x", True, False),
        ("https://a.example/\r\nX: y", True, False),
        ("https://ä.example/", True, False),
        ("file:///etc/passwd", True, False),
        ("https://" + "a" * 2000, True, False),
        (None, True, False),
        (["https://a.example"], True, False),
    ],
)
def test_only_encrypted_addresses_and_this_machine_are_safe(url: Any, over_http: bool, safe: bool) -> None:
    assert is_safe_url(url, over_http=over_http) is safe
