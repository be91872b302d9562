"""``tidelog why-record`` on a node: what becomes of records, from the first heartbeat of a member on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.share_talk import Member, configure, create, produce
from tests.unit.cli.running_node import node_in_a_thread
from tidelog.cli.main import main

SETTINGS = {
    "tidelog.http.listener": "127.0.0.1:0",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
}


class World:
    def __init__(self, node: Any) -> None:
        self.broker: Any = SimpleNamespace(port=node.ports["PLAINTEXT"])
        assert node.monitoring.address is not None
        self.endpoint = f"127.0.0.1:{node.monitoring.address[1]}"
        self.talk = Talk(self.broker.port)

    def words(self, record: str, group: str, endpoint: str | None = None) -> list[str]:
        words = ["why-record", group, record, "--bootstrap-server", f"127.0.0.1:{self.broker.port}"]
        return [*words, "--endpoint", endpoint or self.endpoint]

    def why(self, record: str, group: str = "g", code: int = 0) -> dict[str, Any]:
        done = CliRunner().invoke(main, [*self.words(record, group), "--json"])
        assert done.exit_code == code, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def cause(self, record: str, group: str = "g", code: int = 0) -> str:
        return str(self.why(record, group, code)["primary"]["cause"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with node_in_a_thread(tmp_path_factory.mktemp("node"), **SETTINGS) as node:
        found = World(node)
        yield found
        found.talk.close()


def test_the_life_of_a_record(world: World) -> None:
    topic_id = create(world.talk, "t")
    produce(world.talk, "t", 10)
    assert world.cause("t:0:3", code=3) == "no-group"
    configure(world.talk, "g", share_auto_offset_reset="earliest", share_delivery_count_limit="2")
    member = Member(world.broker, "g")
    member.join("t")
    assert world.cause("t:0:3", code=3) == "not-fetched"
    assert member.records(topic_id, max_records=5, batch_size=1, min_bytes=1) == [(0, 9, 1)], "one batch of the log"
    found = world.why("t:0:3")
    assert (found["state"], found["primary"]["cause"], found["not_visible"]) == ("in flight", "acquired", [])
    assert f"member {member.member_id} (client" in found["primary"]["title"]
    assert "delivery 1 of 2" in found["primary"]["evidence"]
    types = [1, 1, 3, 2, *[2] * 6]
    assert member.acknowledge(topic_id, [(0, 9, types)]).error_code == 0
    assert world.cause("t:0:0") == "before-start"
    assert world.cause("t:0:2") == "before-start", "what was rejected is finished, too"
    assert world.why("t:0:3")["state"] == "available"
    assert member.records(topic_id, max_records=5, batch_size=1)[0][2] == 2
    assert "this was the last time" in world.why("t:0:3")["primary"]["advice"]
    assert world.cause("t:0:10") == "not-written"
    done = CliRunner().invoke(main, world.words("t:0:0", "g"))
    assert done.stdout.splitlines()[0] == "t:0:0 for share group g: finished"
    assert done.stdout.splitlines()[1].startswith("Answer (before-start, not certain): ")
    member.close()


def test_a_page_that_cannot_be_read_is_named(world: World) -> None:
    create(world.talk, "u")
    produce(world.talk, "u", 1)
    done = CliRunner().invoke(main, world.words("u:0:0", "unknown", "127.0.0.1:1"))
    assert done.exit_code == 3
    assert "Cause (no-group): there is no share group unknown" in done.stdout
    assert "Not visible from here: the facts of a node (" in done.stdout
    assert "only the partition's leader knows that" in done.stdout


@pytest.mark.parametrize(
    ("record", "code", "message"),
    [("t:0", 2, "TOPIC:PARTITION:OFFSET"), ("missing:0:0", 1, "UNKNOWN_TOPIC_OR_PARTITION"), ("v:7:0", 1, "no partition 7")],
)
def test_what_is_no_record_is_refused(world: World, record: str, code: int, message: str) -> None:
    if record.startswith("v"):
        create(world.talk, "v")
    done = CliRunner().invoke(main, world.words(record, "g"))
    assert done.exit_code == code
    assert message in done.output


def test_the_brokers_must_be_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["why-record", "g", "t:0:0"], env={"TIDELOG_BOOTSTRAP": ""})
    assert done.exit_code == 2
    assert "[bootstrap-server]" in done.output
