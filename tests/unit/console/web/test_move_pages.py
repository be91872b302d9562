"""Moves on a cluster of one broker: nothing can move, and each page says so. ``tests/node/test_moves.py`` has three."""

from __future__ import annotations

import pytest

from tests.unit.console.web.browser import Browser, console
from tidelog.client import AdminClient
from tidelog.console.moving.asking import cordon
from tidelog.testing import Broker

MOVES = "clusters/main/moves"


@pytest.fixture(autouse=True)
def empty(broker: Broker) -> None:
    broker.reset()
    broker.create_topic("orders", partitions=2)


def test_nothing_moves_and_nothing_is_limited(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        found = (await browser.get(MOVES)).data
        assert (found["rows"], found["plan"], found["limits"], found["cordoned"]) == ([], None, [], [])
        assert found["may"]["change"] is True
        for path in ("stop", "cancel"):
            reply = await browser.post(f"{MOVES}/{path}", {"dry_run": True})
            assert reply.status == 409, path
        preview = (await browser.post(f"{MOVES}/clear", {"dry_run": True})).data
        assert (preview["rows"], preview["warnings"]) == ([], [])

    console(broker.bootstrap_servers, job)


def test_one_broker_is_balanced_already(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        preview = (await browser.post(f"{MOVES}/rebalance", {"brokers": None, "throttle": None, "dry_run": True})).data
        assert (preview["rows"], preview["warnings"]) == ([], ["nothing has to move"])
        assert preview["command"].endswith("--tolerance 10 --throttle none --concurrent 10 --yes")

    console(broker.bootstrap_servers, job)


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("drain", {"broker": 1}, 409, "-0 has 1 replica, and only 0 brokers would be left"),
        ("drain", {"broker": 9}, 409, "The cluster has no broker 9; it has 1."),
        ("drain", {"broker": -1}, 400, "from 0"),
        ("rebalance", {"brokers": [7]}, 409, "no broker 7"),
        ("factor", {"topic": "orders", "replication": 2}, 409, "2 replicas need 2 brokers"),
        ("factor", {"topic": "nowhere", "replication": 1}, 409, "no topic nowhere"),
        ("factor", {"topic": "orders", "replication": 1, "throttle": 0}, 400, "throttle"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(broker: Broker, path: str, body: dict, status: int, says: str) -> None:
    async def job(browser: Browser) -> None:
        reply = await browser.post(f"{MOVES}/{path}", {**body, "dry_run": True})
        assert (reply.status, says in reply.json["detail"]) == (status, True), reply.text

    console(broker.bootstrap_servers, job)


def test_a_drained_broker_is_taken_back_once(broker: Broker) -> None:
    async def job(browser: Browser) -> None:
        async with AdminClient(broker.bootstrap_servers) as admin:
            await admin.run(cordon(1, True))
        assert (await browser.get(MOVES)).data["cordoned"] == [1]
        done = (await browser.post(f"{MOVES}/undrain", {"broker": 1, "dry_run": False})).data
        assert done["done"] is True
        assert done["command"].endswith(" 1 --undo")
        assert (await browser.get(MOVES)).data["cordoned"] == []
        assert (await browser.post(f"{MOVES}/undrain", {"broker": 1, "dry_run": False})).status == 409

    console(broker.bootstrap_servers, job)
