"""A running node is administered: settings take effect without a restart and outlive one, replicas move between its disks
while they are written, and a kill in the middle of that loses nothing."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.nodes import Node, running
from tidelog.protocol.framing import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    response_header_is_flexible,
)
from tidelog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.registry import response_class

confluent_kafka = pytest.importorskip("confluent_kafka")
BROKER, LOGGER = 4, 8
SET, DELETE = 0, 1
VALUE = b"x" * 400


class Client:
    """One connection that asks any question."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), 20)

    def ask(self, request: Any, version: int) -> Any:
        frame = bytes(encode_request_header(RequestHeader(request.API_KEY, version, 1, "admin"))) + request.encode(version)
        self.connection.sendall(struct.pack(">i", len(frame)) + frame)
        body = self._exactly(struct.unpack(">i", self._exactly(4))[0])
        _, position = decode_response_header(body, response_header_is_flexible(request.API_KEY, version))
        return response_class(request.API_KEY).decode(memoryview(body)[position:], version)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            if not part:
                raise ConnectionError("closed by the node")
            data += part
        return data

    def create(self, topic: str) -> None:
        wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
        (created,) = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7).topics
        assert created.error_code == 0, created

    def alter(self, kind: int, name: str, setting: str, value: str | None) -> None:
        change = AlterableConfig(name=setting, config_operation=DELETE if value is None else SET, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
        (answer,) = self.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert answer.error_code == 0, answer

    def move(self, topic: str, path: Path) -> None:
        wanted = AlterReplicaLogDir(str(path), [AlterReplicaLogDirTopic(topic, [0])])
        (answer,) = self.ask(AlterReplicaLogDirsRequest(dirs=[wanted]), 2).results
        assert answer.partitions[0].error_code == 0

    def dirs_of(self, topic: str) -> tuple[list[str], list[str]]:
        """(where it lies, where it is being copied to)."""
        found: tuple[list[str], list[str]] = ([], [])
        for result in self.ask(DescribeLogDirsRequest(topics=None), 5).results:
            for each in result.topics:
                if each.name == topic:
                    for partition in each.partitions:
                        found[partition.is_future_key].append(result.log_dir)
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    settings = {"log.dirs": f"{tmp_path}/data,{tmp_path}/more", "log.segment.bytes": "1048576"}
    with running(Node("tidelog", tmp_path, None, settings)) as started:
        yield started


def write(node: Node, topic: str, first: int, count: int) -> list[str]:
    """Errors of the records that were not taken."""
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
    errors: list[str] = []
    for number in range(first, first + count):
        producer.produce(
            topic, b"%d " % number + VALUE, on_delivery=lambda error, _: errors.append(error.name()) if error else None
        )
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    return errors


def read(node: Node, topic: str, count: int) -> list[int]:
    """The numbers of the records, in the order of their offsets."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": node.bootstrap, "group.id": "g"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value().split()[0]) for message in consumer.consume(5000, 0.5) if not message.error()]
    consumer.close()
    return found


def test_a_setting_of_all_brokers_holds_at_once_and_after_a_restart(node: Node) -> None:
    client = Client(node.ports[0])
    client.create("t")
    client.alter(BROKER, "", "message.max.bytes", "300")
    assert write(node, "t", 0, 1) == ["MSG_SIZE_TOO_LARGE"]
    node.stop()
    node.start()
    assert write(node, "t", 0, 1) == ["MSG_SIZE_TOO_LARGE"]
    Client(node.ports[0]).alter(BROKER, "", "message.max.bytes", None)
    assert write(node, "t", 0, 1) == []


def test_a_limit_of_connections_holds_for_the_next_one(node: Node) -> None:
    client = Client(node.ports[0])
    client.alter(BROKER, "1", "max.connections.per.ip", "1")
    with pytest.raises(OSError):
        Client(node.ports[0]).create("refused")
    client.alter(BROKER, "1", "max.connections.per.ip", None)
    Client(node.ports[0]).create("taken")


def test_a_loggers_level_changes_what_is_written_to_the_log(node: Node) -> None:
    client = Client(node.ports[0])
    client.alter(LOGGER, "1", "tidelog.server.cluster.metadata_publisher", "WARN")
    client.alter(BROKER, "", "log.retention.ms", "60000")
    client.alter(LOGGER, "1", "tidelog.server.cluster.metadata_publisher", "INFO")
    client.alter(BROKER, "", "log.retention.ms", "70000")
    assert node.log_file.read_text().count("dynamic settings changed") == 1


def test_replicas_move_between_disks_while_they_are_written_and_nothing_is_lost(node: Node) -> None:
    client = Client(node.ports[0])
    client.create("t")
    count = 0
    for number in range(4):
        assert write(node, "t", count, 5000) == []
        count += 5000
        target = node.home / ("more" if number % 2 == 0 else "data")
        client.move("t", target)
        assert write(node, "t", count, 2000) == []
        count += 2000
        deadline = time.monotonic() + 30
        while client.dirs_of("t") != ([str(target)], []):
            assert time.monotonic() < deadline, client.dirs_of("t")
    assert read(node, "t", count) == list(range(count))
    node.stop()
    node.start()
    assert read(node, "t", count) == list(range(count))
    assert not node.complaints(), json.dumps(node.complaints())


def test_a_kill_while_a_replica_moves_leaves_it_whole_in_one_of_both_places(node: Node) -> None:
    client = Client(node.ports[0])
    client.create("t")
    count = 60_000
    assert write(node, "t", 0, count) == []
    client.move("t", node.home / ("more" if client.dirs_of("t")[0][0].endswith("data") else "data"))
    node.kill()
    node.start()
    assert read(node, "t", count) == list(range(count))
    where, copies = Client(node.ports[0]).dirs_of("t")
    assert (len(where), copies) == (1, [])
