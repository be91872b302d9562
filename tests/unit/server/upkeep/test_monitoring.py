"""/metrics and /healthz of a real node, asked over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.server.controllers import Controllers
from tidelog.config.resolve import BrokerConfig
from tidelog.metrics.catalog import CATALOG
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.monitoring import Monitoring

FREE = {"tidelog.http.listener": "127.0.0.1:0"}


def with_node(tmp_path: Path, talk: Callable[[Node], Awaitable[None]], **properties: str) -> None:
    """Run ``talk`` beside a node that serves."""
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": f"{tmp_path}/a,{tmp_path}/b", **FREE, **properties}

    async def run() -> None:
        runtime = LoopRuntime(asyncio.get_running_loop())
        node = Node(BrokerConfig.from_properties(settings), runtime)
        await node.start()
        try:
            await asyncio.wait_for(talk(node), 30)
        finally:
            await node.stop()
            await runtime.close()

    asyncio.run(run())


async def get(node: Node, path: str) -> tuple[int, bytes]:
    assert node.monitoring.address is not None
    reader, writer = await asyncio.open_connection(*node.monitoring.address)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ", 2)[1]), body


def test_metrics_are_served_and_each_of_the_catalogue_has_a_source(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        status, body = await get(node, "/metrics")
        assert status == 200
        families = {family.name: family for family in text_string_to_metric_families(body.decode())}
        served = {f"{name}_total" if family.type == "counter" else name for name, family in families.items()}
        assert {metric.name for metric in CATALOG} <= served
        assert families["kafka_controller_kafkacontroller_activecontrollercount"].samples[0].value == 1
        assert families["kafka_log_logmanager_logdirectoryoffline"].samples[0].labels == {"logDirectory": f"{tmp_path}/a"}

    with_node(tmp_path, talk)


def test_health_tells_of_failed_log_dirs_and_of_a_node_that_stops(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        status, body = await get(node, "/healthz")
        assert (status, json.loads(body)) == (200, {"status": "ok", "node_id": 1, "offline_log_dirs": []})
        broken = node.logs.dirs[1]
        broken.fail(StorageFailure(broken.path, "full"))
        status, body = await get(node, "/healthz")
        assert (status, json.loads(body)["status"], json.loads(body)["offline_log_dirs"]) == (200, "degraded", [broken.path])
        node.failed.set()
        assert (await get(node, "/healthz"))[0] == 503

    with_node(tmp_path, talk)


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        assert node.monitoring.address is None

    with_node(tmp_path, talk, **{"tidelog.http.listener": ""})


@pytest.fixture
def taken_port() -> object:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_port_that_somebody_chose_and_that_is_taken_stops_the_start(tmp_path: Path, taken_port: int) -> None:
    async def talk(node: Node) -> None:
        raise AssertionError("it started")

    with pytest.raises(ConfigError, match=f"tidelog.http.listener is 127.0.0.1:{taken_port}"):
        with_node(tmp_path, talk, **{"tidelog.http.listener": f"127.0.0.1:{taken_port}"})


def test_where_the_default_port_is_taken_a_free_one_is_used_and_told(
    tmp_path: Path, taken_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(node: Node) -> None:
        await node.monitoring.stop()
        del node.config.static["tidelog.http.listener"]
        node.config.tidelog_http_listener = f"127.0.0.1:{taken_port}"
        await node.monitoring.listen()
        assert node.monitoring.address is not None
        assert node.monitoring.address[1] != taken_port
        assert (await get(node, "/healthz"))[0] == 200

    with caplog.at_level(logging.INFO):
        with_node(tmp_path, talk)
    (warning,) = [each for each in caplog.records if "Metrics are at 127.0.0.1:" in each.getMessage()]
    assert warning.levelno == logging.WARNING


def test_a_wrong_address_is_refused_before_anything_is_formatted(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        raise AssertionError("it started")

    with pytest.raises(ConfigError, match=r"tidelog\.http\.listener"):
        with_node(tmp_path, talk, **{"tidelog.http.listener": "no.such.host.invalid:9644"})
    assert list(tmp_path.iterdir()) == []


def test_a_node_is_live_while_it_starts_and_ready_once_it_serves(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        assert await get(node, "/livez") == (200, b"live\n")
        assert await get(node, "/readyz") == (200, b"ready\n")
        node.life.fenced = True
        assert await get(node, "/readyz") == (503, b"the broker is fenced by the active controller\n")
        starting: Any = SimpleNamespace(monitoring=Monitoring(node))
        await starting.monitoring.listen()
        assert await get(starting, "/livez") == (200, b"live\n")
        assert await get(starting, "/readyz") == (503, b"the node is starting\n")
        assert (await get(starting, "/metrics"))[0] == 503
        assert json.loads((await get(starting, "/healthz"))[1])["status"] == "starting"
        await starting.monitoring.stop()
        node.failed.set()
        assert (await get(node, "/livez"))[0] == (await get(node, "/readyz"))[0] == 503

    with_node(tmp_path, talk)


def test_a_broker_that_stops_is_not_ready(tmp_path: Path) -> None:
    async def talk(node: Node) -> None:
        assert node.life.why_not_ready() is None
        await node.life.shut_down()
        assert node.life.why_not_ready() == "the broker stops"

    with_node(tmp_path, talk)


def test_a_controller_has_metrics_and_health_of_its_own(tmp_path: Path) -> None:
    world = Controllers(tmp_path, voters=1, **{"tidelog.http.listener": "127.0.0.1:0"})

    async def main() -> None:
        await world.start()
        await world.set("3")
        node: Any = world.nodes[1]
        status, body = await get(node, "/metrics")
        assert status == 200
        families = {family.name: family for family in text_string_to_metric_families(body.decode())}
        assert families["kafka_controller_kafkacontroller_activecontrollercount"].samples[0].value == 1
        assert families["kafka_server_raftmetrics_current_epoch"].samples[0].value >= 1
        status, body = await get(node, "/healthz")
        assert (status, json.loads(body)["status"]) == (200, "ok")
        assert await get(node, "/readyz") == (200, b"ready\n")

    world.run(main)
    world.close()
