"""The console on nodes of tidelog and of Apache Kafka: the same pages, and the same changes with the same outcome."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop.nodes import Node
from tests.unit.console.web.browser import Browser, console

CLUSTER = "clusters/main/"
TOPIC = "console-orders"
RECORDS = f"{CLUSTER}topics/{TOPIC}/records"
GROUP = "console-app"


@pytest.fixture(scope="module", params=["tidelog_node", "apache_node"])
def node(request: pytest.FixtureRequest) -> Node:
    """Both kinds, one after the other."""
    found: Node = request.getfixturevalue(request.param)
    return found


async def done(browser: Browser, path: str, **body: Any) -> Any:
    """A change: its preview first, then itself."""
    preview = (await browser.post(CLUSTER + path, {**body, "dry_run": True})).data
    confirm = {} if preview["confirm"] is None else {"confirm": preview["confirm"]}
    found = (await browser.post(CLUSTER + path, {**body, **confirm, "dry_run": False})).data
    assert (found["done"], found["failed"]) == (True, [])
    assert found["rows"] == preview["rows"]
    return found


def test_the_life_of_a_topic_and_its_group(node: Node) -> None:
    async def job(browser: Browser) -> None:
        await done(browser, "topics", name=TOPIC, partitions=2, replication=1, configs={"retention.ms": "86400000"})
        for number in range(5):
            body = {"partition": 0, "value": {"encoding": "json", "data": f'{{"n": {number}, "id": 9007199254740993}}'}}
            assert (await done(browser, f"topics/{TOPIC}/records", **body))["offset"] == str(number)
        lines = await browser.stream(RECORDS, filter="value.n >= 3 and value.id == 9007199254740993")
        assert [line["offset"] for line in lines if line["kind"] == "record"] == ["4", "3"]

        topic = (await browser.get(f"{CLUSTER}topics/{TOPIC}")).data
        assert [(part["start"], part["end"], part["stable"]) for part in topic["partitions"]] == [
            ("0", "5", "5"),
            ("0", "0", "0"),
        ]
        assert topic["bytes"] is not None
        config = {row["name"]: row for row in (await browser.get(f"{CLUSTER}topics/{TOPIC}/config")).data}
        assert (config["retention.ms"]["value"], config["retention.ms"]["differs"]) == ("86400000", True)
        assert config["cleanup.policy"]["default"] == "delete"
        await done(browser, f"topics/{TOPIC}/config", set={"cleanup.policy": "compact,delete"}, remove=["retention.ms"])

        consume(node.bootstrap)
        group = (await browser.get(CLUSTER + "group", id=GROUP)).data
        assert (group["type"], group["state"], group["lag"]) == ("classic", "Empty", "0")
        found = await done(browser, "group/reset", id=GROUP, to={"kind": "shift", "value": "-2"})
        assert [row["after"] for row in found["rows"] if row["what"] == f"{TOPIC}-0"] == ["3"]
        assert (await browser.get(CLUSTER + "group", id=GROUP)).data["lag"] == "2"
        why = (await browser.get(CLUSTER + "group/why", id=GROUP, seconds="1")).data
        assert why["primary"]["cause"] == "G1"
        assert [row["id"] for row in (await browser.get(f"{CLUSTER}topics/{TOPIC}/groups")).data] == [GROUP]

        await done(browser, f"topics/{TOPIC}/truncate", before={"0": "4"})
        assert "below the log start 4" in (await browser.get(f"{RECORDS}/0/0")).data["reason"]
        await done(browser, "group/delete", id=GROUP)
        await done(browser, f"topics/{TOPIC}/partitions", count=3)
        await done(browser, f"topics/{TOPIC}/delete")

    console(node.bootstrap, job)


def consume(bootstrap: str) -> None:
    """Read everything of the topic, commit, and leave."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    left = 5
    while left:
        message = consumer.poll(1.0)
        left -= message is not None and message.error() is None
    consumer.commit(asynchronous=False)
    consumer.close()


def test_transactions_as_a_reader_of_committed_records_sees_them(node: Node) -> None:
    topic = "console-tx"
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "console-tx-1"})

    async def job(browser: Browser) -> None:
        await done(browser, "topics", name=topic, partitions=1, replication=1)
        producer.init_transactions()
        for end in (producer.abort_transaction, producer.commit_transaction, None):
            producer.begin_transaction()
            producer.produce(topic, b"x", partition=0)
            assert producer.flush(30) == 0
            if end is not None:
                end()
        path = f"{CLUSTER}topics/{topic}/records"
        lines = await browser.stream(path, mode="oldest", aborted="1", control="1")
        assert [(line["state"], line["control"]) for line in lines if line["kind"] == "record"] == [
            ("aborted", None),
            ("control", "abort"),
            ("committed", None),
            ("control", "commit"),
            ("open", None),
        ]
        found = (await browser.get(CLUSTER + "transaction", id="console-tx-1")).data
        assert (found["state"], found["partitions"]) == ("Ongoing", [{"topic": topic, "partitions": [0]}])
        await done(browser, "transaction/terminate", id="console-tx-1")
        await done(browser, f"topics/{topic}/delete")

    console(node.bootstrap, job)


def test_the_pages_of_the_cluster(node: Node) -> None:
    async def job(browser: Browser) -> None:
        (row,) = (await browser.get("clusters")).data
        assert (row["reachable"], row["brokers"]) == (True, 1)
        health = (await browser.get(CLUSTER + "health")).json
        assert health["partial"] == []
        assert [each for each in health["data"]["findings"] if each["severity"] == "error"] == []
        (broker,) = (await browser.get(CLUSTER + "brokers")).data
        assert broker["bytes"] is not None
        assert (await browser.get(f"{CLUSTER}brokers/{broker['id']}/config")).data
        assert (await browser.get(CLUSTER + "logdirs")).data[0]["error"] is None
        assert (await browser.get(CLUSTER + "quorum")).data["leader"] == broker["id"]
        assert "metadata.version" in {each["name"] for each in (await browser.get(CLUSTER + "features")).data}
        assert (await browser.get(CLUSTER + "moves")).data["rows"] == []
        for page in ("users", "quotas"):
            assert (await browser.get(CLUSTER + page)).data == [], page
        assert (await browser.get(CLUSTER + "acls")).data == {"enabled": False, "rows": []}

    console(node.bootstrap, job)
