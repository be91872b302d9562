from __future__ import annotations

import asyncio
import json
import threading

import pytest

from tests.unit.console.web.browser import Browser, console, users
from tidelog.console.web.application import host_name
from tidelog.console.web.context import Limits

NOWHERE = "127.0.0.1:1"


def test_every_answer_has_the_headers() -> None:
    async def job(browser: Browser) -> None:
        for path in ("", "c/main/topics", "assets/none.js", "api/v1/session", "api/v1/none", "favicon.ico"):
            headers = (await browser.ask("GET", path)).headers
            assert "script-src 'self'" in headers["content-security-policy"], path
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert "access-control-allow-origin" not in headers
            assert "strict-transport-security" not in headers

    console(NOWHERE, job)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:80", "localhost.evil:8080"])
def test_another_name_is_refused(host: str) -> None:
    """DNS rebinding: a page of evil.example whose name now leads to this machine."""

    async def job(browser: Browser) -> None:
        browser.host = host
        for path in ("", "api/v1/session", "assets/x.js"):
            assert (await browser.ask("GET", path)).status == 421

    console(NOWHERE, job)


def test_names_of_this_machine_are_taken_with_any_port() -> None:
    assert [host_name(each) for each in ("LocalHost:1", "127.0.0.1", "[::1]:8080")] == ["localhost", "127.0.0.1", "[::1]"]

    async def job(browser: Browser) -> None:
        for host in ("localhost", "127.0.0.1:99", "[::1]:8080"):
            browser.host = host
            assert (await browser.get("session")).status == 200

    console(NOWHERE, job)


def test_a_console_below_a_path_is_only_there() -> None:
    async def job(browser: Browser) -> None:
        assert browser.base == "/tools/console/"
        assert (await browser.get("session")).json["base_path"] == "/tools/console/"
        browser.base = "/"
        assert (await browser.get("session")).status == 404
        assert (await browser.ask("GET", "tools/console")).status in (200, 404)

    console(NOWHERE, job, base_path="/tools/console")


def test_problems_are_rfc_9457() -> None:
    async def job(browser: Browser) -> None:
        reply = await browser.get("none")
        assert reply.headers["content-type"].startswith("application/problem+json")
        assert reply.json == {
            "type": "about:blank",
            "title": "Not Found",
            "status": 404,
            "detail": "there is no such path in the API",
            "kafka": None,
            "at": None,
        }
        assert (await browser.ask("DELETE", "api/v1/session")).status == 405
        assert (await browser.ask("POST", "")).status == 405
        assert (await browser.get("clusters/other/topics")).status == 404
        assert (await browser.get("clusters/main/topics/%ff")).status == 400
        assert (await browser.ask("GET", "api/v1/session", query=[("a", "x" * 20_000)])).status == 413

    console(NOWHERE, job)


def test_answers_of_the_api_are_never_kept() -> None:
    async def job(browser: Browser) -> None:
        assert (await browser.get("session")).headers["cache-control"] == "no-store"

    console(NOWHERE, job)


def test_cookies_are_strict_and_hidden_and_bound_to_the_path() -> None:
    async def job(browser: Browser) -> None:
        browser.host = "console.example.org"
        (cookie,) = (await browser.login("ann")).cookies
        for part in ("HttpOnly", "SameSite=strict", "Secure", "Path=/x/"):
            assert part.lower() in cookie.lower()
        reply = await browser.get("session")
        assert "strict-transport-security" in reply.headers
        assert reply.json["user"] == "ann"

    console(NOWHERE, job, users=users(ann=["admin"]), public_url="https://console.example.org/x")


def test_changes_and_refusals_are_audited() -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        await browser.post("clusters/main/topics/orders/delete", {"dry_run": False, "confirm": "orders"})

    console(NOWHERE, job, seen=seen, read_only=True)
    assert len(seen) == 1
    for part in ('"action":"change"', '"outcome":"refused"', '"name":"orders"', '"cluster":"main"', '"address":"127.0.0.1"'):
        assert part in seen[0]


def test_an_origin_that_is_none_is_refused() -> None:
    async def job(browser: Browser) -> None:
        reply = await browser.ask("GET", "api/v1/session", headers={"origin": "http://["})
        assert reply.status == 403

    console(NOWHERE, job)


def test_the_audit_says_what_was_asked_for() -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        await browser.post("clusters/main/transaction/terminate", {"id": "tx-1", "dry_run": False, "confirm": "tx-1"})
        value = {"encoding": "text", "data": "secret"}
        await browser.post("clusters/main/topics/orders/records", {"partition": 3, "value": value, "dry_run": False})
        row = dict.fromkeys(("resource", "name"), "topic") | {
            "pattern": "literal",
            "principal": "User:ann",
            "host": "*",
            "operation": "read",
            "permission": "allow",
        }
        await browser.post("clusters/main/acls", {"entries": [row], "dry_run": False})

    console(NOWHERE, job, seen=seen, read_only=True)
    assert [json.loads(each)["asked"] for each in seen] == [
        '{"id":"tx-1"}',
        '{"partition":3}',
        '{"entries":["allow User:ann from * to read topic topic"]}',
    ]


def test_pages_have_threads_beside_those_of_slow_searches() -> None:
    async def job(browser: Browser) -> None:
        messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

        async def receive() -> dict[str, str]:
            return next(messages)

        async def send(_: object) -> None:
            pass

        await browser.application({"type": "lifespan"}, receive, send)
        limits = Limits()
        meet = threading.Barrier(limits.searches + limits.tails + 5)  # four log-ins and a page
        await asyncio.gather(*(asyncio.to_thread(meet.wait, 20) for _ in range(meet.parties)))

    console(NOWHERE, job)
