"""A job that keeps failing, from a worker's rejection over its dead letter back to a worker, until the cap; with librdkafka."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from tests.unit.cli.running_node import node_in_a_thread
from tidelog.cli.main import main

PATIENCE_S = 30.0
pytestmark = pytest.mark.timeout(240)


class World:
    def __init__(self, address: str, endpoint: str) -> None:
        self.address = address
        self.endpoint = endpoint

    def run(self, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, list(words), env={"TIDELOG_BOOTSTRAP": self.address})
        assert done.exit_code == code, done.output
        return done.stdout

    def letters(self, action: str, *words: str) -> Any:
        return json.loads(self.run("share-groups", "dead-letters", action, *words, "--group", "workers", "--output", "json"))

    def until(self, count: int) -> list[dict[str, Any]]:
        """The dead letters, once there are so many."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self.letters("list")) < count:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return list(found)

    def work(self, decide: Callable[[str], AcknowledgeType], jobs: int) -> list[tuple[str, dict[str, str]]]:
        """Value and headers of so many jobs that a worker got."""
        got: list[tuple[str, dict[str, str]]] = []
        settings = {"bootstrap.servers": self.address, "group.id": "workers", "share.acknowledgement.mode": "explicit"}
        with ShareConsumer({**settings, "log_level": 0}) as worker:
            worker.subscribe(["jobs"])
            while len(got) < jobs:
                messages = list(worker.poll(timeout=PATIENCE_S))
                assert messages, f"no job came after {got}"
                for message in messages:
                    value = message.value().decode()
                    got.append((value, {name: text.decode() for name, text in message.headers() or ()}))
                    worker.acknowledge(message, decide(value))
                worker.commit_sync(PATIENCE_S)
        return got


def reject_bad(job: str) -> AcknowledgeType:
    return AcknowledgeType.REJECT if job == "bad" else AcknowledgeType.ACCEPT


def prepare(world: World) -> None:
    world.run("features", "upgrade", "--feature", "share.version=2")
    world.run("topics", "--create", "--topic", "jobs", "--partitions", "1")
    consent = "errors.deadletterqueue.group.enable=true"
    world.run("topics", "--create", "--topic", "dlq.jobs", "--partitions", "1", "--config", consent)
    settings = {
        "share.auto.offset.reset": "earliest",
        "share.isolation.level": "read_committed",
        "errors.deadletterqueue.topic.name": "dlq.jobs",
    }
    text = ",".join(f"{name}={value}" for name, value in settings.items())
    world.run("configs", "--alter", "--group", "workers", "--add-config", text)
    producer = Producer({"bootstrap.servers": world.address})
    for job in ("good", "bad"):
        producer.produce("jobs", job, headers={"trace": "7"})
    assert producer.flush(PATIENCE_S) == 0


def test_a_job_that_keeps_failing_goes_back_until_the_cap(tmp_path: Path) -> None:
    settings = {"tidelog.http.listener": "127.0.0.1:0", "share.coordinator.state.topic.num.partitions": "1"}
    with node_in_a_thread(tmp_path, **settings) as node:
        assert node.monitoring.address is not None
        world = World(f"127.0.0.1:{node.ports['PLAINTEXT']}", f"127.0.0.1:{node.monitoring.address[1]}")
        prepare(world)
        assert sorted(world.work(reject_bad, 2)) == [("bad", {"trace": "7"}), ("good", {"trace": "7"})]
        (letter,) = world.until(1)
        assert (letter["source_offset"], letter["key"], letter["value"]) == (1, None, None), "keys and values are not copied"
        for count in ("1", "2"):
            assert world.letters("replay", "--execute", "--max-replays", "2")["replayed"] == 1
            ((job, headers),) = world.work(reject_bad, 1)
            assert (job, headers["trace"], headers["__dlq.replay.count"]) == ("bad", "7", count)
            world.until(1 + int(count))
        report = world.letters("replay", "--execute", "--max-replays", "2")
        assert (report["replayed"], report["left"], report["read_uncommitted"]) == (0, {"done": 2, "capped": 1}, [])
        why = world.run("why-record", "workers", "jobs:0:1", "--endpoint", world.endpoint, "--json", code=3)
        found = json.loads(why)["primary"]
        assert (found["cause"], found["evidence"][0]) == ("dead-lettered", "reason: Offset rejected by client.")
