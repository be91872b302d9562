from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.cluster.test_controller_node import talk
from tests.unit.server.controllers import Controllers
from tests.unit.server.loops import run, until
from tests.unit.server.several_nodes import SeveralNodes
from tests.unit.server.test_node import create, with_node
from tidelog.broker.authorization import allows
from tidelog.broker.envelope import sealed_request
from tidelog.broker.node import Broker
from tidelog.broker.ports import Asker
from tidelog.broker.request import RequestContext, Session
from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.model.errors import ConfigError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.records.record import iter_records
from tidelog.security.principal import KafkaPrincipal
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.audit_topic import NotWritten
from tidelog.server.upkeep.auditing import Carrier

ON = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


def asks(node: Node, operation: Op, topic: str, name: str = "alice") -> bool:
    session = Session("PLAINTEXT", "127.0.0.1", KafkaPrincipal("User", name))
    ctx: RequestContext[Broker] = RequestContext(node.broker, session, ApiKey.CREATE_PARTITIONS, 3, 1, "me")
    return allows(ctx, operation, ResourceType.TOPIC, topic)


def stored(folder: Path) -> list[dict[str, Any]]:
    """The events in a replica of the audit topic."""
    kept: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        while size := int.from_bytes(data[8:12]):
            kept += [json.loads(record.value or b"") for record in iter_records(data[: 12 + size])]
            data = data[12 + size :]
    return kept


def done(events: Sequence[dict[str, Any]], principal: str = "User:alice") -> list[tuple[str, str, bool]]:
    return [
        (each["operation"], each["resourceName"], each["allowed"])
        for each in events
        if each["type"] == "authorization" and each["principal"] == principal
    ]


def test_a_node_writes_a_file_and_a_topic_and_flushes_both_when_it_stops(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    async def talk(node: Node) -> None:
        await create(node, "orders")
        assert not asks(node, Op.ALTER, "orders")
        assert asks(node, Op.ALTER, "orders", "ANONYMOUS")
        await until(lambda: path.read_bytes().count(b"\n") >= 2)
        await until(lambda: len(stored(tmp_path / "data" / "__audit-0")) >= 2)
        assert not asks(node, Op.DELETE, "orders"), "just before the stop"

    places = {"tidelog_audit_file": str(path), "tidelog_audit_topic": "__audit"}
    with_node(tmp_path, talk, **{name.replace(".", "_"): value for name, value in ON.items()}, **places)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert done(lines) == [("ALTER", "orders", False), ("DELETE", "orders", False)]
    assert done(lines, "User:ANONYMOUS") == [("ALTER", "orders", True)]
    assert stored(tmp_path / "data" / "__audit-0") == lines


def test_brokers_write_to_one_topic_wherever_its_leader_is_and_do_not_audit_that(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, given=ON | {"tidelog.audit.topic": "__audit"})

    def in_topic() -> list[dict[str, Any]]:
        topics = [node.broker.image.topics.by_name.get("__audit") for node in world.nodes.values()]
        leaders = {topic.partitions[0].leader for topic in topics if topic is not None}
        return [event for leader in leaders for event in stored(Path(world.path(leader)) / "__audit-0")]

    async def main() -> None:
        await world.start()
        for round_ in range(3):
            for node in world.nodes.values():
                assert not asks(node, Op.ALTER, f"orders-{round_}")
        expected = sorted(("ALTER", f"orders-{round_}", False) for round_ in range(3) for _ in world.nodes)

        await world.until(lambda: sorted(done(in_topic())) == expected)
        events = in_topic()
        assert {each["node"] for each in events if each["type"] == "authorization"} == {1, 2}
        assert not [each for each in events if each.get("request") == "Produce"]

    world.run(main)
    world.close()


def test_a_file_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    async def nothing(node: Node) -> None:
        """It does not start."""

    with pytest.raises(ConfigError, match=r"tidelog\.audit\.file is .*gone/audit\.jsonl, which cannot be written"):
        with_node(tmp_path, nothing, tidelog_audit_file=str(tmp_path / "gone" / "audit.jsonl"))


class Place:
    """Where lines go."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.refuses = 0

    async def write(self, lines: Sequence[bytes]) -> None:
        if self.refuses:
            self.refuses -= 1
            raise NotWritten("not now")
        self.lines += lines


def test_what_a_place_does_not_take_waits_and_is_tried_again(
    runtime: LoopRuntime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidelog.server.upkeep.auditing.GATHER_S", 0.001)
    monkeypatch.setattr("tidelog.server.upkeep.auditing.RETRY_S", 0.001)
    caplog.set_level(logging.INFO)
    place = Place()
    carrier = Carrier("there", runtime)

    async def main() -> None:
        carrier.queue.add(b"before the start")
        carrier.start(place.write)
        await until(lambda: len(place.lines) == 1)
        place.refuses = 3
        for number in range(1200):
            carrier.queue.add(b"%d" % number)
        await until(lambda: len(place.lines) == 1201)
        place.refuses = 1
        carrier.queue.add(b"last")
        await carrier.stop()

    run(runtime, main)
    assert place.lines == [b"before the start", *(b"%d" % number for number in range(1200))]
    told = [record.getMessage() for record in caplog.records if record.name.endswith("auditing")]
    assert told == [
        "the audit cannot be written to there, which is tried again: not now",
        "the audit is written to there again; 0 events were dropped since the start",
        "the audit cannot be written to there, which is tried again: not now",
        "the audit loses 1 events, which there did not take before the node stopped",
    ]


def test_a_controller_alone_keeps_a_file_of_what_it_decides_for_clients_of_brokers(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    world = Controllers(tmp_path, 1, **ON, **{"tidelog.audit.file": str(path)})
    client = KafkaPrincipal("User", "ann")
    sealed = sealed_request(Asker(client, "console", "10.1.2.3"), 7, CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)]))

    async def main() -> None:
        await world.start()
        await world.until(world.active)
        await talk(world.ports[1], sealed)

    world.run(main)
    world.close()
    (event,) = [each for each in map(json.loads, path.read_bytes().splitlines()) if each.get("principal") == "User:ann"]
    assert (event["request"], event["operation"], event["resourceName"]) == ("CreateTopics", "CREATE", "t")
    assert (event["host"], event["listener"], event["clientId"]) == ("10.1.2.3", "CONTROLLER", "console")
    assert (event["allowed"], event["rule"]) == (False, "no-acl")
