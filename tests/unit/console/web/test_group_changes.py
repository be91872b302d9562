from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.console.web.browser import Browser, console, users
from tidelog.client import AdminClient
from tidelog.console.web import group_changes
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.testing import Broker

GROUP = "clusters/main/group/"


@pytest.fixture(autouse=True)
def empty(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2)
    broker.produce("orders", *map(str, range(10)))


async def commit(broker: Broker, offset: int = 4) -> None:
    async with AdminClient(broker.bootstrap_servers) as admin:
        await admin.groups.commit("billing", {("orders", 0): offset})


async def reset(browser: Browser, dry_run: bool, kind: str, value: str | None = None, topics: Any = None) -> Any:
    body = {"id": "billing", "to": {"kind": kind, "value": value}, "topics": topics, "dry_run": dry_run}
    return (await browser.post(GROUP + "reset", body)).data


def test_offsets_move_as_the_preview_says(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await commit(broker)
        preview = await reset(browser, True, "earliest")
        assert preview["rows"] == [{"what": "orders-0", "before": "4", "after": "0", "note": "4 records again"}]
        assert "--to-earliest --execute" in preview["command"]
        assert broker.committed_offsets("billing") == {("orders", 0): 4}
        assert (await reset(browser, False, "earliest"))["failed"] == []
        assert broker.committed_offsets("billing") == {("orders", 0): 0}
        await reset(browser, False, "shift", "3")
        assert broker.committed_offsets("billing") == {("orders", 0): 3}
        await reset(browser, False, "offset", "99")
        assert broker.committed_offsets("billing") == {("orders", 0): 10}
        await reset(browser, False, "time", "0", [{"topic": "orders", "partitions": None}])
        assert broker.committed_offsets("billing") == {("orders", 0): 0, ("orders", 1): 0}
        await reset(browser, False, "latest", None, [{"topic": "orders", "partitions": [0]}])
        assert broker.committed_offsets("billing")[("orders", 0)] == 10

    console(broker.bootstrap_servers, job)


def test_a_reset_that_makes_no_sense_is_refused(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await commit(broker)
        for to, topics in (
            ({"kind": "offset"}, None),
            ({"kind": "offset", "value": "-1"}, None),
            ({"kind": "sideways"}, None),
            ({"kind": "latest"}, [{"topic": "orders", "partitions": [9]}]),
            ({"kind": "latest"}, []),
        ):
            body = {"id": "billing", "to": to, "topics": topics, "dry_run": True}
            assert (await browser.post(GROUP + "reset", body)).status == 400, body
        body = {
            "id": "billing",
            "to": {"kind": "shift", "value": 1},
            "topics": [{"topic": "orders", "partitions": [1]}],
            "dry_run": True,
        }
        assert (await browser.post(GROUP + "reset", body)).status == 409
        assert (await browser.post(GROUP + "reset", {**body, "id": "gone"})).status == 404

    console(broker.bootstrap_servers, job)


def test_a_group_with_members_is_not_reset_and_they_are_named(broker: Broker) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "billing",
            "client.id": "app-1",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        consumer.commit(offsets=None) if consumer.poll(1.0) else None

        async def job(browser: Browser) -> None:
            topics = [{"topic": "orders", "partitions": [0]}]
            preview = await reset(browser, True, "latest", None, topics)
            assert "app-1" in preview["warnings"][0]
            body = {"id": "billing", "to": {"kind": "latest"}, "topics": topics, "dry_run": False}
            refused = await browser.post(GROUP + "reset", body)
            assert (refused.status, "app-1" in refused.json["detail"]) == (409, True)
            group = (await browser.get("clusters/main/group", id="billing")).data
            assert [each["client_id"] for each in group["members"]] == ["app-1"]
            assert {row["member"] for row in group["offsets"]} == {group["members"][0]["id"]}
            deleted = await browser.post(GROUP + "delete", {"id": "billing", "dry_run": False, "confirm": "billing"})
            assert deleted.status == 409

        console(broker.bootstrap_servers, job)
    finally:
        consumer.close()


def test_offsets_of_a_topic_and_whole_groups_are_removed(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await commit(broker)
        body = {"id": "billing", "topic": "orders", "dry_run": True}
        preview = (await browser.post(GROUP + "forget", body)).data
        assert (preview["confirm"], preview["rows"][0]["before"]) == ("orders", "4")
        assert (await browser.post(GROUP + "forget", {**body, "dry_run": False})).status == 400
        done = (await browser.post(GROUP + "forget", {**body, "dry_run": False, "confirm": "orders"})).data
        assert (done["done"], done["failed"]) == (True, [])
        await commit(broker)
        body = {"id": "billing", "dry_run": True}
        assert (await browser.post(GROUP + "delete", body)).data["lost"] == ["1 committed offsets"]
        assert (await browser.post(GROUP + "delete", {**body, "dry_run": False, "confirm": "billing"})).data["done"]
        assert "billing" not in broker.groups()

    console(broker.bootstrap_servers, job)


def test_share_groups_are_reset_with_their_own_request(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.share_groups.alter_offsets("workers", {("orders", 0): 1})
        body = {"id": "workers", "to": {"kind": "latest"}, "topics": None, "dry_run": True}
        preview = (await browser.post(GROUP + "reset", body)).data
        assert "share-groups" in preview["command"]
        assert preview["rows"][0]["after"] == "10"
        assert (await browser.post(GROUP + "reset", {**body, "dry_run": False})).data["failed"] == []
        assert (await browser.post(GROUP + "reset", {**body, "to": {"kind": "shift", "value": 1}})).status == 400
        assert (await browser.get("clusters/main/group", id="workers")).data["offsets"][0]["committed"] == "10"

    console(broker.bootstrap_servers, job)


def test_offsets_of_share_groups_are_removed_with_their_own_request(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.share_groups.alter_offsets("workers", {("orders", 0): 1, ("orders", 1): 2})
        body = {"id": "workers", "topic": "orders", "dry_run": True}
        preview = (await browser.post(GROUP + "forget", body)).data
        assert [(row["what"], row["before"]) for row in preview["rows"]] == [("orders-0", "1"), ("orders-1", "2")]
        assert "share.auto.offset.reset" in preview["lost"][0]
        assert "share-groups" in preview["command"]
        done = (await browser.post(GROUP + "forget", {**body, "dry_run": False, "confirm": "orders"})).data
        assert (done["done"], done["failed"]) == (True, [])
        assert (await browser.get("clusters/main/group", id="workers")).data["offsets"] == []

    console(broker.bootstrap_servers, job)


def test_a_reset_shows_no_offsets_of_topics_that_the_user_may_not_see(broker: Broker) -> None:
    broker.create_topic("hidden")

    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.groups.commit("orders-1", {("orders", 0): 4})
        await browser.login("ann")
        body = {"id": "orders-1", "to": {"kind": "latest"}, "topics": [{"topic": "orders", "partitions": None}], "dry_run": True}
        assert (await browser.post(GROUP + "reset", body)).status == 200
        for topic in ("hidden", "not-there"):
            body["topics"] = [{"topic": topic, "partitions": None}]
            assert (await browser.post(GROUP + "reset", body)).status == 403

    console(broker.bootstrap_servers, job, users=users(ann=["orders"]))


def test_a_change_that_failed_in_part_is_audited_as_failed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def refused(*_: Any) -> Any:
        return {("orders", 0): KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)}

    monkeypatch.setattr(group_changes, "_moved", refused)

    async def job(browser: Browser) -> None:
        await commit(broker)
        assert (await reset(browser, False, "earliest"))["failed"]

    console(broker.bootstrap_servers, job, seen=seen)
    found = json.loads(seen[0])
    assert found["outcome"] == "failed"
    assert found["detail"].startswith("orders-0: ")
