from __future__ import annotations

import pytest

from tests.unit.console.web.browser import Browser, console, users
from tests.unit.console.web.streams import join_with_a_standby
from tidelog.client import AdminClient
from tidelog.console.access.rights import About, Access, Grant, Right
from tidelog.console.group_facts import Sample
from tidelog.console.web.group_pages import _of_seen_topics
from tidelog.testing import Broker


@pytest.fixture(autouse=True)
def empty(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2)
    broker.produce("orders", "a", "b", "c")


async def commit(broker: Broker, group: str, offset: int = 1) -> None:
    async with AdminClient(broker.bootstrap_servers) as admin:
        await admin.groups.commit(group, {("orders", 0): offset})


def test_groups_with_odd_names_and_their_lag(broker: Broker) -> None:
    odd = "../a b/ü?&#"

    async def job(browser: Browser) -> None:
        await commit(broker, "billing")
        await commit(broker, odd)
        found = (await browser.get("clusters/main/groups")).data
        assert sorted(row["id"] for row in found["rows"]) == sorted([odd, "billing"])
        assert found["rows"][0]["type"] == "classic"
        facts = (await browser.get("clusters/main/groups/facts", ("id", odd), ("id", "gone"))).data
        assert [(row["id"], row["lag"], row["members"]) for row in facts] == [(odd, "2", 0), ("gone", None, None)]
        assert "there is no group gone" in facts[1]["error"]
        group = (await browser.get("clusters/main/group", id=odd)).data
        assert (group["id"], group["state"], group["lag"], group["coordinator"]) == (odd, "Empty", "2", 1)
        assert group["offsets"] == [
            {
                "topic": "orders",
                "partition": 0,
                "committed": "1",
                "start": "0",
                "end": "3",
                "stable": "3",
                "lag": "2",
                "member": None,
                "error": None,
            }
        ]
        assert [each["lag"] for each in group["history"]] == ["2"]
        missing = await browser.get("clusters/main/group", id="gone")
        assert (missing.status, missing.json["kafka"]["name"]) == (404, "GROUP_ID_NOT_FOUND")

    console(broker.bootstrap_servers, job)


def test_why_is_the_verdict_of_the_command(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await commit(broker, "billing")
        found = (await browser.get("clusters/main/group/why", id="billing", seconds="1")).data
        assert (found["group"], found["lag"]) == ("billing", "2")
        assert set(found) >= {"primary", "contributing", "notes", "fine", "not_visible", "watched_seconds"}
        findings = [each for each in (found["primary"], *found["contributing"], *found["notes"]) if each]
        assert findings
        assert all(broker.bootstrap_servers in each["command"] for each in findings if each["command"])

    console(broker.bootstrap_servers, job)


def test_a_user_sees_only_granted_groups(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await commit(broker, "billing")
        await commit(broker, "orders-app")
        await browser.login("olga")
        assert [row["id"] for row in (await browser.get("clusters/main/groups")).data["rows"]] == ["orders-app"]
        assert (await browser.get("clusters/main/group", id="billing")).status == 403
        assert (await browser.get("clusters/main/groups/facts", ("id", "billing"))).data == []
        assert [row["id"] for row in (await browser.get("clusters/main/topics/orders/groups")).data] == ["orders-app"]

    console(broker.bootstrap_servers, job, users=users(olga=["orders"]))


def test_a_share_group_has_its_own_offsets_and_a_diagnosis(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.share_groups.alter_offsets("workers", {("orders", 0): 1})
        group = (await browser.get("clusters/main/group", id="workers")).data
        assert group["type"] == "share"
        assert [(row["topic"], row["committed"]) for row in group["offsets"]] == [("orders", "1")]
        verdict = (await browser.get("clusters/main/group/why", id="workers", seconds="1")).data
        assert (verdict["state"], verdict["primary"]["cause"], verdict["lag"]) == ("Empty", "G1", "2")
        assert any("who holds records" in each for each in verdict["not_visible"])

    console(broker.bootstrap_servers, job)


def test_a_group_of_the_consumer_protocol_has_epochs_and_targets(broker: Broker) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "next-gen",
            "group.protocol": "consumer",
            "client.id": "app-2",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    try:
        while consumer.poll(0.2) is None:
            pass

        async def job(browser: Browser) -> None:
            group = (await browser.get("clusters/main/group", id="next-gen")).data
            assert (group["type"], group["state"]) == ("consumer", "Stable")
            assert group["epoch"] == group["target_epoch"]
            (member,) = group["members"]
            assert member["streams"] is None
            assert member["assignment"] == member["target"] == [{"topic": "orders", "partitions": [0, 1]}]
            assert [(row["committed"], row["member"]) for row in group["offsets"]] == [(None, member["id"])] * 2
            facts = (await browser.get("clusters/main/groups/facts", ("id", "next-gen"))).data
            assert facts == [{"id": "next-gen", "lag": None, "members": 1, "topics": 0, "error": None}]
            on_topic = (await browser.get("clusters/main/topics/orders/groups")).data
            assert on_topic == [{"id": "next-gen", "type": "consumer", "state": "Stable", "lag": None}]

        console(broker.bootstrap_servers, job)
    finally:
        consumer.close()


def test_members_of_a_streams_group_have_standby_tasks_a_process_and_a_topology_epoch(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.run(join_with_a_standby("counts", "orders", 2))
        group = (await browser.get("clusters/main/group", id="counts")).data
        assert (group["type"], group["streams"]["topology_epoch"]) == ("streams", 3)
        first, second = sorted((each["streams"] for each in group["members"]), key=lambda each: each["process_id"])
        assert [first["process_id"], second["process_id"]] == [f"process-{number}" for number in (0, 1)]
        assert {first["topology_epoch"], second["topology_epoch"]} == {3}
        assert (first["classic"], first["warmup"], first["target_warmup"]) == (False, [], [])
        standby = [part for each in (first, second) for row in each["target_standby"] for part in row["partitions"]]
        active = [part for each in group["members"] for row in each["target"] for part in row["partitions"]]
        assert sorted(standby) == sorted(active) == [0, 1]
        assert all(each["standby"] == each["target_standby"] for each in (first, second))

    console(broker.bootstrap_servers, job)


def test_a_verdict_knows_only_topics_that_the_user_may_see() -> None:
    access = Access((Grant(frozenset({Right.VIEW}), topics=("orders*",), groups=("*",)),))
    found = Sample(0, topics=frozenset({"orders", "orders-secretly", "payroll"}))
    shown = _of_seen_topics(Seeing(access), found)  # type: ignore[arg-type]
    assert shown.topics == {"orders", "orders-secretly"}


class Seeing:
    def __init__(self, access: Access) -> None:
        self._access = access

    def sees(self, about: About, name: str) -> bool:
        return self._access.may(Right.VIEW, "main", about, name)
