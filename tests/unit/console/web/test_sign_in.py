from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.console.web.browser import users
from tidelog.console.access.users import Users
from tidelog.console.web import sign_in, starting
from tidelog.console.web.sign_in import SignIn, sign_in_of
from tidelog.console.web.starting import ClusterOption, Options, state_of
from tidelog.model.errors import ConfigError

OIDC = {"issuer": "https://a.example", "client_id": "c", "everyone": ["viewer"]}


def text(**changes: Any) -> str:
    return json.dumps({**json.loads(users()[0]), "oidc": {**OIDC, **changes}})


def made(url: str | None = "https://c.example/kafka", base: str = "/kafka/") -> SignIn | None:
    return sign_in_of(Users(text(), "users.json"), url, base, lambda: 0)


def test_browsers_come_back_to_the_public_address() -> None:
    found = made()
    assert found is not None
    assert (found.home, found.redirect) == ("https://c.example/kafka/", "https://c.example/kafka/api/v1/login/oidc/callback")
    at_root = made("http://localhost:8080", "/")
    assert at_root is not None
    assert at_root.home == "http://localhost:8080/"


def test_without_a_provider_there_is_none() -> None:
    assert sign_in_of(None, None, "/", lambda: 0) is None
    assert sign_in_of(Users(*users(ann=["admin"])), None, "/", lambda: 0) is None


@pytest.mark.parametrize(("url", "reason"), [(None, "needs --public-url"), ("http://c.example", "needs https")])
def test_a_login_without_a_safe_address_to_come_back_to_is_refused(url: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        made(url)


def test_the_console_does_not_start_half_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    def options(file: str, **more: Any) -> Options:
        return Options([ClusterOption("main", "localhost:1", {})], users=(file, "users.json"), **more)

    with pytest.raises(ConfigError, match="--public-url"):
        state_of(options(text()))
    with pytest.raises(ConfigError, match="client_secret_file"):
        state_of(options(text(client_secret_file="/no/such/file"), public_url="https://c.example"))
    assert state_of(options(text(), public_url="https://c.example")).sign_in is not None
    monkeypatch.setattr(starting, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'tidelog\[console,oidc\]'"):
        state_of(options(text(), public_url="https://c.example"))


def test_failed_returns_of_one_address_are_slowed_and_right_ones_are_not() -> None:
    found = made()
    assert found is not None
    for _ in range(3 * sign_in.BURST):
        assert found.attempt("192.0.2.1", 0)
        found.succeeded("192.0.2.1")
    assert [found.attempt("192.0.2.1", 0) for _ in range(sign_in.BURST + 1)].count(False) == 1
    assert found.attempt("192.0.2.2", 0)
    assert found.attempt("192.0.2.1", sign_in.REFILL_MS)
