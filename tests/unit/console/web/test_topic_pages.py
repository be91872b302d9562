from __future__ import annotations

from tests.unit.console.web.browser import Browser, console, users
from tidelog.console.web.topic_pages import paged
from tidelog.testing import Broker


def test_pages_follow_each_other() -> None:
    names = ["a", "b", "c", "d", "e"]
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page, after = paged(names, after, 2, str)
        found += page
    assert found == names
    assert paged(names, "zz", 2, str) == ([], None)


def test_topics_their_sizes_and_partitions(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2, retention_ms=1000, cleanup_policy="compact")
    broker.create_topic("Payments")
    broker.produce("orders", ("k", "a"), ("k", "b"), partition=1)

    async def job(browser: Browser) -> None:
        found = (await browser.get("clusters/main/topics")).data
        assert [row["name"] for row in found["rows"]] == ["Payments", "orders"]
        assert found["rows"][1] == {"name": "orders", "partitions": 2, "replication": 1, "internal": False, "unclean": 0}
        assert (await browser.get("clusters/main/topics", filter="PAY")).data["total"] == 1
        page = (await browser.get("clusters/main/topics", limit="1")).data
        assert (len(page["rows"]), page["total"], page["next"]) == (1, 2, "Payments")

        facts = (await browser.get("clusters/main/topics/facts", ("name", "orders"), ("name", "gone"))).data
        assert [(row["name"], row["records"], row["error"]) for row in facts] == [("orders", "2", None)]
        assert int(facts[0]["bytes"]) > 0

        topic = (await browser.get("clusters/main/topics/orders")).data
        assert topic["may"] == {"view": True, "payload": True, "change": True}
        assert [(part["start"], part["end"], part["stable"], part["leader"]) for part in topic["partitions"]] == [
            ("0", "0", "0", 1),
            ("0", "2", "2", 1),
        ]
        assert (topic["records"], topic["masked"], topic["moves"], len(topic["topic_id"])) == ("2", False, [], 22)

        config = (await browser.get("clusters/main/topics/orders/config")).data
        assert [row["name"] for row in config if row["differs"]] == [row["name"] for row in config[:2]]
        assert [(row["name"], row["value"], row["default"]) for row in config[:2]] == [
            ("cleanup.policy", "compact", "delete"),
            ("retention.ms", "1000", None),
        ]

        gone = await browser.get("clusters/main/topics/gone")
        assert (gone.status, gone.json["kafka"]["name"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")

    console(broker.bootstrap_servers, job)


def test_groups_and_producers_of_a_topic(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders")
    broker.produce("orders", "a", "b", "c")

    async def job(browser: Browser) -> None:
        from tidelog.client import AdminClient

        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.groups.commit("billing", {("orders", 0): 1})
        found = (await browser.get("clusters/main/topics/orders/groups")).data
        assert [(row["id"], row["lag"]) for row in found] == [("billing", "2")]
        assert isinstance((await browser.get("clusters/main/topics/orders/producers")).data, list)

    console(broker.bootstrap_servers, job)


def test_lists_have_only_what_the_user_may_see(broker: Broker) -> None:
    broker.reset()
    for name in ("orders.eu", "payments"):
        broker.create_topic(name)

    async def job(browser: Browser) -> None:
        await browser.login("olga")
        found = (await browser.get("clusters/main/topics", internal="1")).data
        assert [row["name"] for row in found["rows"]] == ["orders.eu"]
        assert found["total"] == 1
        facts = (await browser.get("clusters/main/topics/facts", ("name", "payments"), ("name", "orders.eu"))).data
        assert [row["name"] for row in facts] == ["orders.eu"]
        hits = (await browser.get("clusters/main/search", q="a")).data
        assert hits == []
        assert (await browser.get("clusters/main/topics/payments")).status == 403

    console(broker.bootstrap_servers, job, users=users(olga=["orders"]))
