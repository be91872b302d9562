"""Replicas that the console moves between three real nodes, under writes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.node.cluster import Cluster
from tests.unit.console.web.browser import Browser, console
from tidelog.client import AdminClient
from tidelog.client.admin import replicas
from tidelog.console.asking.overview import overview

MOVES = "clusters/main/moves"
BOUND_S = 60
POLL_S = 0.2
PARTITIONS = 4


async def placed(admin: AdminClient) -> dict[int, tuple[int, ...]]:
    topic = (await admin.run(overview())).topic("orders")
    return {part.index: part.replicas for part in topic.partitions}


async def write(browser: Browser, sent: list[int]) -> None:
    """A record to each partition, with acks=all; again where a leader was not ready yet."""
    value = {"encoding": "text", "data": "x" * 1000}
    for index in range(PARTITIONS):
        body = {"partition": index, "value": value, "dry_run": False}
        sent.append(int((await browser.post("clusters/main/topics/orders/records", body)).data["offset"]))


async def carried_out(browser: Browser, path: str, body: Mapping[str, Any], **real: Any) -> dict[str, Any]:
    """Preview, run, and the end of the plan."""
    preview = (await browser.post(f"{MOVES}/{path}", {**body, "dry_run": True})).data
    done = (await browser.post(f"{MOVES}/{path}", {**body, "dry_run": False, **real})).data
    assert (done["done"], [row["after"] for row in done["rows"]]) == (True, [row["after"] for row in preview["rows"]])
    async with asyncio.timeout(BOUND_S):
        while True:
            found = (await browser.get(MOVES)).data
            if found["plan"]["ended_ms"] is not None:
                assert (found["plan"]["failed"], found["plan"]["problem"]) == ([], None)
                return dict(found)
            await asyncio.sleep(POLL_S)


def test_replicas_are_added_drained_and_spread_again_between_writes(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3) as cluster:

        async def job(browser: Browser) -> None:
            async with AdminClient(cluster.bootstrap) as admin:
                await admin.topics.create("orders", PARTITIONS, 2)
                sent: list[int] = []
                await write(browser, sent)
                found = await carried_out(browser, "factor", {"topic": "orders", "replication": 3})
                assert found["plan"]["done"] == PARTITIONS
                assert {len(each) for each in (await placed(admin)).values()} == {3}
                await write(browser, sent)

                refused = await browser.post(f"{MOVES}/drain", {"broker": 3, "dry_run": True})
                assert (refused.status, "only 2 brokers would be left" in refused.json["detail"]) == (409, True)
                await carried_out(browser, "factor", {"topic": "orders", "replication": 2})

                unsaid = await browser.post(f"{MOVES}/drain", {"broker": 3, "dry_run": False})
                assert unsaid.status == 400
                found = await carried_out(browser, "drain", {"broker": 3, "throttle": 1 << 20}, confirm="3")
                assert (found["rows"], found["limits"], found["cordoned"]) == ([], [], [3])
                assert {broker for held in (await placed(admin)).values() for broker in held} == {1, 2}
                await write(browser, sent)

                assert (await browser.post(f"{MOVES}/undrain", {"broker": 3, "dry_run": False})).data["done"]
                await carried_out(browser, "rebalance", {"brokers": None})
                held = await placed(admin)
                assert sorted(sum(broker in each for each in held.values()) for broker in (1, 2, 3)) == [2, 3, 3]
                await write(browser, sent)
                assert sorted(sent) == sorted([*range(PARTITIONS)] * PARTITIONS), "an offset for each record, and none twice"
                assert await admin.run(replicas.reassignments()) == {}

        console(cluster.bootstrap, job)
