"""Login by a provider, the whole way: the provider is one of our own on this machine, signing with the library's own keys."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.oidc_provider import CLIENT, SECRET, OidcProvider
from tests.unit.console.web.browser import Browser, Reply, console, users
from tidelog.console.oidc import fetching
from tidelog.console.oidc.provider import LEAST_BETWEEN_MS
from tidelog.console.web import sign_in
from tidelog.console.web.context import COOKIE
from tidelog.console.web.oidc_pages import TICKET

NOWHERE = "127.0.0.1:1"
HOME = "http://localhost:8080/"
ANN = {"sub": "42", "groups": ["staff", "others"]}
Job = Callable[[Browser], Awaitable[Any]]


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    with OidcProvider(dict(ANN)) as found:
        yield found


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text(SECRET + "\n")
    return str(tmp_path / "secret")


def run(provider: OidcProvider, secret: str | None, job: Job, seen: list[str] | None = None, **changes: Any) -> None:
    """The console with this provider and a user bob, who has a password."""
    file = {**json.loads(users(bob=["admin"])[0]), "oidc": provider.settings(secret, **changes)}
    console(NOWHERE, job, seen=seen, users=(json.dumps(file), "users.json"), public_url=HOME)


async def begun(browser: Browser, place: str = "") -> str:
    """Where the browser is sent to."""
    reply = await browser.ask("GET", "api/v1/login/oidc", query=[("to", place)] if place else [])
    assert reply.status == 303, reply.text
    return reply.headers["location"]


async def back(browser: Browser, sent: dict[str, str]) -> Reply:
    """The browser arrives from the provider's page."""
    query = [each for each in sent.items() if each[0] != "location"]
    return await browser.ask("GET", "api/v1/login/oidc/callback", query=query, headers={"sec-fetch-site": "cross-site"})


async def logged_in(browser: Browser, provider: OidcProvider, place: str = "") -> Reply:
    return await back(browser, await asyncio.to_thread(provider.visit, await begun(browser, place)))


async def refused(browser: Browser, reply: Reply, code: str) -> None:
    """The browser has no session, and learns why in one word."""
    assert (reply.status, reply.headers["location"]) == (303, f"{HOME}?login={code}")
    assert COOKIE not in browser.cookies
    assert (await browser.session())["logged_in"] is False


def test_a_person_logs_in_gets_roles_and_logs_out(provider: OidcProvider, secret: str) -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        found = await browser.session()
        assert (found["login"], found["passwords"], found["oidc"]) == (True, True, {"title": "Example"})
        reply = await logged_in(browser, provider, "main/topics/a%2Fb?filter=x#top")
        assert (reply.status, reply.headers["location"]) == (303, HOME + "main/topics/a%2Fb?filter=x#top")
        assert TICKET not in browser.cookies
        cookie = next(each for each in reply.cookies if each.startswith(COOKIE))
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        found = await browser.session()
        assert (found["user"], found["rights"]) == ("42", ["view"])
        assert (await browser.post("clusters/main/topics", {"name": "t", "dry_run": True})).status == 403
        ended = (await browser.post("logout", {})).json
        assert ended["logged_in"] is False
        url = urlsplit(ended["logout_url"])
        query = dict(parse_qsl(url.query))
        assert (url.path, query["client_id"], query["post_logout_redirect_uri"]) == ("/logout", CLIENT, HOME)
        assert query["id_token_hint"].count(".") == 2
        assert (await browser.login("bob")).json["user"] == "bob"
        assert (await browser.post("logout", {})).json["logout_url"] is None

    run(provider, secret, job, seen, title="Example")
    events = [json.loads(each) for each in seen]
    assert [(each["action"], each["outcome"], each["user"], each.get("by"), each.get("subject")) for each in events[:3]] == [
        ("login", "done", "42", "oidc", "42"),
        ("change", "refused", "42", None, None),
        ("logout", "done", "42", None, None),
    ]
    assert provider.asked == ["/.well-known/openid-configuration", "/token", "/keys"]
    assert "id_token" not in "".join(seen)


