from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.unit.console.web.browser import Browser, console, users
from tests.unit.dead_letters.samples import REJECTED, headers
from tidelog.client import AdminClient
from tidelog.client.admin import configs
from tidelog.client.admin.results import ResourceType
from tidelog.console.web.dead_letter_pages import MOST_LETTERS, TOPIC_NAME
from tidelog.dead_letters.journal import Replayed, journal_topic
from tidelog.dead_letters.letter import Source
from tidelog.testing import Broker

DLQ = "orders-dead"
PAGE = "clusters/main/group/dead-letters"


@pytest.fixture(autouse=True)
def empty(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2)
    broker.produce("orders", "a", "b", "c")


async def given_up(broker: Broker, *letters: tuple[int, str], name: str = DLQ) -> None:
    """The share group has this dead-letter topic, with a letter for each offset of orders-0 and group."""
    async with AdminClient(broker.bootstrap_servers) as admin:
        await admin.share_groups.alter_offsets("orders-app", {("orders", 0): 1})
        if name:
            await admin.run(configs.alter(ResourceType.GROUP, "orders-app", {TOPIC_NAME: name}))
    if not letters:
        return
    broker.create_topic(DLQ, partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for offset, group in letters:
        producer.produce(DLQ, f"job {offset}", key="k", headers=list(headers("orders", 0, offset, group=group)))
    producer.produce(DLQ, "no letter")
    producer.produce(DLQ, "of no use", headers=[*headers("orders", 0, 1)[:2], ("__dlq.errors.offset", b"9" * 5000)])
    assert producer.flush(30) == 0


async def replayed(broker: Broker, topic_id: bytes, offset: int) -> None:
    broker.create_topic(journal_topic(DLQ), cleanup_policy="compact")
    done = Replayed(Source("orders-app", "orders", 0, offset), topic_id, 1, 0, 7, 1234)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(journal_topic(DLQ), b"[" * 100_000, key=b"[" * 100_000)
    producer.produce(journal_topic(DLQ), b'{"count":Infinity,"partition":0,"offset":0,"at_ms":0}', key=done.key())
    producer.produce(journal_topic(DLQ), done.value(), key=done.key())
    assert producer.flush(30) == 0


def offsets(found: Any) -> list[str]:
    return [row["source"]["offset"] for row in found["rows"]]


def test_the_newest_letters_of_the_group_and_which_were_replayed(broker: Broker) -> None:
    seen: list[str] = []

    async def job(browser: Browser) -> None:
        await given_up(broker, (0, "orders-app"), (1, "another"), (2, "orders-app"))
        found = (await browser.get(PAGE, id="orders-app")).data
        assert (found["topic"], found["exists"], found["end"]) == (DLQ, True, "end")
        assert offsets(found) == ["2", "0"]
        assert [(row["replayed"], row["replay"]) for row in found["rows"]] == [(False, None)] * 2
        row = found["rows"][0]
        assert (row["reason"], row["delivery_count"], row["value"]["text"]) == (REJECTED, 3, "job 2")
        assert f"dead-letters replay {DLQ} --group orders-app" in found["command"]
        topic = (await browser.get("clusters/main/topics/orders")).data
        await replayed(broker, _id(topic["topic_id"]), 2)
        browser.application._state.clusters["main"].shared.forget()
        again = (await browser.get(PAGE, id="orders-app")).data
        assert [row["replayed"] for row in again["rows"]] == [True, False]
        assert again["rows"][0]["replay"] == {"at_ms": "1234", "partition": 0, "offset": "7", "replays": 1}
        some = (await browser.get(PAGE, id="orders-app", limit="1")).data
        assert (offsets(some), some["end"]) == (["2"], "limit")
        assert (await browser.get(PAGE, id="orders-app", limit=str(MOST_LETTERS + 1))).status == 400

    console(broker.bootstrap_servers, job, seen=seen)
    assert [json.loads(line)["records"] for line in seen if f'"topic":"{DLQ}"' in line.replace(" ", "")] == [2, 2, 1]


def _id(text: str) -> bytes:
    from tidelog.model.ids import uuid_from_text

    return uuid_from_text(text)


def test_a_group_without_a_dead_letter_topic_and_one_whose_topic_is_not_there_yet(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await given_up(broker, name="")
        found = (await browser.get(PAGE, id="orders-app")).data
        assert (found["topic"], found["exists"], found["rows"]) == (None, False, [])
        await given_up(broker)
        found = (await browser.get(PAGE, id="orders-app")).data
        assert (found["topic"], found["exists"], found["rows"]) == (DLQ, False, [])
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.groups.commit("plain", {("orders", 0): 1})
        browser.application._state.clusters["main"].shared.forget()
        assert (await browser.get(PAGE, id="plain")).status == 400
        assert (await browser.get(PAGE, id="gone")).status == 404

    console(broker.bootstrap_servers, job)


def test_letters_are_payload_of_their_topic_and_the_journal_is_of_its_own(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await given_up(broker, (0, "orders-app"))
        await browser.login("vic")
        refused = await browser.get(PAGE, id="orders-app")
        assert (refused.status, DLQ in refused.json["detail"]) == (403, True)
        await browser.login("olga")
        assert offsets((await browser.get(PAGE, id="orders-app")).data) == ["0"]
        await browser.login("ned")
        (row,) = (await browser.get(PAGE, id="orders-app")).data["rows"]
        assert (row["replayed"], row["replay"]) == (None, None)

    text, name = users(vic=["viewer"], olga=["orders"], ned=["narrow"])
    found = json.loads(text)
    found["roles"]["narrow"] = [{"rights": ["view", "payload"], "topics": [DLQ], "groups": ["*"]}]
    console(broker.bootstrap_servers, job, users=(json.dumps(found), name))


def test_letters_of_a_masked_topic_are_not_shown(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        await given_up(broker, (0, "orders-app"))
        await browser.login("olga")
        refused = await browser.get(PAGE, id="orders-app")
        assert (refused.status, "masked" in refused.json["detail"]) == (403, True)

    text, name = users(olga=["orders"])
    found = json.loads(text)
    found["masks"] = [{"topics": ["orders-dead"], "paths": ["value.mail"], "except_roles": []}]
    console(broker.bootstrap_servers, job, users=(json.dumps(found), name))
