from __future__ import annotations

from typing import Any

import pytest

from tests.unit.console.web.browser import Browser, console
from tidelog.console.web import topic_changes
from tidelog.testing import Broker

TOPICS = "clusters/main/topics"


@pytest.fixture(autouse=True)
def empty(broker: Broker) -> None:
    broker.reset()


async def plan(browser: Browser, path: str, **body: Any) -> Any:
    return (await browser.post(path, body)).data


def test_a_topic_is_previewed_created_and_deleted(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        body = {"name": "orders", "partitions": 2, "configs": {"retention.ms": "1000"}}
        preview = await plan(browser, TOPICS, **body, dry_run=True)
        assert (preview["done"], preview["dry_run"]) == (False, True)
        assert preview["command"].startswith("tidelog topics --bootstrap-server")
        assert broker.topics == []
        assert (await plan(browser, TOPICS, **body, dry_run=False))["done"]
        assert broker.topics == ["orders"]
        again = await browser.post(TOPICS, {**body, "dry_run": True})
        assert (again.status, again.json["kafka"]["name"]) == (409, "TOPIC_ALREADY_EXISTS")
        wrong = await browser.post(TOPICS, {"name": "x", "configs": {"retention.ms": "soon"}, "dry_run": True})
        assert (wrong.status, wrong.json["kafka"]["name"]) == (400, "INVALID_CONFIG")

        broker.produce("orders", "a", "b")
        preview = await plan(browser, f"{TOPICS}/orders/delete", dry_run=True)
        assert preview["confirm"] == "orders"
        assert preview["lost"][0] == "2 records in 2 partitions"
        for confirm in (None, "order"):
            refused = await browser.post(f"{TOPICS}/orders/delete", {"dry_run": False, "confirm": confirm})
            assert refused.status == 400
        assert broker.topics == ["orders"]
        assert (await plan(browser, f"{TOPICS}/orders/delete", dry_run=False, confirm="orders"))["done"]
        assert broker.topics == []
        assert (await browser.get(f"{TOPICS}/orders")).status == 404

    console(broker.bootstrap_servers, job)


def test_partitions_are_added_and_never_removed(broker: Broker) -> None:
    broker.create_topic("orders", partitions=2)

    async def job(browser: Browser) -> None:
        assert (await browser.post(f"{TOPICS}/orders/partitions", {"count": 2, "dry_run": True})).status == 400
        preview = await plan(browser, f"{TOPICS}/orders/partitions", count=3, dry_run=True)
        assert preview["warnings"]
        assert preview["rows"] == [{"what": "partitions", "before": "2", "after": "3", "note": None}]
        await plan(browser, f"{TOPICS}/orders/partitions", count=3, dry_run=False)
        assert len((await browser.get(f"{TOPICS}/orders")).data["partitions"]) == 3

    console(broker.bootstrap_servers, job)


def test_settings_change_only_from_what_the_page_showed(broker: Broker) -> None:
    broker.create_topic("orders", retention_ms=1000)
    path = f"{TOPICS}/orders/config"

    async def job(browser: Browser) -> None:
        change = {"set": {"retention.ms": "2000"}, "remove": [], "expect": {"retention.ms": "1000"}}
        preview = await plan(browser, path, **change, dry_run=True)
        assert preview["rows"] == [{"what": "retention.ms", "before": "1000", "after": "2000", "note": None}]
        assert (await plan(browser, path, **change, dry_run=False))["done"]
        stale = await browser.post(path, {**change, "dry_run": False})
        assert stale.status == 409
        assert (await browser.post(path, {"set": {}, "remove": [], "dry_run": True})).status == 400
        assert (await browser.post(path, {"set": {"retention.ms": "x"}, "dry_run": True})).status == 400
        await plan(browser, path, remove=["retention.ms"], dry_run=False)
        assert not any(row["differs"] for row in (await browser.get(path)).data)

    console(broker.bootstrap_servers, job)


def test_records_before_an_offset_are_deleted(broker: Broker) -> None:
    broker.create_topic("orders", partitions=2)
    broker.produce("orders", "a", "b", "c")
    path = f"{TOPICS}/orders/truncate"

    async def job(browser: Browser) -> None:
        preview = await plan(browser, path, before={"0": "2", "1": "end"}, dry_run=True)
        assert preview["lost"] == ["2 records in 2 partitions"]
        assert "<(echo" in preview["command"]
        done = await plan(browser, path, before={"0": "2"}, dry_run=False, confirm="orders")
        assert (done["done"], done["failed"]) == (True, [])
        topic = (await browser.get(f"{TOPICS}/orders")).data
        assert topic["partitions"][0]["start"] == "2"
        assert (await browser.post(path, {"before": {"9": "0"}, "dry_run": True})).status == 400
        assert (await browser.post(path, {"before": {}, "dry_run": True})).status == 400

    console(broker.bootstrap_servers, job)


def test_a_record_is_sent_again_only_after_a_refusal_without_effect(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("orders")
    path = f"{TOPICS}/orders/records"
    value = {"encoding": "text", "data": "x"}
    monkeypatch.setattr(topic_changes, "PAUSES_S", (0.0, 0.0))

    async def job(browser: Browser) -> None:
        broker.faults.refuse("PRODUCE", "NOT_LEADER_OR_FOLLOWER", times=2)
        assert (await plan(browser, path, value=value, dry_run=False))["offset"] == "0"
        broker.faults.refuse("PRODUCE", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
        unclear = await browser.post(path, {"value": value, "dry_run": False})
        assert (unclear.status, unclear.json["kafka"]["name"]) == (502, "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
        broker.faults.lose_answer("PRODUCE")
        lost = await browser.post(path, {"value": value, "dry_run": False})
        assert (lost.status, "not known" in lost.json["detail"]) == (502, True)
        assert len(broker.messages("orders")) == 2
        broker.faults.refuse("DELETE_RECORDS", "NOT_LEADER_OR_FOLLOWER", times=2)
        body = {"before": {"0": "1"}, "confirm": "orders"}
        assert (await plan(browser, f"{TOPICS}/orders/truncate", **body, dry_run=False))["failed"] == []

    console(broker.bootstrap_servers, job)
    broker.faults.clear()


def test_a_record_is_written_once_with_key_headers_and_time(broker: Broker) -> None:
    broker.create_topic("orders", partitions=3)
    path = f"{TOPICS}/orders/records"

    async def job(browser: Browser) -> None:
        record = {
            "partition": 1,
            "key": {"encoding": "text", "data": "k"},
            "value": {"encoding": "json", "data": '{"id": 9007199254740993}'},
            "headers": [{"name": "h", "value": {"encoding": "hex", "data": "00ff"}}, {"name": "n", "value": None}],
            "timestamp_ms": "1000",
        }
        preview = await plan(browser, path, **record, dry_run=True)
        assert (preview["partition"], preview["offset"], preview["command"]) == (1, None, None)
        assert broker.messages("orders") == []
        done = await plan(browser, path, **record, dry_run=False)
        assert (done["partition"], done["offset"]) == (1, "0")
        (message,) = broker.messages("orders")
        assert (message.key, message.value) == (b"k", b'{"id": 9007199254740993}')

        for value in ({"encoding": "json", "data": "{"}, {"encoding": "hex", "data": "0"}, {"encoding": "base64", "data": "?"}):
            assert (await browser.post(path, {"value": value, "dry_run": True})).status == 400
        assert (await browser.post(path, {"partition": 3, "dry_run": True})).status == 400
        large = {"encoding": "text", "data": "x" * (1 << 20)}
        assert (
            await browser.post(path, {"value": large, "key": {"encoding": "text", "data": "k"}, "dry_run": True})
        ).status == 413
        plain = await plan(browser, path, value={"encoding": "text", "data": "it's"}, dry_run=True)
        assert "console-producer" in plain["command"]
        tombstone = await plan(browser, path, key={"encoding": "text", "data": "k"}, value=None, dry_run=False)
        assert tombstone["done"]

    console(broker.bootstrap_servers, job)
