from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.console.web.browser import Browser, console
from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.testing import Broker

CLUSTER = "clusters/main/"
ROW = {
    "resource": "topic",
    "name": "orders",
    "pattern": "prefixed",
    "principal": "User:ann",
    "host": "*",
    "operation": "read",
    "permission": "allow",
}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with Broker(config={"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}) as found:
        yield found


def test_without_an_authorizer_there_are_no_acls(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        assert (await browser.get(CLUSTER + "acls")).data == {"enabled": False, "rows": []}
        assert (await browser.get(CLUSTER + "users")).data == []
        assert (await browser.get(CLUSTER + "quotas")).data == []
        assert (await browser.get(CLUSTER + "transactions")).data == []
        missing = await browser.get(CLUSTER + "transaction", id="none")
        assert (missing.status, missing.json["kafka"]["name"]) == (404, "TRANSACTIONAL_ID_NOT_FOUND")

    console(broker.bootstrap_servers, job)


def test_acls_are_previewed_added_and_removed(guarded: Broker) -> None:
    async def job(browser: Browser) -> None:
        preview = (await browser.post(CLUSTER + "acls", {"entries": [ROW], "dry_run": True})).data
        assert "--allow-principal User:ann" in preview["command"]
        assert preview["rows"][0]["after"] == "added"
        assert (await browser.get(CLUSTER + "acls")).data == {"enabled": True, "rows": []}
        assert (await browser.post(CLUSTER + "acls", {"entries": [ROW], "dry_run": False})).data["failed"] == []
        assert (await browser.get(CLUSTER + "acls")).data["rows"] == [ROW]
        again = (await browser.post(CLUSTER + "acls", {"entries": [ROW], "dry_run": True})).data
        assert again["rows"][0]["after"] == "stays"
        wrong = await browser.post(CLUSTER + "acls", {"entries": [{**ROW, "operation": "fly"}], "dry_run": True})
        assert wrong.status == 400
        done = (await browser.post(CLUSTER + "acls/delete", {"entries": [ROW], "dry_run": False})).data
        assert done["rows"][0]["after"] == "removed"
        assert (await browser.get(CLUSTER + "acls")).data["rows"] == []

    console(guarded.bootstrap_servers, job)


def test_a_transaction_is_shown_and_ended(broker: Broker) -> None:
    from confluent_kafka import Producer

    broker.reset()
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx-1"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"x")
    producer.flush()

    async def job(browser: Browser) -> None:
        rows = (await browser.get(CLUSTER + "transactions")).data
        assert [(each["id"], each["state"]) for each in rows] == [("tx-1", "Ongoing")]
        found = (await browser.get(CLUSTER + "transaction", id="tx-1")).data
        assert found["partitions"] == [{"topic": "orders", "partitions": [0]}]
        assert found["started_ms"] is not None
        lines = await browser.stream(CLUSTER + "topics/orders/records")
        assert [each["state"] for each in lines if each["kind"] == "record"] == ["open"]
        producers = (await browser.get(CLUSTER + "topics/orders/producers")).data
        assert [each["transaction_start"] for each in producers] == ["0"]
        body = {"id": "tx-1", "dry_run": True}
        assert (await browser.post(CLUSTER + "transaction/terminate", body)).data["confirm"] == "tx-1"
        assert (await browser.post(CLUSTER + "transaction/terminate", {**body, "dry_run": False})).status == 400
        assert (await browser.post(CLUSTER + "transaction/terminate", {**body, "dry_run": False, "confirm": "tx-1"})).data["done"]
        lines = await browser.stream(CLUSTER + "topics/orders/records", aborted="1", control="1")
        assert [each["state"] for each in lines if each["kind"] == "record"] == ["control", "aborted"]
        lines = await browser.stream(CLUSTER + "topics/orders/records")
        assert [each for each in lines if each["kind"] == "record"] == []

    console(broker.bootstrap_servers, job)
