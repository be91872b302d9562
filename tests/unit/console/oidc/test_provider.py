"""A provider that answers from a table; the whole way is in tests/unit/console/web/test_oidc_pages.py."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.unit.console.oidc.test_metadata import DOCUMENT, ISSUER, settings
from tidelog.console.oidc.fetching import NoAnswer, Reply
from tidelog.console.oidc.identity import LoginRefused
from tidelog.console.oidc.metadata import Unfit
from tidelog.console.oidc.provider import KEPT_MS, Provider, algorithm
from tidelog.console.oidc.tickets import Tickets

TICKET = Tickets(bytes(32)).begin("t" * 32, "", 0)


class Answers:
    """What the provider answers, and what it was asked."""

    def __init__(self, **changes: Any) -> None:
        self.status = 200
        self.document = {**DOCUMENT, **changes}
        self.asked: list[str] = []

    async def __call__(self, url: str, **_: Any) -> Reply:
        self.asked.append(url)
        return Reply(self.status, "application/json", json.dumps(self.document).encode())


def provider(answers: Answers, now_ms: list[int] | None = None) -> Provider:
    return Provider(settings(), None, answers, lambda: (now_ms or [0])[0])


def test_browsers_are_sent_with_all_that_binds_the_login() -> None:
    url = asyncio.run(
        provider(Answers(authorization_endpoint=f"{ISSUER}/auth?tenant=1")).login_url(TICKET, "https://c.example/back")
    )
    query = dict(parse_qsl(urlsplit(url).query))
    assert (query["tenant"], query["response_type"], query["redirect_uri"]) == ("1", "code", "https://c.example/back")
    assert (query["state"], query["nonce"], query["code_challenge"]) == (TICKET.state, TICKET.nonce, TICKET.challenge)
    assert TICKET.verifier not in url


def test_the_metadata_is_asked_for_once_an_hour_and_by_one_at_a_time() -> None:
    answers, now_ms = Answers(), [0]
    found = provider(answers, now_ms)

    async def job() -> None:
        await asyncio.gather(*(found.metadata() for _ in range(10)))
        now_ms[0] = KEPT_MS - 1
        await found.metadata()
        assert len(answers.asked) == 1
        now_ms[0] = KEPT_MS
        await found.metadata()
        assert len(answers.asked) == 2

    asyncio.run(job())


def test_a_failure_is_not_kept() -> None:
    answers = Answers()
    found = provider(answers)

    async def job() -> None:
        for status, kind in ((503, NoAnswer), (404, Unfit), (302, Unfit)):
            answers.status = status
            with pytest.raises(kind):
                await found.metadata()
        answers.status = 200
        assert (await found.metadata()).token == f"{ISSUER}/token"

    asyncio.run(job())


def test_the_logout_needs_no_request_and_has_no_address_where_none_is_known() -> None:
    found = provider(answers := Answers())
    assert found.logout_url("token", "https://c.example/") is None
    asyncio.run(found.metadata())
    query = dict(parse_qsl(urlsplit(str(found.logout_url(None, "https://c.example/"))).query))
    assert query == {"client_id": "c", "post_logout_redirect_uri": "https://c.example/"}
    assert len(answers.asked) == 1


def test_another_issuer_of_a_redirect_is_refused() -> None:
    found = provider(Answers())
    metadata = asyncio.run(found.metadata())
    found.check_issuer("", metadata)
    found.check_issuer(ISSUER, metadata)
    with pytest.raises(LoginRefused):
        found.check_issuer("https://evil.example", metadata)


@pytest.mark.parametrize("token", ["", "x", "e30.e30.", "bnVsbA.x.y", "W10.x.y", "\udcff.x.y", "W1tb" * 30_000])
def test_what_is_no_token_has_no_algorithm(token: str) -> None:
    assert algorithm(token) == ""
    assert algorithm("eyJhbGciOiJub25lIn0.e30.") == "none"


def test_the_secret_is_in_no_repr() -> None:
    assert "secret" not in repr(Provider(settings(), "secret", Answers(), lambda: 0))
