from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.unit.server.serving.test_connection import until
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication.partition import Partition
from tidelog.server.node import Node, ready_line
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving.listener import Listener

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


def test_stored_settings_that_do_not_fit_the_file_do_not_stop_a_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The way out of them is a change, which needs a node that runs."""

    async def change(node: Node) -> None:
        lag = AlterableConfig(name="log.cleaner.min.compaction.lag.ms", config_operation=0, value="10")
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[lag])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        await node.controller.submit(QuorumController.incremental_alter_configs, request)

    with_node(tmp_path, change)
    caplog.clear()
    with_node(tmp_path, nothing, log_cleaner_max_compaction_lag_ms="5")
    assert "dynamic settings are not taken over: log.cleaner.min.compaction.lag.ms is 10" in caplog.text


def test_a_start_that_fails_gives_its_locks_back(tmp_path: Path) -> None:
    with_node(tmp_path, nothing)
    with pytest.raises(ConfigError, match=r"metadata\.log\.dir is /elsewhere"):
        with_node(tmp_path, nothing, metadata_log_dir="/elsewhere")
    with_node(tmp_path, nothing)


def test_the_ready_line_says_where_and_what(tmp_path: Path) -> None:
    async def look(node: Node) -> None:
        line = ready_line(node, 0.123)
        port = node.ports["PLAINTEXT"]
        assert line == f"tidelog is ready: PLAINTEXT://127.0.0.1:{port} (node 1, data in {tmp_path}/data, started in 0.12 s)"
        # A script that waits for the line of an installation must not take one process for it.
        line = ready_line(node, 0.123, alone=False)
        assert line == f"node 1 serves at PLAINTEXT://127.0.0.1:{port}, with its data in {tmp_path}/data, after 0.12 s"

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


def test_the_parts_of_a_node_are_there_once_it_has_started(tmp_path: Path) -> None:
    async def look(node: Node) -> None:
        other = Node(node.config, node.runtime)
        with pytest.raises(RuntimeError, match="has not started"):
            _ = other.broker
        assert node.parts.broker is node.broker

    with_node(tmp_path, look)


def test_a_start_that_fails_late_closes_what_it_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The listener cannot listen when all else is there: metadata log, session, partitions."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def refuse(listener: Listener) -> None:
        raise ConfigError("listener: in use")

    with monkeypatch.context() as patched, pytest.raises(ConfigError, match="in use"):
        patched.setattr(Listener, "open", refuse)
        with_node(tmp_path, nothing, listeners=f"PLAINTEXT://127.0.0.1:{port}")
    with_node(tmp_path, nothing, listeners=f"PLAINTEXT://127.0.0.1:{port}")


ONLY_WHERE_SWITCHED_ON = (
    "cryptography",
    "gssapi",
    "hmac",
    "ipaddress",
    "jwt",
    "re2",
    "secrets",
    "xxhash",
    "tidelog.broker.access_control",
    "tidelog.broker.authentication",
    "tidelog.client.kerberos",
    "tidelog.client.net.kerberos",
    "tidelog.client.net.tickets",
    "tidelog.client.settings",
    "tidelog.config.authorizer",
    "tidelog.config.jaas",
    "tidelog.config.jks",
    "tidelog.config.key_store_formats",
    "tidelog.config.listener_gssapi",
    "tidelog.config.listener_oauth",
    "tidelog.config.listener_sasl",
    "tidelog.config.listener_tls",
    "tidelog.client.net.tls",
    "tidelog.server.cluster.node_tickets",
    "tidelog.server.serving.node_tls",
    "tidelog.controller.acls",
    "tidelog.controller.delegation_tokens",
    "tidelog.controller.scram_credentials",
    "tidelog.security.",
    "tidelog.server.serving.authorizer_log",
    "tidelog.server.serving.issuer_keys",
    "tidelog.server.serving.kerberos",
    "tidelog.server.serving.sasl_mechanisms",
    "tidelog.server.serving.tls_",
)
"""A name, or how names begin; ``ssl`` is not among them, because asyncio imports it."""


NEVER_ASKED_FOR = (
    "tidelog.broker.apis.cluster.acls",
    "tidelog.broker.apis.cluster.client_quotas",
    "tidelog.broker.apis.cluster.delegation_tokens",
    "tidelog.broker.apis.cluster.features",
    "tidelog.broker.apis.cluster.quorum",
    "tidelog.broker.apis.cluster.raft_voters",
    "tidelog.broker.apis.cluster.sasl",
    "tidelog.broker.apis.cluster.scram",
    "tidelog.broker.apis.groups.streams_groups",
    "tidelog.broker.apis.records.producers",
    "tidelog.broker.apis.groups.share_groups",
    "tidelog.broker.apis.topics.alter_configs",
    "tidelog.broker.apis.topics.configs",
    "tidelog.broker.apis.topics.log_dirs",
    "tidelog.broker.apis.topics.partitions",
    "tidelog.broker.apis.transactions.transaction_admin",
    "tidelog.broker.shares.share",
    "tidelog.coordinator.group.share",
    "tidelog.coordinator.group.streams",
    "tidelog.coordinator.share.coordinator",
    "tidelog.controller.client_quotas",
    "tidelog.controller.create_partitions",
    "tidelog.controller.elect_leaders",
    "tidelog.controller.reassignments",
    "tidelog.controller.update_features",
    "tidelog.metrics.catalog",
    "tidelog.replication.share",
    "tidelog.protocol.messages.alter_user_scram_credentials",
    "tidelog.protocol.messages.create_acls",
    "tidelog.protocol.messages.create_delegation_token",
    "tidelog.protocol.messages.delete_acls",
    "tidelog.protocol.messages.describe_acls",
    "tidelog.replication.fetcher",
    "tidelog.replication.follower_log",
    "tidelog.server.upkeep.http",
    "tidelog.server.upkeep.monitoring",
    "tidelog.server.upkeep.node_metrics",
)
"""Requests that a producer does not send, and what a node needs only to follow another one, or to be monitored."""


def test_a_plaintext_node_loads_nothing_of_security_and_nothing_that_it_is_not_asked_for() -> None:
    """What a node loads for a feature that is off costs every node and every test its time and memory."""
    script = (
        "import sys, tidelog.cli.main, tidelog.cli.start\n"
        "from tidelog.testing import Broker\n"
        "with Broker() as broker: broker.produce('t', 'v')\n"
        f"off = {(*ONLY_WHERE_SWITCHED_ON, *NEVER_ASKED_FOR)!r}\n"
        "print(sorted(name for name in sys.modules if name.startswith(off) and name != 'tidelog.security.principal'))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "[]\n"
