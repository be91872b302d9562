from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.serving.test_connection import until
from tidelog.broker import lifecycle
from tidelog.broker.apis.topics.metadata import Question, metadata
from tidelog.broker.request import RequestContext, Session
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError, StorageFailure
from tidelog.model.ids import TopicPartition, Uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication.partition import Partition
from tidelog.server import node as node_module
from tidelog.server.node import Node, ready_line
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.storage.checkpoints import META_PROPERTIES

Talk = Callable[[Node], Awaitable[None]]


def with_node(directory: Path, talk: Talk, **settings: str) -> None:
    """Start a node, ``talk``, stop it in order."""
    loop = new_event_loop()
    runtime = LoopRuntime(loop)
    values = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory / "data"),
        "tidelog.http.listener": "",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }

    async def main() -> None:
        node = Node(BrokerConfig.from_properties(values), runtime)
        await node.start()
        try:
            await talk(node)
        finally:
            await node.stop()

    async def bounded() -> None:
        await asyncio.wait_for(main(), 60)

    try:
        loop.run_until_complete(bounded())
    finally:
        loop.run_until_complete(runtime.close())
        loop.close()


async def create(node: Node, name: str, partitions: int = 1, **settings: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    await node.controller.submit(QuorumController.create_topics, CreateTopicsRequest(topics=[topic]))


def partition(node: Node, name: str, index: int = 0) -> Partition:
    found = node.broker.replicas.by_name(name, index)
    assert isinstance(found, Partition)
    return found


def seen_offline(node: Node, topic: str, index: int) -> list[int]:
    """The offline replicas in metadata responses."""
    body = MetadataRequest(topics=[MetadataRequestTopic(name=topic)]).encode(12)
    ctx = RequestContext(node.broker, Session("PLAINTEXT", "127.0.0.1"), ApiKey.METADATA, 12)
    answer = metadata(ctx, Question(memoryview(body), 12))
    found = MetadataResponse.decode(bytes(answer.parts[0]), 12)
    return list(found.topics[0].partitions[index].offline_replicas)


def test_a_controller_that_was_not_told_where_replicas_lie_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else a dir that fails takes partitions with it that the controller does not know to lie there."""
    monkeypatch.setattr(node_module, "TELL_DIRS_MS", 20)
    assign, refused = lifecycle.assign_to_dirs, iter([True, True])

    async def lost(*asked: Any) -> None:
        if next(refused, False):
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "it is being elected")
        await assign(*asked)

    monkeypatch.setattr(lifecycle, "assign_to_dirs", lost)

    async def talk(node: Node) -> None:
        await create(node, "t")
        dirs = {Uuid(each.directory_id) for each in node.logs.dirs}
        await until(lambda: node.broker.image.topics.partition("t", 0).directory(1) in dirs)  # type: ignore[union-attr]

    with_node(tmp_path, talk, log_dirs=f"{tmp_path}/one,{tmp_path}/two")
    said = [record.levelname for record in caplog.records if "log dirs replicas lie" in record.getMessage()]
    assert said == ["WARNING", "WARNING"]


async def nothing(node: Node) -> None:
    """Start and stop."""


def test_a_node_forms_a_cluster_of_one_and_finds_it_again(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    async def look(node: Node) -> None:
        seen.append((node.broker.cluster_id, node.broker.image.brokers[1].epoch))
        assert not node.broker.image.brokers[1].fenced

    with_node(tmp_path, look)
    with_node(tmp_path, look)
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] < seen[1][1]


def test_what_was_written_is_there_after_a_stop_and_leads_in_a_new_epoch(tmp_path: Path) -> None:
    async def write(node: Node) -> None:
        await create(node, "kept", 2)
        batch = build_batch([RecordData(b"k", b"v", node.runtime.now_ms(), ())])
        partition(node, "kept", 1).append(memoryview(batch), node.runtime.now_ms(), 1)

    async def look(node: Node) -> None:
        log = partition(node, "kept", 1).log
        assert log is not None
        assert (log.log_end_offset, log.high_watermark) == (1, 1)
        assert partition(node, "kept", 1).is_leader
        assert partition(node, "kept", 1).leader_epoch > 0

    with_node(tmp_path, write)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with_node(tmp_path, look)


def test_a_running_node_has_no_mark_of_a_clean_stop(tmp_path: Path) -> None:
    async def look(node: Node) -> None:
        assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()

    with_node(tmp_path, nothing)
    with_node(tmp_path, look)


def test_settings_of_topics_and_brokers_follow_the_metadata_log(tmp_path: Path) -> None:
    async def change(node: Node) -> None:
        await create(node, "t")

        def resource(kind: int, name: str, setting: str, value: str) -> AlterConfigsResource:
            return AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=[AlterableConfig(name=setting, config_operation=0, value=value)]
            )

        request = IncrementalAlterConfigsRequest(
            resources=[resource(2, "t", "flush.messages", "3"), resource(4, "", "log.retention.ms", "1234")]
        )
        await node.controller.submit(QuorumController.incremental_alter_configs, request)
        log = partition(node, "t").log
        assert log is not None
        assert (log.config.flush_messages, log.config.retention_ms) == (3, 1234)

    async def look(node: Node) -> None:
        log = partition(node, "t").log
        assert log is not None
        assert (log.config.flush_messages, log.config.retention_ms) == (3, 1234)
        assert node.config.log_retention_ms == 1234

    with_node(tmp_path, change)
    with_node(tmp_path, look)


def test_two_nodes_cannot_have_one_directory_and_the_first_goes_on(tmp_path: Path) -> None:
    async def intrude(node: Node) -> None:
        second = Node(
            BrokerConfig.from_properties(
                {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data"), "tidelog.http.listener": ""}
            ),
            node.runtime,
        )
        with pytest.raises(ConfigError, match="in use by another process"):
            await second.start()
        await create(node, "still-here")

    with_node(tmp_path, intrude)


def test_a_start_that_fails_gives_its_locks_back(tmp_path: Path) -> None:
    with_node(tmp_path, nothing)
    with pytest.raises(ConfigError, match=r"metadata\.log\.dir is /elsewhere"):
        with_node(tmp_path, nothing, metadata_log_dir="/elsewhere")
    with_node(tmp_path, nothing)


def test_a_node_with_roles_is_not_formatted_by_accident(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tidelog format"):
        with_node(
            tmp_path,
            nothing,
            process_roles="broker,controller",
            node_id="1",
            listeners="PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            controller_listener_names="CONTROLLER",
        )
    assert not (tmp_path / "data" / META_PROPERTIES).exists()


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
        node._watch_dirs()
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
        node._watch_dirs()
        assert node.failed.is_set()

    with_node(tmp_path, fail, log_dirs=f"{tmp_path}/one,{tmp_path}/two")


def test_the_ready_line_says_where_and_what(tmp_path: Path) -> None:
    async def look(node: Node) -> None:
        line = ready_line(node, 0.123)
        port = node.ports["PLAINTEXT"]
        assert line == f"tidelog is ready: PLAINTEXT://127.0.0.1:{port} (node 1, data in {tmp_path}/data, started in 0.12 s)"

    with_node(tmp_path, look)


def test_many_partitions_are_loaded_again(tmp_path: Path) -> None:
    async def fill(node: Node) -> None:
        await create(node, "many", 50)

    async def look(node: Node) -> None:
        assert len(node.logs) == 50
        assert sum(found.is_leader for found in node.broker.replicas.partitions()) == 50

    with_node(tmp_path, fill)
    with_node(tmp_path, look)


def test_a_partition_of_a_directory_that_is_offline_is_not_begun_anew_elsewhere(tmp_path: Path) -> None:
    dirs = f"{tmp_path}/one,{tmp_path}/two"

    async def fill(node: Node) -> None:
        await create(node, "spread", 4)
        image = node.broker.image
        known = {each.directory_id for each in node.logs.dirs}
        await until(lambda: {p.directories[0] for p in node.broker.image.topics.by_name["spread"].partitions} == known)
        assert image is not node.broker.image

    async def look(node: Node) -> None:
        assert len(node.logs) == 2
        assert sum(found.log is None for found in node.broker.replicas.partitions()) == 2

    with_node(tmp_path, fill, log_dirs=dirs)
    (tmp_path / "two").rename(tmp_path / "away")
    (tmp_path / "two").write_text("a disk that is not mounted")
    with_node(tmp_path, look, log_dirs=dirs)


def test_a_broker_that_is_unregistered_while_it_runs_registers_again_and_leads_again(tmp_path: Path) -> None:
    async def unregister(node: Node) -> None:
        await create(node, "led", 2)
        before = node.broker.image.brokers[1].epoch
        await node.controller.submit(QuorumController.unregister_broker, UnregisterBrokerRequest(broker_id=1))
        await until(lambda: 1 in node.broker.image.brokers and not node.broker.image.brokers[1].fenced)
        assert node.broker.image.brokers[1].epoch > before
        assert all(partition(node, "led", index).is_leader for index in range(2))

    with_node(tmp_path, unregister)


async def _create_lost(node: Node) -> None:
    await create(node, "lost")


def test_a_directory_with_partitions_but_no_meta_properties_is_not_formatted(tmp_path: Path) -> None:
    with_node(tmp_path, _create_lost)
    (tmp_path / "data" / META_PROPERTIES).unlink()
    with pytest.raises(ConfigError, match=f"has no {META_PROPERTIES}, but holds .*/lost-0"):
        with_node(tmp_path, nothing)
    assert not (tmp_path / "data" / META_PROPERTIES).exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, r"holds no metadata, but .*/lost-0 holds a partition"),
        (b"", r"holds no metadata, but .*/lost-0 holds a partition"),
        (b"\0" * 5000, r"5000 bytes at position 0 are damaged: they held the metadata records 0 to"),
    ],
)
def test_a_lost_metadata_log_beside_partitions_stops_the_start(tmp_path: Path, content: bytes | None, problem: str) -> None:
    with_node(tmp_path, _create_lost)
    file = tmp_path / "data" / "__cluster_metadata-0" / f"{0:020d}.log"
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(MetadataLogError, match=problem):
        with_node(tmp_path, nothing)


def test_a_partition_that_cannot_be_loaded_in_the_only_dir_stops_the_start(tmp_path: Path) -> None:
    with_node(tmp_path, _create_lost)
    (tmp_path / "data" / "lost-0" / "partition.metadata").write_bytes(b"nonsense")
    with pytest.raises(StorageFailure, match=r"partition\.metadata"):
        with_node(tmp_path, nothing)


def test_a_second_dir_with_partitions_but_no_meta_properties_stops_the_start(tmp_path: Path) -> None:
    dirs = f"{tmp_path}/one,{tmp_path}/two"

    async def fill(node: Node) -> None:
        await create(node, "spread", 4)

    with_node(tmp_path, fill, log_dirs=dirs)
    (tmp_path / "two" / META_PROPERTIES).unlink()
    with pytest.raises(ConfigError, match=f"two has no {META_PROPERTIES}, but holds .*/spread-"):
        with_node(tmp_path, nothing, log_dirs=dirs)


def test_an_empty_dir_may_be_added(tmp_path: Path) -> None:
    with_node(tmp_path, _create_lost, log_dirs=f"{tmp_path}/one")
    with_node(tmp_path, nothing, log_dirs=f"{tmp_path}/one,{tmp_path}/two")
    assert (tmp_path / "two" / META_PROPERTIES).exists()


def test_partitions_moved_by_hand_out_of_a_dir_that_is_no_more_are_led_again(tmp_path: Path) -> None:
    async def fill(node: Node) -> None:
        await create(node, "moved", 4)
        known = {each.directory_id for each in node.logs.dirs}
        await until(lambda: all(each.directories[0] in known for each in node.broker.image.topics.by_name["moved"].partitions))

    async def look(node: Node) -> None:
        await until(lambda: all(partition(node, "moved", index).is_leader for index in range(4)))

    with_node(tmp_path, fill, log_dirs=f"{tmp_path}/one,{tmp_path}/two")
    by_hand = list((tmp_path / "two").glob("moved-*"))
    assert by_hand
    for path in by_hand:
        path.rename(tmp_path / "one" / path.name)
    with_node(tmp_path, look, log_dirs=f"{tmp_path}/one")
