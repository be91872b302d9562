from __future__ import annotations

import asyncio

import pytest

from tests.unit.console.web.browser import PASSWORD, Browser, console, users
from tidelog.console.web.context import MOST_LOGINS, PROOFS
from tidelog.http.guesses import ADDRESS_BURST, FREE_FAILURES

NOWHERE = "127.0.0.1:1"


def test_without_users_there_is_no_login() -> None:
    async def job(browser: Browser) -> None:
        found = await browser.session()
        assert (found["login"], found["logged_in"], found["user"]) == (False, True, None)
        assert found["rights"] == ["view", "payload", "change"]
        assert found["clusters"] == [{"id": "main", "bootstrap": NOWHERE}]
        assert (await browser.post("login", {"user": "a", "password": "b"})).status == 409

    console(NOWHERE, job)


def test_login_and_logout() -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        found = await browser.session()
        assert (found["logged_in"], found["rights"], found["clusters"]) == (False, [], [])
        before = browser.csrf
        reply = await browser.login("vic")
        assert reply.status == 200
        assert reply.json["rights"] == ["view"]
        assert browser.csrf != before
        kept = dict(browser.cookies)
        assert (await browser.post("logout", {})).json["logged_in"] is False
        assert browser.cookies == {}
        browser.cookies = kept
        assert (await browser.session())["logged_in"] is False

    console(NOWHERE, job, users=users(vic=["viewer"]), seen=seen)
    assert [("login" in each, "logout" in each) for each in seen] == [(True, False), (False, True)]
    assert PASSWORD not in "".join(seen)


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer_and_then_wait() -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        wrong = await browser.login("vic", "wrong")
        unknown = await browser.login("eve", "wrong")
        assert (wrong.status, wrong.text) == (unknown.status, unknown.text)
        assert wrong.status == 401
        for _ in range(FREE_FAILURES - 1):
            assert (await browser.login("vic", "wrong")).status == 401
        waiting = await browser.login("vic")
        assert waiting.status == 429
        assert int(waiting.headers["retry-after"]) >= 1
        assert browser.cookies == {}

    console(NOWHERE, job, users=users(vic=["viewer"]), seen=seen)
    assert all('"outcome":"refused"' in each for each in seen)


def test_one_address_locks_no_name_out_for_others_and_is_slowed_over_many_names() -> None:
    seen: list[str] = []

    async def tried(browser: Browser, name: str, password: str, address: str) -> int:
        body = {"user": name, "password": password}
        return (await browser.post("login", body, **{"x-forwarded-for": f"made-up, {address}"})).status

    async def job(browser: Browser) -> None:
        browser.application._state.now_ms = lambda: 1_800_000_000_000  # on a busy machine an attempt would come free meanwhile
        for _ in range(FREE_FAILURES):
            assert await tried(browser, "vic", "wrong", "192.0.2.1") == 401
        assert await tried(browser, "vic", PASSWORD, "192.0.2.1") == 429
        for number in range(ADDRESS_BURST - FREE_FAILURES):
            assert await tried(browser, f"n{number}", "wrong", "192.0.2.1") == 401
        assert await tried(browser, "another", "wrong", "192.0.2.1") == 429
        assert await tried(browser, "vic", PASSWORD, "192.0.2.2") == 200

    console(NOWHERE, job, users=users(vic=["viewer"]), seen=seen, proxies=("127.0.0.1",))
    assert '"address":"192.0.2.1"' in seen[0]
    assert '"address":"192.0.2.2"' in seen[-1]


def test_a_token_of_another_session_changes_nothing() -> None:
    async def job(browser: Browser) -> None:
        await browser.login("ann")
        other = Browser(browser.application, cookies={})
        await other.login("bob")
        browser.csrf = other.csrf
        assert (await browser.post("logout", {})).status == 403

    console(NOWHERE, job, users=users(ann=["admin"], bob=["viewer"]))


def test_a_filter_is_checked_as_it_is_typed() -> None:
    async def job(browser: Browser) -> None:
        assert (await browser.get("filter/check", text="key == 1")).data == {"ok": True, "error": None, "at": None}
        found = (await browser.get("filter/check", text="key = 1")).data
        assert (found["ok"], found["at"]) == (False, 4)

    console(NOWHERE, job)


def test_many_log_ins_at_once_wait_for_their_turn_and_shut_no_one_else_out() -> None:
    async def tried(browser: Browser, name: str, password: str, address: str) -> int:
        return (await browser.post("login", {"user": name, "password": password}, **{"x-forwarded-for": address})).status

    async def job(browser: Browser) -> None:
        wrong = [tried(browser, f"n{number}", "wrong", "192.0.2.1") for number in range(ADDRESS_BURST)]
        *refused, right = await asyncio.gather(*wrong, tried(browser, "vic", PASSWORD, "192.0.2.2"))
        assert (set(refused), right) == ({401}, 200)

    assert ADDRESS_BURST > 2 * PROOFS
    console(NOWHERE, job, users=users(vic=["viewer"]), proxies=("127.0.0.1",))


def test_log_ins_that_wait_are_bounded_and_few_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    running = 0

    async def looked(*_: object) -> bool:
        nonlocal running
        running += 1
        together.append(running)
        await asyncio.sleep(0)
        running -= 1
        return False

    async def job(browser: Browser) -> None:
        monkeypatch.setattr("asyncio.to_thread", looked)
        tries = [
            browser.post("login", {"user": f"n{number}", "password": "wrong"}, **{"x-forwarded-for": f"192.0.2.{number}"})
            for number in range(MOST_LOGINS + 20)
        ]
        answers = [each.status for each in await asyncio.gather(*tries)]
        assert (answers.count(401), answers.count(429)) == (MOST_LOGINS, 20)

    console(NOWHERE, job, users=users(vic=["viewer"]), proxies=("127.0.0.1",))
    assert (len(together), max(together)) == (MOST_LOGINS, PROOFS)


def test_guesses_at_once_are_no_more_than_one_after_the_other() -> None:
    async def job(browser: Browser) -> None:
        answers = [each.status for each in await asyncio.gather(*(browser.login("vic", "wrong") for _ in range(30)))]
        assert (answers.count(401), answers.count(429)) == (FREE_FAILURES, 30 - FREE_FAILURES)

    console(NOWHERE, job, users=users(vic=["viewer"]))
