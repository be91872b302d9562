"""Failed log dirs and the places of replicas reach the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.serving.test_connection import until
from tests.unit.server.test_node import create, with_node
from tidelog.broker import controller_reports
from tidelog.broker.apis.topics.metadata import Question, metadata
from tidelog.broker.request import RequestContext, Session
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tidelog.server import node as node_module
from tidelog.server.node import Node


def test_a_controller_that_was_not_told_where_replicas_lie_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else a dir that fails takes partitions with it that the controller does not know to lie there."""
    monkeypatch.setattr(node_module, "REPORT_PLACES_MS", 20)
    assign, refused = controller_reports.assign_to_dirs, iter([True, True])

    async def lost(*asked: Any) -> None:
        if next(refused, False):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "it is being elected")
        await assign(*asked)

    monkeypatch.setattr(controller_reports, "assign_to_dirs", lost)

    async def talk(node: Node) -> None:
        await create(node, "t")
        dirs = {Uuid(each.directory_id) for each in node.logs.dirs}
        await until(lambda: node.broker.image.topics.partition("t", 0).directory(1) in dirs)  # type: ignore[union-attr]

    with_node(tmp_path, talk, log_dirs=f"{tmp_path}/one,{tmp_path}/two")
    said = [record.levelname for record in caplog.records if "were not reported to the controller" in record.getMessage()]
    assert said == ["WARNING", "WARNING"]


def test_a_directory_that_fails_leaves_the_others_serving(tmp_path: Path) -> None:
    dirs = f"{tmp_path}/one,{tmp_path}/two"

    async def fail(node: Node) -> None:
        for number in range(4):
            await create(node, f"t{number}")
        failed = str(tmp_path / "two")
        lost = [log.topic_partition for log in node.logs.dirs[1].logs.values()]
        assert lost

        def told() -> bool:
            topics = node.broker.image.topics.by_name.values()
            known = {each.directory_id for each in node.logs.dirs}
            return all(partition.directories[0] in known for topic in topics for partition in topic.partitions)

        await until(told)
        node.broker.replicas.storage_failed(StorageFailure(failed, "Input/output error"))
        node.parts.reports.check()
        await until(lambda: len(node.broker.image.brokers[1].directories) == 1)
        for found in node.broker.replicas.partitions():
            offline = TopicPartition(found.topic, found.index) in lost
            assert (found.log is None) is offline
            image = node.broker.image.topics.partition(found.topic, found.index)
            assert image is not None
            assert (image.leader == -1) is offline
            assert (seen_offline(node, found.topic, found.index) == [1]) is offline
        assert not node.failed.is_set()

    with_node(tmp_path, fail, log_dirs=dirs)


def test_without_its_metadata_directory_a_node_stops(tmp_path: Path) -> None:
    async def fail(node: Node) -> None:
        node.broker.replicas.storage_failed(StorageFailure(str(tmp_path / "one"), "gone"))
        node.parts.reports.check()
        assert node.failed.is_set()

    with_node(tmp_path, fail, log_dirs=f"{tmp_path}/one,{tmp_path}/two")


def seen_offline(node: Node, topic: str, index: int) -> list[int]:
    """The offline replicas in metadata responses."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name=topic)]).encode(12)
    ctx = RequestContext(node.broker, Session("PLAINTEXT", "127.0.0.1"), ApiKey.METADATA, 12)
    answer = metadata(ctx, Question(memoryview(body), 12))
    found = MetadataResponse.decode(bytes(answer.parts[0]), 12)
    return list(found.topics[0].partitions[index].offline_replicas)
