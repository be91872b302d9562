"""Where tokens come from, by the settings; requests to a token endpoint and its answers."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tidelog.client.oauth import (
    AUTHORITIES,
    CLIENT_ID,
    CLIENT_SECRET,
    HANDLER,
    RETRIEVER,
    SCOPE,
    TEXTS,
    URL,
    URL_ENCODED,
    Grant,
    NoToken,
    OAuth,
    checked,
    grant_request,
    granted,
    life_s,
    oauth_settings,
    refusal,
)
from tidelog.client.settings import KNOWN
from tidelog.model.errors import ConfigError

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
ENDPOINT = {URL: "https://login.example.com/token", CLIENT_ID: "job", CLIENT_SECRET: "hush"}


def test_the_names_are_settings_of_clients() -> None:
    assert {*TEXTS, URL_ENCODED} <= set(KNOWN)


@pytest.mark.parametrize(
    ("given", "jaas", "expected"),
    [
        (ENDPOINT, {}, OAuth(url=ENDPOINT[URL], client_id="job", client_secret="hush")),
        (
            {URL: ENDPOINT[URL], URL_ENCODED: True, AUTHORITIES: "ca.pem"},
            {"clientId": "j", "clientSecret": "h", "scope": "s"},
            OAuth(None, None, ENDPOINT[URL], "j", "h", "s", True, "ca.pem"),
        ),
        (
            ENDPOINT | {SCOPE: "read write", HANDLER: PACKAGE + "OAuthBearerLoginCallbackHandler"},
            {"clientId": "other"},
            OAuth(url=ENDPOINT[URL], client_id="job", client_secret="hush", scope="read write"),
        ),
        ({URL: "file:///a%20b/token", RETRIEVER: PACKAGE + "FileJwtRetriever"}, {}, OAuth(file="/a b/token")),
    ],
)
def test_tokens_come_from_where_the_settings_say(given: dict[str, Any], jaas: dict[str, str], expected: OAuth) -> None:
    assert oauth_settings(given, jaas, None) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url"),
        ({URL: "http://login.example.com/token"}, "an https: address"),
        ({URL: "https://"}, "an https: address"),
        ({URL: "https://login:port/token"}, "an https: address"),
        ({URL: ENDPOINT[URL], CLIENT_ID: "job"}, "it needs .*client.id and .*client.secret"),
        (ENDPOINT | {HANDLER: "com.example.Handler"}, "names a Java class"),
        (ENDPOINT | {RETRIEVER: "com.example.Retriever"}, "must be one of"),
        (ENDPOINT | {RETRIEVER: PACKAGE + "FileJwtRetriever"}, "begins with https:"),
    ],
)
def test_settings_without_a_source_of_tokens_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        oauth_settings(given, {}, None)
    assert "hush" not in str(raised.value)


def test_a_function_makes_tokens_instead_of_an_endpoint() -> None:
    def make() -> str:
        return "t"

    assert oauth_settings({}, {}, make) == OAuth(supply=make)
    with pytest.raises(ConfigError, match="say one of them"):
        oauth_settings(ENDPOINT, {}, make)


def test_a_request_names_the_client_and_the_scope() -> None:
    headers, body = grant_request(OAuth(url="https://x/t", client_id="a b", client_secret="c/d", scope="read write"))
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"a b:c/d"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert body == b"grant_type=client_credentials&scope=read+write"
    headers, body = grant_request(OAuth(url="https://x/t", client_id="a b", client_secret="c/d", url_encoded=True))
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"a+b:c%2Fd"
    assert body == b"grant_type=client_credentials"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"access_token": "a.b.c", "expires_in": 60}, Grant("a.b.c", 60)),
        ({"id_token": "opaque"}, Grant("opaque", None)),
        ({"access_token": "a", "expires_in": True}, Grant("a", None)),
        ({"access_token": "a", "expires_in": "60"}, Grant("a", None)),
    ],
)
def test_a_token_is_read_from_the_answer(answer: dict[str, Any], expected: Grant) -> None:
    assert granted(json.dumps(answer).encode()) == expected


@pytest.mark.parametrize("answer", [b"", b"[]", b'"t"', b"{}", b"\xff", b'{"access_token": 1}', b"[" * 100_000])
def test_an_answer_without_a_token_is_refused(answer: bytes) -> None:
    with pytest.raises(NoToken, match="no access_token"):
        granted(answer)


@pytest.mark.parametrize("text", ["", "a b", "a\x01b", "a" * 70_000, "t\nu", "é"])
def test_a_text_that_is_no_token_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(NoToken) as raised:
        checked(text)
    assert str(raised.value) == "it is not a bearer token (RFC 6750)"


def test_a_file_may_end_with_a_line_break() -> None:
    assert checked("a.b.c==\n") == "a.b.c=="


def test_a_refusal_says_what_the_endpoint_says() -> None:
    document = {"error": "invalid_client", "error_description": "no such client " * 50, "debug": "hush"}
    said = refusal(json.dumps(document).encode())
    assert said.startswith("invalid_client: no such client")
    assert len(said) == 200
    assert refusal(b"<html>") == ""


def test_a_life_is_read_from_the_claim() -> None:
    def jwt(claims: Any) -> str:
        return "e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + ".c2ln"

    assert life_s(jwt({"exp": 160}), 100.0) == 60.0
    assert [life_s(text, 0) for text in (jwt({}), jwt([]), jwt({"exp": "1"}), "opaque", "a.!.b", "a.b.c")] == [None] * 6
