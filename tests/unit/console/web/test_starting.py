from __future__ import annotations

from typing import Any

import pytest

from tests.unit.console.web.browser import users
from tidelog.console.web.starting import ClusterOption, Options, base_of, bound, checked, hosts_of, state_of, url_of, warnings
from tidelog.model.errors import ConfigError

MAIN = ClusterOption("main", "localhost:1", {})
USERS = users(ann=["admin"])
TLS = {"certificate": "cert.pem", "key": "key.pem"}


def options(**changes: Any) -> Options:
    return Options(**{"clusters": [MAIN], **changes})


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"listen": "0.0.0.0:8080"}, "--users"),
        ({"listen": ":8080"}, "--users"),
        ({"listen": "[::]:8080"}, "--users"),
        ({"listen": "10.1.2.3:8080", **TLS}, "--users"),
        ({"listen": "0.0.0.0:8080", "users": USERS}, "--public-url"),
        ({"listen": "0.0.0.0:8080", "users": USERS, "public_url": "http://c.example"}, "--tls-certificate"),
        ({"certificate": "cert.pem"}, "belong together"),
        ({"clusters": []}, "--bootstrap-server"),
        ({"clusters": [MAIN, MAIN]}, "given once"),
        ({"clusters": [ClusterOption("../x", "h:1", {})]}, "a-z"),
        ({"listen": "localhost"}, "host:port"),
        ({"base_path": "/a b"}, "--base-path"),
        ({"base_path": "/api"}, "--base-path"),
    ],
)
def test_what_is_half_secured_or_does_not_fit_is_refused_with_the_remedy(changes: dict[str, Any], remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy.replace("[", r"\[")):
        checked(options(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"listen": "localhost:0"},
        {"listen": "[::1]:8080"},
        {"listen": "0.0.0.0:8080", "users": USERS, "public_url": "https://c.example"},
        {"listen": "0.0.0.0:8080", "users": USERS, "public_url": "http://c.example", **TLS},
    ],
)
def test_what_is_safe_is_taken(changes: dict[str, Any]) -> None:
    assert checked(options(**changes))[1] in (0, 8080)


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, False),
        ({"users": USERS}, False),
        ({"users": USERS, "public_url": "http://localhost:8080/x"}, False),
        ({"users": USERS, "public_url": "https://c.example", "listen": "0.0.0.0:8443", **TLS}, False),
        ({"users": USERS, "public_url": "https://c.example"}, True),
        ({"users": USERS, "public_url": "https://c.example", "proxies": ("127.0.0.1",)}, False),
        ({"public_url": "https://c.example"}, False),
    ],
)
def test_a_proxy_that_is_not_named_is_warned_of(changes: dict[str, Any], warned: bool) -> None:
    assert ["--proxy ADDRESS" in each for each in warnings(options(**changes))] == [True] * warned


def test_paths_and_names() -> None:
    assert base_of(options(base_path="x/y/")) == "/x/y/"
    assert base_of(options(public_url="https://c.example/x")) == "/x/"
    assert base_of(options()) == "/"
    assert hosts_of(options(), "127.0.0.1") == {"localhost", "127.0.0.1", "[::1]"}
    assert hosts_of(options(public_url="https://C.example:444/x"), "0.0.0.0") == {"c.example"}
    for url in ("ftp://x", "c.example", "https://", "https://c.example/?a=1"):
        with pytest.raises(ConfigError, match="--public-url"):
            hosts_of(options(public_url=url), "127.0.0.1")


def test_cookies_are_secure_where_browsers_speak_tls() -> None:
    assert not state_of(options()).secure
    assert state_of(options(public_url="https://c.example", users=USERS)).secure


def test_a_console_has_its_own_token_which_is_no_part_of_its_repr() -> None:
    first, second = state_of(options()), state_of(options())
    assert first.csrf != second.csrf
    assert first.csrf not in repr(first)


def test_an_audit_file_that_cannot_be_written_is_an_error(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="--audit-file"):
        state_of(options(audit_file=str(tmp_path / "none" / "audit.jsonl")))


def test_a_port_that_is_taken_is_an_error_and_a_free_one_has_a_url() -> None:
    with bound("127.0.0.1", 0) as socket:
        port = socket.getsockname()[1]
        with pytest.raises(ConfigError, match="--listen"):
            bound("127.0.0.1", port)
        assert url_of(options(base_path="/x"), port) == f"http://127.0.0.1:{port}/x/"
    assert url_of(options(public_url="https://c.example/x"), 1) == "https://c.example/x"
