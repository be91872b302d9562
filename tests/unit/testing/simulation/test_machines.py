"""Simulated machines with a real node each."""

import random

from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.records.control import Endpoint
from tidelog.testing.simulation.disk import SimDisk
from tidelog.testing.simulation.loop import Agenda
from tidelog.testing.simulation.machines import EPOCH_MS, Machine
from tidelog.testing.simulation.network import Network

HOST = "10.0.0.1"


def machine() -> tuple[Agenda, Machine]:
    """One node, broker and controller, formatted and switched off."""
    agenda, disk = Agenda(1), SimDisk(1)
    endpoint = Endpoint("CONTROLLER", HOST, 9093)
    format_dirs(disk, FormatRequest(["/data"], 1, standalone=[endpoint]), rng=random.Random(1), now_ms=EPOCH_MS)
    disk.sync_dir("/")
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:9092,CONTROLLER://{HOST}:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{HOST}:9093",
        "log.dirs": "/data",
        "tidelog.http.listener": "",
    }
    return agenda, Machine(agenda, Network(agenda, 1), 1, HOST, properties, 1, disk)


def started() -> tuple[Agenda, Machine]:
    agenda, one = machine()
    one.start()
    assert agenda.run_until(lambda: one.serving, 30), one.ended
    return agenda, one


def test_a_node_serves_and_stops_in_order_in_virtual_time() -> None:
    agenda, one = started()
    assert one.leads_quorum
    stopped = one.stop()
    assert stopped is not None
    assert agenda.run_until(stopped.done, 60)
    assert not one.running
    assert one.disk.exists("/data/.kafka_cleanshutdown")


def test_a_killed_process_comes_back_on_the_disk_it_left() -> None:
    agenda, one = started()
    one.kill()
    assert not one.running
    assert not one.disk.exists("/data/.kafka_cleanshutdown")
    one.start()
    assert one.node is None
    assert agenda.run_until(lambda: one.serving, 60), one.ended
    assert one.starts == 2
    one.kill()


def test_a_machine_that_lost_its_power_comes_back_with_what_was_synced() -> None:
    agenda, one = started()
    one.disk.open("/data/scribble", create=True).write(0, b"never synced")
    one.lose_power()
    one.start()
    assert agenda.run_until(lambda: one.serving, 60), one.ended
    assert one.problems == []
    one.kill()


def test_a_node_that_cannot_write_says_that_it_ended() -> None:
    agenda, one = machine()
    one.disk.fail("create", 1, 28, times=1_000)
    one.start()
    agenda.run_until(lambda: one.ended is not None, 30)
    assert not one.running
    assert one.ended


def test_a_wall_clock_that_is_set_says_another_time_from_then_on() -> None:
    agenda, one = started()
    assert one.runtime is not None
    before = one.runtime.now_ms()
    one.set_clock(5_000)
    assert one.runtime.now_ms() - before == 5_000
    assert one.runtime.steady_ms() < 60_000 < EPOCH_MS
    assert agenda.now > 0
    one.kill()
