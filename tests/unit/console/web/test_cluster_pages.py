from __future__ import annotations

from dataclasses import replace

from tests.unit.console.web.browser import Browser, console, users
from tidelog.client import AdminClient
from tidelog.testing import Broker

CLUSTER = "clusters/main/"


def test_every_page_of_the_cluster(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2)
    broker.produce("orders", "a")

    async def job(browser: Browser) -> None:
        (row,) = (await browser.get("clusters")).data
        assert (row["id"], row["reachable"], row["brokers"], row["unclean"]) == ("main", True, 1, 0)
        assert row["partitions"] >= 2

        health = (await browser.get(CLUSTER + "health")).json
        assert health["partial"] == []
        assert [each for each in health["data"]["findings"] if each["severity"] == "error"] == []
        assert "each partition has a leader" in health["data"]["fine"]
        assert health["data"]["controller"] == 1

        (found,) = (await browser.get(CLUSTER + "brokers")).data
        assert (found["id"], found["port"], found["controller"], found["error"]) == (1, broker.port, True, None)
        assert found["leaders"] >= 2
        assert int(found["bytes"]) > 0
        config = (await browser.get(CLUSTER + "brokers/1/config")).data
        assert {"log.retention.hours", "node.id"} & {each["name"] for each in config}
        assert (await browser.get(CLUSTER + "brokers/x/config")).status == 400
        assert (await browser.get(CLUSTER + "brokers/77/config")).status == 502

        dirs = (await browser.get(CLUSTER + "logdirs")).data
        assert dirs[0]["broker"] == 1
        assert "orders" in {each["topic"] for each in dirs[0]["largest"]}
        quorum = (await browser.get(CLUSTER + "quorum")).data
        assert (quorum["leader"], [each["id"] for each in quorum["voters"]]) == (1, [1])
        assert "metadata.version" in {each["name"] for each in (await browser.get(CLUSTER + "features")).data}
        assert (await browser.get(CLUSTER + "moves")).data["rows"] == []

    console(broker.bootstrap_servers, job)


def test_search_goes_over_all_kinds_of_names(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders")

    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.groups.commit("orders-app", {("orders", 0): 0})
        found = (await browser.get(CLUSTER + "search", q="ORDERS")).data
        assert [(each["kind"], each["name"]) for each in found] == [("topic", "orders"), ("group", "orders-app")]
        assert len((await browser.get(CLUSTER + "search", q="o", limit="1")).data) == 1
        assert (await browser.get(CLUSTER + "search", q="")).status == 400

    console(broker.bootstrap_servers, job)


def test_a_user_of_some_topics_gets_no_page_of_the_cluster(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await browser.login("olga")
        for page in (
            "brokers",
            "brokers/1/config",
            "logdirs",
            "quorum",
            "features",
            "moves",
            "acls",
            "users",
            "quotas",
            "transactions",
        ):
            assert (await browser.get(CLUSTER + page)).status == 403, page
        assert (await browser.get(CLUSTER + "health")).status == 200

    console(broker.bootstrap_servers, job, users=users(olga=["orders"]))


def test_many_browsers_cost_the_broker_one_request(broker: Broker) -> None:
    import asyncio

    async def job(browser: Browser) -> None:
        cluster = browser.application._state.clusters["main"]
        asked: list[object] = []

        async def counting(call: object) -> object:
            asked.append(call)
            return await run(call)  # type: ignore[arg-type]

        run = cluster._aside.run
        cluster._aside.run = counting  # type: ignore[assignment, method-assign]
        replies = await asyncio.gather(*(browser.get(CLUSTER + "topics") for _ in range(50)))
        assert {reply.status for reply in replies} == {200}
        assert len(asked) == 1
        await browser.get(CLUSTER + "topics")
        assert len(asked) == 1

        kept = cluster.shared._kept
        kept["overview"] = replace(kept["overview"], at_ms=kept["overview"].at_ms - 10_000, fresh_ms=60_000, stale_ms=60_000)
        await browser.get(CLUSTER + "topics")
        assert len(asked) == 1, "what costs much is kept for longer"
        for page in ("topics", "health", "search?q=a"):
            path, _, query = page.partition("?q=")
            told = await browser.get(CLUSTER + path, *([("q", query)] if query else []))
            assert told.json["as_of_ms"] == str(kept["overview"].at_ms), page
        asked.clear()
        hurried = await browser.ask("GET", "api/v1/" + CLUSTER + "topics", headers={"cache-control": "no-cache"})
        assert hurried.status == 200 and len(asked) == 1, "but not for one who reads again"

    console(broker.bootstrap_servers, job)