@pytest.mark.parametrize(("method", "has_secret"), [("client_secret_basic", True), ("client_secret_post", True), ("none", False)])
def test_the_client_logs_in_as_the_provider_takes_it(provider: OidcProvider, secret: str, method: str, has_secret: bool) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": [method]}

    async def job(browser: Browser) -> None:
        assert (await logged_in(browser, provider)).headers["location"] == HOME

    run(provider, secret if has_secret else None, job)


@pytest.mark.parametrize(
    ("change", "header"),
    [
        ({"nonce": "of another login"}, {}),
        ({"nonce": None}, {}),
        ({"aud": "another client"}, {}),
        ({"aud": None}, {}),
        ({"aud": [CLIENT, "another"]}, {}),
        ({"aud": [CLIENT, "another"], "azp": "another"}, {}),
        ({"azp": "another"}, {}),
        ({"iss": "https://evil.example"}, {}),
        ({"iss": None}, {}),
        ({"exp": 1}, {}),
        ({"exp": time.time() - 3600}, {}),
        ({"exp": None}, {}),
        ({"exp": "tomorrow"}, {}),
        ({"exp": float("nan")}, {}),
        ({"exp": 1e300}, {}),
        ({"iat": time.time() + 3600}, {}),
        ({"nbf": time.time() + 3600}, {}),
        ({"sub": None}, {}),
        ({"sub": ["42"]}, {}),
        ({"sub": "x" * 300}, {}),
        ({"sub": "a\nb"}, {}),
        ({"groups": {"staff": True}}, {}),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, {}),
        ({}, {"alg": "none"}),
        ({}, {"alg": "HS256"}),
    ],
)
def test_an_id_token_that_fails_a_check_logs_no_one_in(
    provider: OidcProvider, secret: str, change: dict[str, Any], header: dict[str, Any]
) -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        provider.change, provider.header = change, header
        await refused(browser, await logged_in(browser, provider), "failed")
        provider.change, provider.header = {}, {}
        assert (await logged_in(browser, provider)).headers["location"] == HOME

    run(provider, secret, job, seen)
    assert [json.loads(each)["outcome"] for each in seen] == ["refused", "done"]


def test_an_algorithm_that_the_settings_leave_out_is_not_taken(provider: OidcProvider, secret: str) -> None:
    async def refusing(browser: Browser) -> None:
        await refused(browser, await begun_and_back(browser), "unavailable")  # its metadata says so already
        provider.metadata = {"id_token_signing_alg_values_supported": None}
        await refused(browser, await logged_in(browser, provider), "failed")

    async def begun_and_back(browser: Browser) -> Reply:
        return await browser.ask("GET", "api/v1/login/oidc")

    run(provider, secret, refusing, algorithms=["RS256"])


