"""Committed metadata reaches the parts of a broker."""

from __future__ import annotations

from pathlib import Path

from tests.unit.server.several_nodes import SeveralNodes
from tests.unit.server.test_node import create, partition, with_node
from tidelog.controller.quorum_controller import QuorumController
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.server.node import Node


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


def test_the_bounds_of_listeners_follow_the_metadata_log(tmp_path: Path) -> None:
    async def change(node: Node) -> None:
        settings = [
            ("listener.name.plaintext.max.connections", "5"),
            ("listener.name.plaintext.max.connection.creation.rate", "6"),
        ]
        resource = AlterConfigsResource(
            resource_type=4,
            resource_name="",
            configs=[AlterableConfig(name=name, config_operation=0, value=value) for name, value in settings],
        )
        await node.controller.submit(
            QuorumController.incremental_alter_configs, IncrementalAlterConfigsRequest(resources=[resource])
        )
        await look(node)

    async def look(node: Node) -> None:
        (listener,) = node.listeners
        assert (listener._limits.own_connections, listener._limits.own_creation_rate) == (5, 6)

    with_node(tmp_path, change)
    with_node(tmp_path, look)


def test_a_snapshot_that_replaces_the_metadata_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1)

    async def main() -> None:
        await world.start()
        node = world.nodes[1]
        await world.create(1, "kept")
        before = node.replica.image
        await world.create(1, "new", partitions=2)
        after = node.replica.image
        node.parts.publisher.committed(after, before, None)
        assert {topic for topic, _ in (each.topic_partition for each in node.broker.replicas.partitions())} == {"kept"}
        node.parts.publisher.committed(before, after, None)
        found = sorted(each.topic_partition for each in node.broker.replicas.partitions())
        assert found == [("kept", 0), ("new", 0), ("new", 1)]
        assert all(each.is_leader for each in node.broker.replicas.partitions())

    world.run(main)
    world.close()
