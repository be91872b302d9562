from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.unit.console.web.browser import Browser, console, users
from tidelog.console.web.context import Limits
from tidelog.testing import Broker, Message

TOPIC = "clusters/main/topics/orders"
RECORDS = f"{TOPIC}/records"


@pytest.fixture(autouse=True)
def empty(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2)


def offsets(lines: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(line["partition"], line["offset"]) for line in lines if line["kind"] == "record"]


def test_every_mode_and_its_pages(broker: Broker) -> None:
    broker.produce("orders", *(f'{{"n":{number}}}' for number in range(10)))

    async def job(browser: Browser) -> None:
        lines = await browser.stream(RECORDS, limit="4")
        assert lines[0]["kind"] == "begin"
        assert lines[0]["partitions"][0] == {"partition": 0, "start": "0", "end": "10", "stable": "10"}
        assert [offset for _, offset in offsets(lines)] == ["9", "8", "7", "6"]
        assert (lines[-1]["kind"], lines[-1]["reason"]) == ("end", "limit")
        more = await browser.stream(RECORDS, limit="4", cursor=lines[-1]["cursor"])
        assert [offset for _, offset in offsets(more)] == ["5", "4", "3", "2"]
        assert [at for _, at in offsets(await browser.stream(RECORDS, mode="oldest", limit="2"))] == ["0", "1"]
        lines = await browser.stream(RECORDS, mode="offset", offset="8", partition="0")
        assert [at for _, at in offsets(lines)] == ["8", "9"]
        assert lines[-1] == {**lines[-1], "reason": "end", "cursor": None}
        assert offsets(await browser.stream(RECORDS, mode="time", time="99999999999999")) == []
        assert len(offsets(await browser.stream(RECORDS, mode="time", time="0"))) == 10

    console(broker.bootstrap_servers, job)


def test_a_filter_finds_by_field_and_says_what_it_has_read(broker: Broker) -> None:
    for first in range(0, 200, 20):
        broker.produce("orders", *(f'{{"n":{first + number}}}' for number in range(20)))

    async def job(browser: Browser) -> None:
        lines = await browser.stream(RECORDS, filter="value.n >= 17 and value.n < 20")
        assert [json.loads(line["value"]["text"])["n"] for line in lines if line["kind"] == "record"] == [19, 18, 17]
        assert (lines[-1]["reason"], lines[-1]["scanned"], lines[-1]["hits"]) == ("end", "200", 3)
        wrong = await browser.get(RECORDS, filter="value.n = 1")
        assert (wrong.status, wrong.json["at"]) == (400, 8)

    console(broker.bootstrap_servers, job)


