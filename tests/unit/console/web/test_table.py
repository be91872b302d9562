"""Every route, walked from the table: without login, without rights, read-only, without a token, from another site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.console.web.browser import Browser, console, users
from tidelog.console.access.rights import Right
from tidelog.console.web.routing import Route
from tidelog.console.web.table import TABLE

NOWHERE = "127.0.0.1:1"
OFFLINE = {"clusters": 200, "filter/check": 200, "clusters/{c}/moves/stop": 409}
"""What answers without any cluster."""
PROTECTED = [each for each in TABLE if each.right is not None]
CHANGES = [each for each in TABLE if each.method == "POST"]
VALUES: dict[str, str] = {"c": "main", "t": "orders", "p": "0", "offset": "0", "id": "1"}


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


def path(route: Route) -> str:
    return route.path.format(**VALUES)


SAMPLES: dict[str, Any] = {
    "id": "orders",
    "name": "orders",
    "text": "key == 1",
    "q": "a",
    "user": "ann",
    "password": "x",
    "dry_run": True,
    "count": 3,
    "topic": "orders",
    "broker": 1,
    "replication": 2,
    "before": {"0": "1"},
    "set": {"retention.ms": "1"},
    "to": {"kind": "earliest"},
    "entries": [
        {
            "resource": "topic",
            "name": "orders",
            "pattern": "literal",
            "principal": "User:a",
            "host": "*",
            "operation": "read",
            "permission": "allow",
        }
    ],
}


async def asked(browser: Browser, route: Route, **headers: str) -> int:
    """The status of a well-formed request."""
    if route.method == "POST":
        body = {field: SAMPLES[field] for field, param in route.body.items() if param.required or field == "set"}
        return (await browser.post(path(route), body, **headers)).status
    query = [(field, str(SAMPLES[field])) for field, param in route.query.items() if param.required]
    return (await browser.ask("GET", f"api/v1/{path(route)}", query=query, headers=headers)).status


def test_every_change_needs_the_right_to_change_on_something_named() -> None:
    for route in CHANGES:
        if route.path in ("login", "logout"):
            continue
        assert route.right is Right.CHANGE, name(route)
        assert route.about is not None, name(route)
        assert "dry_run" in route.body, name(route)
    assert not [name(each) for each in TABLE if each.method == "GET" and each.right is Right.CHANGE]


def test_only_these_routes_are_open() -> None:
    assert sorted(name(each) for each in TABLE if each.right is None) == [
        "GET login/oidc",
        "GET login/oidc/callback",
        "GET session",
        "POST login",
        "POST logout",
    ]


def test_only_the_way_back_from_a_provider_is_visited_from_other_sites() -> None:
    assert [name(each) for each in TABLE if each.from_elsewhere] == ["GET login/oidc/callback"]


def test_no_path_is_there_twice() -> None:
    assert len({name(each) for each in TABLE}) == len(TABLE)


def test_the_page_of_the_api_names_every_route_and_parameter() -> None:
    page = (Path(__file__).parents[4] / "docs/internals/console-api.md").read_text()
    for route in TABLE:
        assert f"{route.method} {route.path}" in page, name(route)
        for field in (*route.query, *route.body):
            assert field in page, (name(route), field)


def test_without_login_nothing_is_answered() -> None:
    async def job(browser: Browser) -> None:
        for route in PROTECTED:
            assert await asked(browser, route) == 401, name(route)

    console(NOWHERE, job, users=users(ann=["admin"]))


def test_a_user_without_any_right_gets_nothing() -> None:
    async def job(browser: Browser) -> None:
        await browser.login("bob")
        for route in PROTECTED:
            status = await asked(browser, route)
            if "{c}" in route.path:
                assert status in (403, 404), name(route)
            elif route.path != "filter/check":  # which knows nothing of a cluster
                assert (await browser.get(route.path)).data == [], name(route)

    console(NOWHERE, job, users=users(bob=["nothing"]))


def test_a_viewer_changes_nothing_and_reads_no_record() -> None:
    async def job(browser: Browser) -> None:
        await browser.login("vic")
        for route in PROTECTED:
            if route.right is not Right.VIEW:
                assert await asked(browser, route) == 403, name(route)

    console(NOWHERE, job, users=users(vic=["viewer"]))


def test_a_role_for_some_names_has_nothing_of_others_or_of_the_cluster() -> None:
    async def job(browser: Browser) -> None:
        await browser.login("olga")
        VALUES["t"] = SAMPLES["id"] = SAMPLES["name"] = "payments"
        try:
            for route in PROTECTED:
                if route.about is not None:
                    assert await asked(browser, route) == 403, name(route)
        finally:
            VALUES["t"] = SAMPLES["id"] = SAMPLES["name"] = "orders"

    console(NOWHERE, job, users=users(olga=["orders"]))


def test_read_only_refuses_every_change_of_everyone() -> None:
    async def job(browser: Browser) -> None:
        for route in CHANGES:
            if route.right is Right.CHANGE:
                assert await asked(browser, route) == 403, name(route)

    console(NOWHERE, job, read_only=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-csrf-token": ""},
        {"x-csrf-token": "x" * 43},
        {"x-csrf-token": "\xff"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
def test_a_change_from_elsewhere_or_without_the_token_is_refused(headers: dict[str, str]) -> None:
    async def job(browser: Browser) -> None:
        for route in CHANGES:
            assert await asked(browser, route, **headers) == 403, name(route)

    console(NOWHERE, job)


def test_a_form_of_another_site_cannot_even_be_sent_as_json() -> None:
    async def job(browser: Browser) -> None:
        for route in CHANGES:
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
                assert (await browser.post(path(route), {}, **{"content-type": kind})).status == 400, name(route)

    console(NOWHERE, job)


def test_unknown_parameters_and_fields_are_refused() -> None:
    async def job(browser: Browser) -> None:
        for route in TABLE:
            if route.from_elsewhere:
                continue
            if route.method == "GET":
                assert (await browser.get(path(route), ("surprise", "1"))).status == 400, name(route)
            else:
                reply = await browser.post(path(route), {"surprise": 1})
                assert reply.status == 400, name(route)
                assert "surprise" in reply.json["detail"]

    console(NOWHERE, job)


def test_a_body_that_is_too_large_is_refused() -> None:
    async def job(browser: Browser) -> None:
        for route in CHANGES:
            reply = await browser.post(path(route), {"surprise": "x" * (route.largest_body + 1)})
            assert reply.status == 413, name(route)

    console(NOWHERE, job)


def test_a_cluster_that_cannot_be_reached_is_an_answer_for_every_page() -> None:
    async def job(browser: Browser) -> None:
        for route in PROTECTED:
            status = await asked(browser, route)
            assert status == OFFLINE.get(route.path, 503), name(route)

    console(NOWHERE, job)
