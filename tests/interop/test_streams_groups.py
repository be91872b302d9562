"""A Kafka Streams application with ``group.protocol=streams`` and Apache Kafka's tool for its groups, against a node. ``--broker
apache`` runs the same against Apache Kafka."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.availability import unavailable
from tests.interop.nodes import Node
from tests.interop.test_share_groups import run
from tests.systems.exactly_once import HERE, App, committed, judge_counts
from tools.jars import JarsMissing, compiled_against

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PARTITIONS = 4


class Application:
    """One instance of the word count, and what it has been given to count."""

    def __init__(self, node: Node, home: Path) -> None:
        try:
            compiled_against(HERE / "streams")
        except JarsMissing as missing:
            unavailable(missing)
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in ("lines", "counts")]).values():
            future.result()
        self.protocol = "classic"
        self._producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
        self._app = App("streams", home / "streams.log", lambda: [node.bootstrap, str(home / "state"), self.protocol])
        self._lines = itertools.count()
        self.written: list[bytes] = []

    def start(self, protocol: str) -> None:
        self.protocol = protocol
        self._app.start()

    def feed(self, lines: int) -> None:
        """More words, of which the same ones come again."""
        for number in itertools.islice(self._lines, lines):
            line = b"a b word-%d" % (number % 50)
            self._producer.produce("lines", key=b"%d" % number, value=line)
            self.written.append(line)
        assert self._producer.flush(60) == 0

    def stop(self) -> None:
        """In order: the members leave."""
        assert self._app.process is not None
        self._app.process.terminate()
        self._app.process.wait(60)
        self._app.process = None

    def kill(self) -> None:
        self._app.kill()


@pytest.fixture
def application(node: Node, tmp_path: Path) -> Iterator[Application]:
    made = Application(node, tmp_path)
    yield made
    made.kill()


def test_an_application_moves_from_the_classic_protocol_to_a_streams_group_and_back(node: Node, application: Application) -> None:
    """Its offsets, its state and its topics stay: each count comes once."""
    group = ("--entity-type", "groups", "--entity-name", "word-count")
    run(node, CONFIGS, "--alter", *group, "--add-config", "streams.num.standby.replicas=1")
    for protocol in ("classic", "streams", "classic", "streams"):
        application.feed(100)
        application.start(protocol)
        print(protocol, judge_counts(application.written, committed(node.bootstrap, "counts", PARTITIONS)))
        if protocol == "streams":
            described = run(node, GROUPS, "--describe", "--group", "word-count", "--members")
            assert len(re.findall(r"word-count\s", described)) >= 2, described
            assert re.search(r"ACTIVE.*0:\[", described), described
            assert re.search(r"word-count\s.*Stable\s+2", run(node, GROUPS, "--describe", "--group", "word-count", "--state"))
            offsets = run(node, GROUPS, "--describe", "--group", "word-count", "--offsets")
            assert re.search(r"word-count\s+lines\s+3\s+0", offsets), offsets
            assert "word-count" in run(node, GROUPS, "--list")
        application.stop()
    from_start = ("--reset-offsets", "--group", "word-count", "--input-topic", "lines", "--to-earliest", "--execute")
    reset = run(node, GROUPS, *from_start)
    assert re.search(r"word-count\s+lines\s+0\s+0", reset), reset
    assert "successful" in run(node, GROUPS, "--delete", "--group", "word-count")
    assert "word-count" not in run(node, GROUPS, "--list")
