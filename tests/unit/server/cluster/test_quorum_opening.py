"""What the settings say of the metadata quorum."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.unit.server.controllers import CLUSTER, FS, NOW, directory_id
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.server.cluster.quorum_opening import MetadataDir, open_member
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime


def test_a_directory_of_a_larger_quorum_is_refused_by_a_node_that_nobody_could_reach(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path)

    async def main() -> None:
        config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://localhost:0", "log.dirs": world.path(1)})
        assert config.embedded
        node = Node(config, world.runtime, FS)
        with pytest.raises(MetadataLogError, match=r"no listener on which they could reach it"):
            await node.start()

    world.run(main)
    world.close()


def test_without_voters_and_without_an_address_to_ask_a_member_is_refused(runtime: LoopRuntime, tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    format_dirs(FS, FormatRequest([path], 1, CLUSTER), rng=random.Random(1), now_ms=NOW)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": path,
        "listeners": "PLAINTEXT://localhost:0,CONTROLLER://localhost:0",
        "controller.listener.names": "CONTROLLER",
    }
    where = MetadataDir(FS, path, directory_id(1), CLUSTER)
    with pytest.raises(ConfigError, match=r"set controller\.quorum\.bootstrap\.servers"):
        open_member(BrokerConfig.from_properties(settings), runtime, where, ports={"CONTROLLER": 9093})


def test_controllers_are_reached_on_the_first_of_the_controller_listeners(runtime: LoopRuntime, tmp_path: Path) -> None:
    """In whatever order ``listeners`` has them: as Kafka, whose nodes move to another listener by naming it first."""
    path = str(tmp_path / "data")
    format_dirs(FS, FormatRequest([path], 1, CLUSTER), rng=random.Random(1), now_ms=NOW)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": path,
        "listeners": "PLAINTEXT://localhost:0,OLD://localhost:1,NEW://localhost:2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OLD:PLAINTEXT,NEW:PLAINTEXT",
        "controller.listener.names": "new,old",
        "controller.quorum.voters": "1@localhost:2",
    }
    where = MetadataDir(FS, path, directory_id(1), CLUSTER)
    member = open_member(BrokerConfig.from_properties(settings), runtime, where, ports={})
    assert member.config.raft.listener == "NEW"
    assert {each.name for each in member.config.raft.endpoints} == {"OLD", "NEW"}
    member.log.close()
