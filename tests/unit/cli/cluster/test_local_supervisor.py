"""Who runs a local cluster, with processes that only sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tidelog.cli.broker_connection import BrokerConnection
from tidelog.cli.cluster import local_supervisor
from tidelog.cli.cluster.local_layout import LocalCluster, grown, new_cluster, save, without
from tidelog.cli.cluster.local_nodes import RESTART, STOP, NodeFolder
from tidelog.cli.cluster.local_supervisor import Supervisor, claim, who_runs
from tidelog.cli.refusal import CommandFailed
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.testing import Broker

BOUND_S = 30
SLEEPER = "import signal, sys, time; signal.signal(15, lambda *a: sys.exit(0)); print('up', flush=True); time.sleep(60)"


def start(self: NodeFolder) -> subprocess.Popen[bytes]:
    self.path.mkdir(exist_ok=True)
    with self.log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-c", SLEEPER, str(self.settings)], stdout=output)
    (self.path / "pid").write_text(f"{process.pid}\n")
    return process


class World:
    """A supervisor that is looked at step by step."""

    def __init__(self, directory: Path, cluster: LocalCluster) -> None:
        save(str(directory), cluster)
        self.directory = str(directory)
        self.said: list[str] = []
        self.supervisor = Supervisor(self.directory, cluster, self.said.append)
        for each in self.supervisor._nodes.values():
            each.start()
        self.until(lambda: all(f"node-{node.id} | up" in self.said for node in cluster.nodes))

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOUND_S
        while not condition():
            assert time.monotonic() < deadline, self.said
            self.supervisor._look()
            time.sleep(0.01)

    def folder(self, node_id: int) -> NodeFolder:
        return NodeFolder(self.directory, self.supervisor.cluster.node(node_id))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(NodeFolder, "start", start)
    monkeypatch.setattr(local_supervisor, "TICK_S", 0.01)
    monkeypatch.setattr(local_supervisor, "active_controller", lambda cluster: None)
    made = World(tmp_path, new_cluster("c", 2, 9092, (), {}))
    yield made
    made.supervisor.stop_all()


def test_a_node_that_dies_is_told_and_started_again_on_request(world: World) -> None:
    world.folder(2).signal(signal.SIGKILL)
    world.until(lambda: any("node 2 was ended by signal 9 (SIGKILL)" in line for line in world.said))
    assert world.folder(2).pid() is None
    world.folder(2).ask(RESTART)
    world.until(lambda: world.folder(2).pid() is not None)
    assert "starting node 2" in world.said


def test_a_running_node_is_restarted_on_request_and_that_is_no_death(world: World) -> None:
    before = world.folder(1).pid()
    world.folder(1).ask(RESTART)
    world.until(lambda: world.folder(1).pid() not in {None, before})
    assert not any("ended" in line for line in world.said)


def test_a_node_is_stopped_on_request(world: World) -> None:
    world.folder(2).ask(STOP)
    world.until(lambda: "node 2 is stopped" in world.said)


def test_nodes_come_and_go_with_the_file(world: World) -> None:
    cluster = grown(world.supervisor.cluster, 3)
    save(world.directory, cluster)
    world.supervisor._read = 0  # files written within one tick of the clock have the same time
    world.until(lambda: "node-3 | up" in world.said)
    assert "starting node 3, which is new" in world.said
    world.supervisor._read = 0
    save(world.directory, without(cluster, 3))
    world.until(lambda: "node 3 is removed" in world.said)


def test_only_one_runs_a_cluster_and_others_see_which(tmp_path: Path) -> None:
    assert who_runs(str(tmp_path)) is None
    with claim(str(tmp_path)):
        assert who_runs(str(tmp_path)) == os.getpid()
        with pytest.raises(CommandFailed, match=f"runs already, in process {os.getpid()}"):
            claim(str(tmp_path))
    assert who_runs(str(tmp_path)) is None, "also when the file is still there"


def test_who_does_not_answer_knows_nobody() -> None:
    assert local_supervisor.known_brokers("localhost:1", "x") == 0


def test_another_clusters_broker_at_the_same_port_knows_nobody_of_ours() -> None:
    with Broker() as broker:
        asked = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        with BrokerConnection(broker.bootstrap_servers) as connection:
            own = connection.ask(asked).cluster_id
        assert local_supervisor.known_brokers(broker.bootstrap_servers, own) == 1
        assert local_supervisor.known_brokers(broker.bootstrap_servers, "another") == 0


def test_who_is_stopped_before_all_nodes_serve_does_not_say_that_they_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeFolder, "start", start)
    monkeypatch.setattr(local_supervisor, "TICK_S", 0.001)
    world = World(tmp_path, new_cluster("c", 1, 1, (), {}))
    monkeypatch.setattr(local_supervisor, "known_brokers", lambda *_: world.supervisor._stop(2, None) or 0)
    world.supervisor._watch_for_ready()
    assert not world.supervisor._ready.is_set()
    world.supervisor.stop_all()


def test_all_are_stopped_one_after_another_and_the_active_controller_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeFolder, "start", start)
    monkeypatch.setattr(local_supervisor, "TICK_S", 0.01)
    monkeypatch.setattr(local_supervisor, "active_controller", lambda cluster: None)
    world = World(tmp_path, new_cluster("c", 5, 9092, (), {}))
    monkeypatch.setattr(local_supervisor, "active_controller", lambda cluster: 2)
    order: list[int] = []
    stop = NodeFolder.stop
    monkeypatch.setattr(NodeFolder, "stop", lambda self: order.append(self.node.id) or stop(self))
    waited: list[tuple[int, ...]] = []
    wait = Supervisor._wait
    monkeypatch.setattr(Supervisor, "_wait", lambda self, each: waited.append(tuple(order)) or wait(self, each))
    world.supervisor.stop_all()
    assert order == [5, 4, 3, 1, 2]
    assert waited == [(5,), (5, 4), (5, 4, 3), (5, 4, 3, 1), (5, 4, 3, 1, 2)]


def test_nodes_are_stopped_in_order_when_nobody_reads_what_they_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeFolder, "start", start)
    monkeypatch.setattr(local_supervisor, "TICK_S", 0.01)
    monkeypatch.setattr(local_supervisor, "active_controller", lambda cluster: None)
    cluster = new_cluster("c", 2, 9092, (), {})
    save(str(tmp_path), cluster)

    def gone(line: str) -> None:
        raise BrokenPipeError

    assert Supervisor(str(tmp_path), cluster, gone).run() == 0
    assert [NodeFolder(str(tmp_path), node).pid() for node in cluster.nodes] == [None, None]


class ConsoleStandIn:
    """Records what becomes of it."""

    made: list[ConsoleStandIn] = []

    def __init__(self, bootstrap: str, listen: str, say: Callable[[str], None]) -> None:
        self.words, self.say, self.calls = (bootstrap, listen), say, []
        self.made.append(self)

    def start(self) -> None:
        self.calls.append("start")

    def end(self) -> None:
        self.calls.append("end")

    def wait(self) -> None:
        self.calls.append("wait")


def test_a_console_is_started_when_the_cluster_is_ready_and_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeFolder, "start", start)
    monkeypatch.setattr(local_supervisor, "TICK_S", 0.001)
    monkeypatch.setattr(ConsoleStandIn, "made", [])
    monkeypatch.setattr("tidelog.cli.console_process.ConsoleProcess", ConsoleStandIn)
    cluster = new_cluster("c", 1, 9092, (), {})
    save(str(tmp_path), cluster)
    said: list[str] = []
    supervisor = Supervisor(str(tmp_path), cluster, said.append, "127.0.0.1:0")
    supervisor._look()
    assert ConsoleStandIn.made == []
    supervisor._ready.set()

    def look() -> None:
        look_once()
        if ConsoleStandIn.made[0].calls == ["start"] and not said.count("it ended"):
            ConsoleStandIn.made[0].say("it ended")
        else:
            supervisor._stop(2, None)

    look_once = supervisor._look
    monkeypatch.setattr(supervisor, "_look", look)
    monkeypatch.setattr(supervisor, "_watch_for_ready", lambda: None)
    assert supervisor.run() == 0
    (console,) = ConsoleStandIn.made
    assert (console.words, console.calls) == (("localhost:9092", "127.0.0.1:0"), ["start", "end", "wait"])
    assert "it ended" in said
    assert "stopped" in said