def test_what_a_query_may_not_say(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        for query in (
            {"mode": "sideways"},
            {"mode": "offset"},
            {"mode": "time"},
            {"limit": "0"},
            {"limit": "501"},
            {"partition": "2"},
            {"partition": "-1"},
            {"cursor": "on_0-1"},
            {"mode": "tail", "cursor": "on_0-1"},
            {"value": "pickle"},
            {"aborted": "yes"},
        ):
            assert (await browser.get(RECORDS, **query)).status == 400, query
        assert (await browser.get("clusters/main/topics/none/records")).status == 404

    console(broker.bootstrap_servers, job)


def test_hostile_records_are_shown_as_they_are(broker: Broker) -> None:
    hostile = ["<script>alert(1)</script>", b"\xff\xfe\x00", None, "", '{"id": 9007199254740993}', "x" * 100_000]
    broker.produce("orders", *hostile)
    broker.produce("orders", Message(b"v", headers={"h": b"\xff"}))

    async def job(browser: Browser) -> None:
        found = [line for line in await browser.stream(RECORDS, mode="oldest") if line["kind"] == "record"]
        shown = [line["value"] if line["value"] is None else line["value"]["text"] for line in found]
        assert shown[:5] == [hostile[0], "fffe00", None, "", hostile[4]]
        assert (len(shown[5]), found[5]["value"]["cut"]) == (16_384, True)
        assert found[1]["value"]["refused"][0]["decoder"] == "json"

    console(broker.bootstrap_servers, job)


def test_a_live_tail_shows_what_comes_and_ends_with_its_reader(broker: Broker) -> None:
    broker.produce("orders", "old")
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        state = browser.application._state

        def until(line: dict[str, Any]) -> bool:
            if line["kind"] == "begin":
                assert state.tails.open == 1
                broker.produce("orders", "new")
            return line["kind"] == "record"

        lines = await browser.stream(RECORDS, until, mode="tail")
        assert [line["value"]["text"] for line in lines if line["kind"] == "record"] == ["new"]
        assert state.tails.open == 0

    console(broker.bootstrap_servers, job, seen=seen)
    assert len(seen) == 1
    assert '"action":"read"' in seen[0]
    assert '"mode":"tail"' in seen[0]


def test_too_many_searches_are_refused_and_nothing_leaks(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        state = browser.application._state
        with state.searches.enter():
            assert (await browser.get(RECORDS)).status == 429
        for query in ({"mode": "offset"}, {"partition": "7"}, {}):
            await browser.get(RECORDS, **query)
            assert state.searches.open == 0

    console(broker.bootstrap_servers, job, limits=Limits(searches=1))


def test_one_record_by_its_link(broker: Broker) -> None:
    broker.produce("orders", "a", "b" * 100_000, "c")
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        found = (await browser.get(f"{RECORDS}/0/1")).data
        assert (found["record"]["offset"], found["previous"], found["next"], found["reason"]) == ("1", "0", "2", None)
        assert (found["record"]["value"]["cut"], found["record"]["value"]["size"]) == (True, 100_000)
        whole = (await browser.get(f"{RECORDS}/0/1", full="1")).data["record"]["value"]
        assert (whole["cut"], len(whole["text"])) == (False, 100_000)
        last = (await browser.get(f"{RECORDS}/0/2")).data
        assert (last["next"], last["previous"]) == (None, "1")
        missing = (await browser.get(f"{RECORDS}/0/3")).data
        assert missing["record"] is None
        assert "ends at 3" in missing["reason"]
        raw = await browser.get(f"{RECORDS}/0/1/raw")
        assert raw.body == b"b" * 100_000
        assert raw.headers["content-type"] == "application/octet-stream"
        assert raw.headers["content-disposition"].startswith("attachment")
        assert (await browser.get(f"{RECORDS}/0/1/raw", part="key")).status == 404
        for place in ("0/x", "x/0", "0/-1", "9/0", "0/99999999999999999999"):
            assert (await browser.get(f"{RECORDS}/{place}")).status in (400, 404)

    console(broker.bootstrap_servers, job, seen=seen)
    assert all('"action":"read"' in each for each in seen)
    assert len(seen) == 5


def test_deleted_records_say_so(broker: Broker) -> None:
    broker.produce("orders", "a", "b", "c")

    async def job(browser: Browser) -> None:
        body = {"before": {"0": "2"}, "dry_run": False, "confirm": "orders"}
        assert (await browser.post(f"{TOPIC}/truncate", body)).status == 200
        assert "below the log start 2" in (await browser.get(f"{RECORDS}/0/0")).data["reason"]

    console(broker.bootstrap_servers, job)


def test_masked_parts_are_nowhere(broker: Broker) -> None:
    broker.create_topic("people")
    broker.produce("people", Message(b'{"mail":"a@b.example","n":1}', headers={"auth": b"token-1"}))
    records = "clusters/main/topics/people/records"

    async def job(browser: Browser) -> None:
        await browser.login("vera")
        replies = [await browser.get(records), await browser.get(f"{records}/0/0"), await browser.get(f"{records}/0/0", full="1")]
        for decoder in ("text", "hex", "base64", "json"):
            replies.append(await browser.get(records, value=decoder))
        for reply in replies:
            assert reply.status == 200
            assert "a@b.example" not in reply.text
            assert "token-1" not in reply.text
            assert b"a@b.example".hex() not in reply.text
            assert '"masked":true' in reply.text
        assert (await browser.get(f"{records}/0/0/raw")).status == 403
        for guess in ('value.mail == "a@b.example"', '"a@b"', 'value contains "example"', 'header["auth"] == "token-1"'):
            assert offsets((await browser.get(records, filter=guess)).lines) == [], guess
        assert (await browser.get("clusters/main/topics/people")).data["masked"] is True
        await browser.login("ann")
        assert "a@b.example" in (await browser.get(records)).text

    roles, name = users(ann=["admin"], vera=["reader"])
    found = json.loads(roles)
    found["roles"]["reader"] = [{"rights": ["view", "payload"], "topics": ["*"]}]
    console(broker.bootstrap_servers, job, users=(json.dumps(found), name))


def test_names_of_headers_are_cut_like_their_values(broker: Broker) -> None:
    broker.produce("orders", Message(b"v", headers={"n" * 100_000: b"x"}))

    async def job(browser: Browser) -> None:
        (found,) = [line for line in await browser.stream(RECORDS) if line["kind"] == "record"]
        assert found["headers"][0]["name"] == "n" * 1024
        assert found["size"] == 2

    console(broker.bootstrap_servers, job)


def test_a_header_with_dots_in_its_name_is_masked(broker: Broker) -> None:
    broker.create_topic("people")
    broker.produce("people", Message(b"{}", headers={"app.auth": b"token-1", "app": b"ok"}))
    text, name = users(vera=["orders"])
    found = json.loads(text)
    found["roles"]["orders"][0]["topics"] = ["*"]
    found["masks"] = [{"topics": ["people"], "paths": ["headers.app.auth"]}]

    async def job(browser: Browser) -> None:
        await browser.login("vera")
        assert "token-1" not in (await browser.get("clusters/main/topics/people/records")).text

    console(broker.bootstrap_servers, job, users=(json.dumps(found), name))


def test_a_stream_ends_with_its_session(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await browser.login("ann")
        cookies, csrf = dict(browser.cookies), browser.csrf

        def until(line: dict[str, Any]) -> bool:
            if line["kind"] == "begin":
                other = Browser(browser.application, cookies=cookies, csrf=csrf)
                leaving.append(asyncio.ensure_future(other.post("logout", {})))
                leaving[0].add_done_callback(lambda _: broker.produce("orders", "secret"))
            return line["kind"] == "record"

        leaving: list[Any] = []
        lines = await browser.stream(RECORDS, until, mode="tail")
        assert offsets(lines) == []
        assert (lines[-1]["kind"], lines[-1]["reason"]) == ("end", "failed")

    console(broker.bootstrap_servers, job, users=users(ann=["admin"]))
