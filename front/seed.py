"""Fills a cluster with what ``drive.mjs`` looks for: ``python front/seed.py localhost:9092 [--topics 10000] [--stay SECONDS]``.

With ``--stay`` a member of the group ``billing``, two of the streams group ``counts`` and an open transaction stay until the time
is over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
AT_ONCE = 500
HOSTILE = (
    b"<img src=x onerror=alert(1)>",
    b"<script>alert(1)</script>",
    b"\xff\xfe\x00\x01 not UTF-8",
    b'{"html": "<b>bold</b>", "deep": ' + b"[" * 500 + b"]" * 500 + b"}",
    b"=1+1",
    "right to left: \u202eabc".encode(),
)


def topics(admin: AdminClient, many: int) -> None:
    wanted = [NewTopic("orders", 3, 1), *(NewTopic(name, 1, 1) for name in ("mail", "big", "hostile", "given-up"))]
    wanted += [NewTopic(f"many-{index:05d}", 4, 1) for index in range(many)]
    for start in range(0, len(wanted), AT_ONCE):
        for future in admin.create_topics(wanted[start : start + AT_ONCE], request_timeout=120).values():
            future.result()


def records(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 8_000_000})
    for index in range(100):
        value = json.dumps(
            {"id": 9007199254740993, "amount": index, "items": [{"sku": "a"}, {"sku": "b"}], "paid": index % 2 == 0}
        )
        producer.produce("orders", value, f"user-{index % 7}", partition=index % 3, headers=[("trace", f"{index:02x}")])
    producer.produce("mail", None, "gone")
    producer.produce("big", json.dumps({"text": "x" * 1_000_000}), "large")
    for each in HOSTILE:
        producer.produce("hostile", each, each[:20], headers=[("h", each)])
    producer.flush(60)


def commit(bootstrap: str, group: str, at: int) -> None:
    """The group has had a member, which committed this offset in each partition and left."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.2)
    consumer.commit(offsets=[TopicPartition("orders", partition, at) for partition in range(3)], asynchronous=False)
    consumer.close()


async def streams(bootstrap: str, answers: dict[str, Any] | None = None) -> dict[str, Any]:
    """Two members of a streams group join; with the last answers to them, they stay."""
    from tests.unit.console.web import streams as members
    from tidelog.client import AdminClient as OwnAdmin

    async with OwnAdmin(bootstrap) as admin:
        if answers is None:
            return await admin.run(members.join_with_a_standby("counts", "orders", 3))
        await admin.run(members.stay("counts", "orders", answers))
        return answers


async def shares(bootstrap: str) -> None:
    """A share group that has given up two records."""
    from tests.unit.dead_letters.samples import headers
    from tidelog.client import AdminClient as OwnAdmin
    from tidelog.client.admin import configs
    from tidelog.client.admin.results import ResourceType

    async with OwnAdmin(bootstrap) as admin:
        await admin.share_groups.alter_offsets("workers", {("orders", 0): 5})
        await admin.run(configs.alter(ResourceType.GROUP, "workers", {"errors.deadletterqueue.topic.name": "given-up"}))
    producer = Producer({"bootstrap.servers": bootstrap})
    for offset in (3, 4):
        producer.produce("given-up", f'{{"amount": {offset}}}', f"user-{offset}", headers=list(headers("orders", 0, offset)))
    producer.flush(60)


def stay(bootstrap: str, seconds: float) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "billing", "client.id": "billing-1", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments", "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("mail", "not committed yet", "open")
    producer.flush(30)
    answers = asyncio.run(streams(bootstrap))
    sys.stdout.write("staying\n")
    sys.stdout.flush()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        consumer.poll(1)
        asyncio.run(streams(bootstrap, answers))
    consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("bootstrap")
    parser.add_argument("--topics", type=int, default=0, help="that many more, of four partitions each")
    parser.add_argument("--stay", type=float, default=0, help="seconds for which members and an open transaction stay")
    options = parser.parse_args()
    topics(AdminClient({"bootstrap.servers": options.bootstrap}), options.topics)
    records(options.bootstrap)
    asyncio.run(shares(options.bootstrap))
    commit(options.bootstrap, "idle", 10)
    commit(options.bootstrap, "billing", 5)
    if options.stay:
        stay(options.bootstrap, options.stay)


if __name__ == "__main__":
    main()
