"""/facts of real nodes, compared with the table of facts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.controllers import Controllers
from tests.unit.server.upkeep.test_monitoring import get, with_node
from tidelog import __version__
from tidelog.metrics.facts import BY_PATH, FACTS, SCHEMA, TOP, Kind
from tidelog.server.node import Node
from tidelog.server.upkeep.facts_page import bounded

BROKER_ONLY = ("topics", "partitions", "groups", "transactions")
KINDS: dict[Kind, type | tuple[type, ...]] = {
    Kind.OBJECT: dict,
    Kind.LIST: list,
    Kind.TEXT: str,
    Kind.WHOLE: int,
    Kind.NUMBER: (int, float),
    Kind.TRUTH: bool,
}
"""What a value of a kind is once it was parsed."""


def paths(value: Any, path: str = "") -> set[str]:
    """All paths of a page, checked against the table."""
    found = set()
    if path and not (path.endswith("[]") and isinstance(value, dict)):
        found.add(path)
        kind = BY_PATH[path].kind
        assert value is None or (isinstance(value, KINDS[kind]) and (kind is Kind.TRUTH or value is not True)), path
    if isinstance(value, dict):
        for key, each in value.items():
            found |= paths(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for each in value:
            found |= paths(each, f"{path}[]")
    return found


def test_the_page_of_a_node_in_use_has_each_fact_of_the_table_and_no_other(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        reader = await asyncio.to_thread(use, node.ports["PLAINTEXT"])
        status, body = await get(node, "/facts")
        assert status == 200
        page = json.loads(body)
        found = paths(page)
        assert found == {fact.path for fact in FACTS}
        assert list(page) == list(
            dict.fromkeys(fact.path.split(".")[0].removesuffix("[]") for fact in FACTS if "[]" not in fact.path)
        )
        assert (page["schema"], page["names"], page["node"]["version"]) == (SCHEMA, True, __version__)
        assert page["node"]["roles"] == ["broker", "controller"]
        assert page["quorum"]["role"] == "leader"
        apis = {api["api"]: api for api in page["loop"]["apis"]}
        assert apis["Produce"]["requests"] == 3
        assert apis["Produce"]["share"] > 0
        (writer,) = [client for client in page["clients"]["busiest"] if client["client_id"] == "writer"]
        assert (writer["principal"], writer["host"]) == ("User:ANONYMOUS", "127.0.0.1")
        assert writer["requests"] > 3
        assert writer["bytes_in"] > 3000 > 100 < writer["bytes_out"]
        (topic,) = [topic for topic in page["topics"]["busiest"] if topic["topic"] == "facts"]
        assert (topic["records_in"], topic["bytes_in"] > 3000) == (3, True)
        assert {"topic": "facts", "partition": 0, "records_in": 3} in page["partitions"]["busiest"]
        assert page["partitions"]["leaders"] == page["partitions"]["count"] > 0
        assert page["process"]["memory_bytes"] > 1_000_000
        assert page["groups"] == [{"type": "classic", "state": "Stable", "count": 1, "members": 1}]
        assert page["transactions"]["ids"] == 1
        (listener,) = [each for each in page["connections"]["listeners"] if each["listener"] == "PLAINTEXT"]
        assert sum(listener["states"].values()) == page["connections"]["open"]
        await asyncio.to_thread(reader.close)

    with_node(tmp_path, talk)


def use(port: int) -> Any:
    """A producer, a transactional id, and a consumer, which is returned."""
    from confluent_kafka import Consumer, Producer

    servers = f"127.0.0.1:{port}"
    producer = Producer({"bootstrap.servers": servers, "client.id": "writer", "linger.ms": 0})
    for number in range(3):
        producer.produce("facts", bytes(1000), str(number), partition=0)
        producer.flush(20)
    transactional = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    transactional.init_transactions(20)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["facts"])
    assert len(consumer.consume(3, 20)) == 3
    return consumer


def test_a_controller_has_the_facts_of_a_process_and_of_the_quorum(tmp_path: Path) -> None:
    world = Controllers(tmp_path, voters=1, **{"tidelog.http.listener": "127.0.0.1:0"})

    async def main() -> None:
        await world.start()
        await world.set("3")
        node: Any = world.nodes[1]
        page = json.loads((await get(node, "/facts"))[1])
        assert page["node"]["roles"] == ["controller"]
        assert page["quorum"]["role"] == "leader"
        assert not set(BROKER_ONLY) & set(page)
        assert paths(page) <= set(BY_PATH)

    world.run(main)


def test_a_section_that_fails_does_not_hide_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(node: Node) -> None:
        node.broker.groups = None  # type: ignore[assignment]
        for _ in range(2):
            page = json.loads((await get(node, "/facts"))[1])
            assert page["groups"] is None
            assert page["topics"]["count"] == 0

    with_node(tmp_path, talk)
    assert caplog.text.count("groups of /facts cannot be read: AttributeError") == 1


def test_a_page_is_bounded_however_many_topics_and_clients_there_are() -> None:
    """The largest page that the lists and texts allow, every character of which takes six bytes."""
    counts = {"loop.apis[]": 100, "requests[]": 100, "requests[].phases[]": 7, "connections.listeners[]": 10}
    page = largest("", counts)
    text = json.dumps(bounded_page(page))
    assert len(text) < 1_000_000


def largest(path: str, counts: dict[str, int]) -> Any:
    """The value of a path; names come from users, other texts from tables."""
    below = [fact for fact in FACTS if fact.path.startswith(f"{path}." if path else "") and fact.path != path]
    kind = BY_PATH[path].kind if path in BY_PATH else Kind.OBJECT
    if kind is Kind.LIST:
        return [largest(f"{path}[]", counts)] * counts.get(f"{path}[]", TOP)
    names = {fact.path.removeprefix(f"{path}." if path else "").split(".")[0].split("[")[0] for fact in below}
    if kind is Kind.TEXT and not names:
        return "\x01" * 100_000 if BY_PATH[path].names else "x" * 40
    if names and kind in (Kind.OBJECT, Kind.TEXT):
        return {name: largest(f"{path}.{name}" if path else name, counts) for name in names}
    return 10**18


def bounded_page(page: dict[str, Any]) -> dict[str, Any]:
    return {name: bounded(value, name, names=True) for name, value in page.items()}
