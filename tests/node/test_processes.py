"""``tidelog start --processes N``: one address, killed processes and supervisors, growth, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from confluent_kafka.admin import AdminClient

from tests.interop.nodes import environment, free_ports
from tests.node.console_tools import run
from tests.node.installation import BOUND_S, Installation, Writer, free_port, installed, missing


def test_nothing_acknowledged_is_lost_when_processes_and_their_supervisor_are_killed(tmp_path: Path) -> None:
    with installed(tmp_path, 2) as running:
        running.create("t", 4, 2)
        writer = Writer(running.bootstrap, "t")
        writer.write(500)
        for node_id in (2, 1):
            writer.write(500)
            running.kill(node_id)
        writer.write(500)
        running.kill_supervisor()
        writer.write(500)
        # The processes stop in order by themselves; the next supervisor waits for them.
        running.start()
        writer.flush()
        writer.write(500)
        pids = list(running.pids().values())
        running.kill_supervisor()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        writer.write(500)
        running.start()
        writer.flush()
        assert missing(running.bootstrap, "t", writer.acknowledged) == set()


def test_a_killed_supervisor_leaves_processes_that_stop_in_order(tmp_path: Path) -> None:
    with installed(tmp_path, 2) as running:
        running.kill_supervisor()
        running.until(lambda: not running.pids())
        assert running.clean(1) and running.clean(2)


def test_the_first_contact_goes_on_while_any_one_process_is_stopped(tmp_path: Path) -> None:
    with installed(tmp_path, 2) as running:
        for node_id in (1, 2):
            pid = running.pid(node_id)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            # Refused by neither: the other process accepts, or the next one does.
            brokers = AdminClient({"bootstrap.servers": running.bootstrap}).list_topics(timeout=BOUND_S).brokers
            assert {each.port for each in brokers.values()} <= {running.port + 10, running.port + 20}
            running.until(lambda node_id=node_id: f"node {node_id} serves again" in running.said())
        assert "was ended by signal 9 (SIGKILL); it is started again now" in running.said()


def test_one_page_has_the_metrics_of_all_processes_also_of_those_that_are_gone(tmp_path: Path) -> None:
    (http,) = free_ports(1)
    with installed(tmp_path, 2, f"tidelog.http.listener=127.0.0.1:{http}") as running:

        def page(path: str) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{http}{path}", timeout=BOUND_S) as answer:
                return answer.read().decode()

        names = {1: 'tidelog_process_up{node="1"}', 2: 'tidelog_process_up{node="2"}'}
        text = page("/metrics")
        assert all(f"{name} 1\n" in text for name in names.values())
        assert text.count("# TYPE kafka_server_replicamanager_leadercount gauge") == 1
        assert json.loads(page("/healthz"))["status"] == "ok" and page("/readyz") == "ready\n"
        pid = running.pid(2)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            # The other process accepts, waits for this one's answer, and says that there is none.
            health = json.loads(page("/healthz"))
            assert health["status"] == "degraded" and health["nodes"][1] == {"status": "down", "node_id": 2}
            assert f"{names[2]} 0\n" in page("/metrics")
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_restart_of_all_under_load_loses_nothing(tmp_path: Path) -> None:
    with installed(tmp_path, 2, "group.initial.rebalance.delay.ms=0") as running:
        running.create("t", 4, 2)
        writer = Writer(running.bootstrap, "t")
        writer.write(500)
        before = running.pids()
        assert running.process is not None
        running.process.send_signal(signal.SIGUSR1)
        while "all processes were restarted" not in running.said():
            writer.write(20)
            running.until(lambda: writer.under_way() < 400 or "restart ends here" in running.said())
            assert "restart ends here" not in running.said()
        after = running.pids()
        assert after.keys() == before.keys() and not set(after.values()) & set(before.values())
        writer.flush()
        assert missing(running.bootstrap, "t", writer.acknowledged) == set()


def test_a_node_grows_to_an_installation_which_does_not_shrink_by_itself(tmp_path: Path) -> None:
    running = Installation(tmp_path, 1)
    with installed(tmp_path, 1) as alone:
        running.port, running.bootstrap = alone.port, alone.bootstrap
        alone.create("old", 2, 1)
        writer = Writer(alone.bootstrap, "old")
        writer.write(200)
        writer.flush()
    with installed(tmp_path, 3) as grown:
        assert missing(grown.bootstrap, "old", writer.acknowledged) == set()
        grown.create("new", 6, 3)
        described = AdminClient({"bootstrap.servers": grown.bootstrap}).list_topics("new", timeout=BOUND_S)
        assert {each.leader for each in described.topics["new"].partitions.values()} == {1, 2, 3}
        assert "is in use by the installation of process" in grown.refused(3)
    for count in (None, 1, 2):
        told = running.refused(count)
        assert "tidelog drain 3" in told and "start with --processes 2" in told, told


def test_what_keeps_an_installation_from_starting_is_told_in_a_line(tmp_path: Path) -> None:
    running = Installation(tmp_path, 2)
    with socket.create_server(("127.0.0.1", running.port)):
        assert f"PLAINTEXT://localhost:{running.port}: the port is in use" in running.refused(2)
    with socket.create_server(("127.0.0.1", running.port + 20)):
        told = running.refused(2)
        assert f"tidelog: node 2: listener PLAINTEXT://localhost:{running.port + 20}: the port is in use" in told
        assert "node 2 ended with exit code 1; the start is given up" in told
    assert not running.pids()


def test_an_installation_becomes_smaller_the_way_that_the_refusal_says(tmp_path: Path) -> None:
    with installed(tmp_path, 3) as running:
        running.create("t", 6, 1)
        writer = Writer(running.bootstrap, "t")
        writer.write(300)
        writer.flush()
        drained = run("drain", "3", "--bootstrap-server", running.bootstrap, "--yes")
        assert drained.returncode == 0, drained.stdout.decode() + drained.stderr.decode()
        assert running.stop() == 0
        told = running.refused(2)
        assert "tidelog drain 3" in told
        shutil.rmtree(tmp_path / "data" / "processes" / "3")
        running.start(2)
        gone = run("cluster", "unregister", "--id", "3", "--bootstrap-server", running.bootstrap)
        assert gone.returncode == 0, gone.stderr.decode()
        described = AdminClient({"bootstrap.servers": running.bootstrap}).list_topics("t", timeout=BOUND_S)
        assert {broker for each in described.topics["t"].partitions.values() for broker in each.replicas} <= {1, 2}
        assert missing(running.bootstrap, "t", writer.acknowledged) == set()


def test_a_secured_installation_serves_with_logins_certificates_and_acls(tmp_path: Path) -> None:
    first = free_port(1000, 3000)  # controllers, and nodes among each other
    made = run("secure", str(tmp_path / "sec"), "--nodes", "1", "--port", str(first))
    assert made.returncode == 0, made.stderr.decode()
    command = [sys.executable, "-m", "tidelog.cli.main", "start", str(tmp_path / "sec" / "node-1" / "server.properties")]
    command += ["--processes", "2", "-o", "tidelog.http.listener="]
    where = ["--bootstrap-server", f"localhost:{first}", "--command-config", str(tmp_path / "sec" / "admin.properties")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith(f"tidelog is ready: CLIENTS://localhost:{first}, NODES://localhost:"), line
            created = run("topics", *where, "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "2")
            assert created.returncode == 0, created.stderr.decode()
            shown = run("topics", *where, "--describe", "--topic", "t").stdout.decode()
            assert {part.split()[0] for part in shown.split("Leader: ")[1:]} == {"1", "2"}, shown
        finally:
            process.terminate()
        assert process.wait(BOUND_S) == 0
