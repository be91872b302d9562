"""What a start makes of log dirs, and when it refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.server.test_node import create, nothing, with_node
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.server.disk import DiskFileSystem
from tidelog.server.log_loading import open_logs
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime
from tidelog.storage.checkpoints import META_PROPERTIES
from tidelog.storage.reboot_detection import kernel_survived


async def _create_lost(node: Node) -> None:
    await create(node, "lost")


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


def test_a_directory_with_partitions_but_no_meta_properties_is_not_formatted(tmp_path: Path) -> None:
    with_node(tmp_path, _create_lost)
    (tmp_path / "data" / META_PROPERTIES).unlink()
    with pytest.raises(ConfigError, match=f"has no {META_PROPERTIES}, but holds .*/lost-0"):
        with_node(tmp_path, nothing)
    assert not (tmp_path / "data" / META_PROPERTIES).exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, r"bytes that should follow position 0 are missing, with the metadata records 0 to"),
        (b"", r"bytes that should follow position 0 are missing, with the metadata records 0 to"),
        (b"\0" * 5000, r"5000 bytes at position 0 are damaged, with the metadata records 0 to"),
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


def test_the_kernel_is_noted_before_clients_are_served(tmp_path: Path) -> None:
    survived: list[bool] = []

    async def look(node: Node) -> None:
        survived.append(kernel_survived(DiskFileSystem(), str(tmp_path / "data")))

    with_node(tmp_path, look)
    assert survived == [True], "a node that is killed before its first checkpoint has lost nothing"


def test_many_partitions_are_loaded_again(tmp_path: Path) -> None:
    async def fill(node: Node) -> None:
        await create(node, "many", 50)

    async def look(node: Node) -> None:
        assert len(node.logs) == 50
        assert sum(found.is_leader for found in node.broker.replicas.partitions()) == 50

    with_node(tmp_path, fill)
    with_node(tmp_path, look)


def test_dirs_that_are_not_those_of_the_settings_are_unlocked_again(runtime: LoopRuntime, tmp_path: Path) -> None:
    values = {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"}
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"metadata\.log\.dir is /elsewhere"):
            open_logs(BrokerConfig.from_properties({**values, "metadata.log.dir": "/elsewhere"}), runtime, DiskFileSystem())
    logs = open_logs(BrokerConfig.from_properties({**values, "metadata.log.dir": f"{tmp_path}/two"}), runtime, DiskFileSystem())
    assert logs.metadata_dir is logs.manager.dirs[1]
    assert logs.first_partition() is None
    logs.release()


def test_a_key_store_that_cannot_be_read_stops_a_start_before_the_format(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"listener SSL.*missing\.pem"):
        with_node(
            tmp_path,
            nothing,
            listeners="SSL://127.0.0.1:0",
            inter_broker_listener_name="SSL",
            ssl_keystore_type="PEM",
            ssl_keystore_location=str(tmp_path / "missing.pem"),
        )
    assert not (tmp_path / "data" / META_PROPERTIES).exists()