def test_a_key_that_is_not_the_providers_signs_nothing(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        right, forged = provider.key, provider.new_key()
        provider.key, provider.header = forged, {"kid": right.kid}
        await refused(browser, await logged_in(browser, provider), "failed")
        provider.header = {}
        await refused(browser, await logged_in(browser, provider), "failed")

    run(provider, secret, job)


def test_a_new_key_is_taken_and_made_up_ones_cause_few_requests(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        state = browser.application._state
        now_ms = state.now_ms()
        state.sign_in.provider._now_ms = lambda: now_ms
        await logged_in(browser, provider)
        provider.key = provider.new_key()
        provider.published.append(provider.key)
        await refused(Browser(browser.application), await logged_in(Browser(browser.application), provider), "failed")
        now_ms += LEAST_BETWEEN_MS
        assert (await logged_in(Browser(browser.application), provider)).headers["location"] == HOME
        assert provider.asked.count("/keys") == 2
        provider.key = provider.new_key()
        for _ in range(5):
            await logged_in(Browser(browser.application), provider)
        assert provider.asked.count("/keys") == 2

    run(provider, secret, job)


def test_a_redirect_of_another_login_or_browser_is_refused(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        sent = await asyncio.to_thread(provider.visit, await begun(browser))
        stranger = Browser(browser.application)
        await refused(stranger, await back(stranger, sent), "expired")  # login CSRF: the code is of somebody else's login
        await begun(stranger)
        await refused(stranger, await back(stranger, sent), "expired")
        for state in ("", "x" * 43, "\udcff", sent["state"] + "x"):
            other = Browser(browser.application, cookies=dict(browser.cookies))
            await refused(other, await back(other, {**sent, "state": state.encode("utf-8", "replace").decode()}), "expired")
        forged = Browser(browser.application, cookies={TICKET: browser.cookies[TICKET][:-1] + "_"})
        await refused(forged, await back(forged, sent), "expired")
        assert provider.asked == ["/.well-known/openid-configuration"]
        assert (await back(browser, sent)).headers["location"] == HOME

    run(provider, secret, job)


def test_a_code_that_was_used_is_refused_here_and_by_the_provider(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        sent = await asyncio.to_thread(provider.visit, await begun(browser))
        ticket = dict(browser.cookies)
        assert (await back(browser, sent)).headers["location"] == HOME
        again = Browser(browser.application, cookies=ticket)
        await refused(again, await back(again, sent), "expired")
        assert provider.asked.count("/token") == 1
        other = Browser(browser.application)
        fresh = await asyncio.to_thread(provider.visit, await begun(other))
        await refused(other, await back(other, {**fresh, "code": sent["code"]}), "failed")
        assert provider.asked.count("/token") == 2

    run(provider, secret, job)


def test_a_login_that_took_too_long_is_refused(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        state = browser.application._state
        sent = await asyncio.to_thread(provider.visit, await begun(browser))
        later = state.now_ms() + 601_000
        state.now_ms = lambda: later
        await refused(browser, await back(browser, sent), "expired")

    run(provider, secret, job)


@pytest.mark.parametrize("stated", ["https://evil.example", ""])
def test_a_redirect_of_another_issuer_is_refused_before_the_code_goes_anywhere(
    provider: OidcProvider, secret: str, stated: str
) -> None:
    async def job(browser: Browser) -> None:
        sent = await asyncio.to_thread(provider.visit, await begun(browser))
        await refused(browser, await back(browser, {**sent, "iss": stated}), "failed")
        assert "/token" not in provider.asked

    run(provider, secret, job)


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\evil.example", "a\\..\\..", "javascript:alert(1)", "../x",
     "a/%2e%2e/b", "%2f/evil.example", "\t//evil.example", "a\r\nSet-Cookie: x=1", "api/v1/login/oidc", "x" * 1500, "a//b"],
)  # fmt: skip
def test_no_login_ends_on_another_site_or_path(provider: OidcProvider, secret: str, place: str) -> None:
    async def job(browser: Browser) -> None:
        reply = await logged_in(browser, provider, place)
        assert (reply.status, reply.headers["location"]) == (303, HOME)

    run(provider, secret, job)


def test_the_redirect_uri_is_that_of_the_public_url_whatever_the_request_says(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        browser.host = "127.0.0.1:9999"
        headers = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
        reply = await browser.ask("GET", "api/v1/login/oidc", headers=headers)
        query = dict(parse_qsl(urlsplit(reply.headers["location"]).query))
        assert query["redirect_uri"] == HOME + "api/v1/login/oidc/callback"

    run(provider, secret, job)


def test_a_login_cannot_be_begun_by_another_site(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        reply = await browser.ask("GET", "api/v1/login/oidc", headers={"sec-fetch-site": "cross-site"})
        assert reply.status == 403

    run(provider, secret, job)


def test_without_a_role_there_is_no_login_and_a_refusal_of_the_provider_is_one(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        for groups in ([], ["strangers"], ["STAFF"], None):
            provider.change = {"groups": groups}
            await refused(browser, await logged_in(browser, provider), "no-role")
        provider.change, provider.refuses = {}, "access_denied"
        await refused(browser, await logged_in(browser, provider), "denied")

    run(provider, secret, job)


def test_a_name_of_the_users_file_is_no_name_for_others(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        provider.person = {**ANN, "preferred_username": "bob"}
        await refused(browser, await logged_in(browser, provider), "failed")
        provider.person = {**ANN, "preferred_username": "anna"}
        await logged_in(browser, provider)
        assert (await browser.session())["user"] == "anna"

    run(provider, secret, job, name_claim="preferred_username")


def test_a_session_ends_with_its_token_or_after_the_minutes_that_are_set(provider: OidcProvider, secret: str) -> None:
    def job_for(lasts_ms: int) -> Job:
        async def job(browser: Browser) -> None:
            state = browser.application._state
            await logged_in(browser, provider)
            now_ms = state.now_ms()
            state.now_ms = lambda: now_ms + lasts_ms - 20_000
            assert (await browser.session())["logged_in"] is True
            state.now_ms = lambda: now_ms + lasts_ms + 60_000
            assert (await browser.session())["logged_in"] is False
            assert (await browser.get("clusters/main/topics")).status == 401

        return job

    run(provider, secret, job_for(300_000))
    run(provider, secret, job_for(3_600_000), session_minutes=60)


def test_claims_of_userinfo_count_where_they_are_about_the_same_person(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        provider.change = {"groups": None}
        await logged_in(browser, provider)
        assert (await browser.session())["rights"] == ["view"]
        await browser.post("logout", {})
        provider.change = {"groups": None, "sub": "43"}
        await refused(browser, await logged_in(browser, provider), "failed")

    run(provider, secret, job, userinfo=True)


def test_a_provider_that_is_down_answers_nonsense_or_too_much_costs_only_the_login(
    provider: OidcProvider, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def job(browser: Browser) -> None:
        for status, body, code in (
            (200, b"", "failed"),
            (200, b"[" * 100_000, "failed"),
            (200, b"<html>", "failed"),
            (200, b'{"id_token": 5}', "failed"),
            (200, b'{"id_token": "a.b.c"}', "failed"),
            (200, b'{"id_token": "' + b"x" * 100_000 + b'"}', "failed"),
            (500, b"{}", "failed"),
            (200, b"x" * (fetching.MAX_BYTES + 1), "unavailable"),
        ):
            provider.answer = (status, body)
            await refused(browser, await logged_in(browser, provider), code)
        assert (await browser.login("bob")).status == 200

    monkeypatch.setattr(sign_in, "BURST", 100)
    run(provider, secret, job)
    with OidcProvider({}) as gone:
        pass

    async def down(browser: Browser) -> None:
        reply = await browser.ask("GET", "api/v1/login/oidc")
        await refused(browser, reply, "unavailable")
        assert (await browser.login("bob")).status == 200

    run(gone, secret, down)


def test_log_ins_that_wait_for_the_provider_are_bounded(
    provider: OidcProvider, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "MOST_AT_A_TIME", 1)
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        sent = await asyncio.to_thread(provider.visit, await begun(browser))
        with browser.application._state.sign_in.gate.enter():
            await refused(browser, await browser.ask("GET", "api/v1/login/oidc"), "busy")
            await refused(browser, await back(browser, sent), "expired")  # the refusal took the ticket
        assert await begun(browser)

    run(provider, secret, job, seen)
    assert len(seen) == 1


def test_returns_that_fail_are_slowed_by_address(provider: OidcProvider, secret: str) -> None:
    async def job(browser: Browser) -> None:
        for _ in range(sign_in.BURST):
            await refused(browser, await back(browser, {"code": "x", "state": "y"}), "expired")
        await refused(browser, await back(browser, {"code": "x", "state": "y"}), "busy")

    run(provider, secret, job)


def test_without_a_provider_both_pages_say_so() -> None:
    async def job(browser: Browser) -> None:
        for path in ("login/oidc", "login/oidc/callback"):
            assert (await browser.get(path)).status == 409
        assert (await browser.session())["oidc"] is None

    console(NOWHERE, job, users=users(bob=["admin"]))
