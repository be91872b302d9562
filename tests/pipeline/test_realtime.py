"""Topic to topic in real-time mode, as a user runs it. Needs PySpark 4.3, an environment of its own: ``make spark-realtime``."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from tidelog.testing import Broker

pytest.importorskip("pyspark", reason="the extra realtime is not installed")
if not metadata.version("pyspark").startswith("4.3."):
    pytest.skip("real-time mode needs PySpark 4.3", allow_module_level=True)

RIDES = """\
pipeline: rides
engine: jvm
trigger: 15s
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides: {topics: [rides], key: text, value: {format: json, schema: "id string not null, fare double"}, on_error: drop}
transforms:
  dear:
    from: rides
    sql: SELECT _key AS key, to_json(struct(upper(id) AS id, fare * 2 AS twice)) AS value FROM rides
    expect: {known: {check: key IS NOT NULL}}
sinks:
  dear: {type: topic, from: dear, topic: dear}
spark: {master: "local[2]", driver.host: 127.0.0.1, driver.bindAddress: 127.0.0.1, driver.memory: 1g}
"""
PATIENCE_S = 300


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tidelog.cli.main", "pipeline", "run", "--realtime", str(folder / "rides.yaml")]
    log = (folder / "run.log").open("a")
    return subprocess.Popen(command, stdout=log, stderr=log, text=True)


def wait_for(broker: Broker, count: int, process: subprocess.Popen[str], folder: Path) -> list[tuple[bytes | None, bytes | None]]:
    """The records of the topic out, when there are that many."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := broker.messages("dear")) < count:
        assert process.poll() is None and time.monotonic() < deadline, (folder / "run.log").read_text()[-3000:]
        time.sleep(0.05)
    return [(each.key, each.value) for each in found]


def test_records_come_through_in_real_time_and_a_restart_goes_on(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("rides", 2)
        broker.create_topic("dear", 1)
        (tmp_path / "rides.yaml").write_text(
            RIDES.replace("BOOTSTRAP", broker.bootstrap_servers).replace("FOLDER", str(tmp_path))
        )
        broker.produce("rides", ("a", '{"id": "a", "fare": 1}'), ("b", "no json"), (None, '{"id": "c", "fare": 3}'))
        running = start(tmp_path)
        try:
            assert wait_for(broker, 1, running, tmp_path) == [(b"a", b'{"id":"A","twice":2.0}')]
            began = time.monotonic()
            broker.produce("rides", ("d", '{"id": "d", "fare": 4}'))
            assert wait_for(broker, 2, running, tmp_path)[1] == (b"d", b'{"id":"D","twice":8.0}')
            print(f"a record was through after {(time.monotonic() - began) * 1000:.0f} ms")
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE_S) == 0, (tmp_path / "run.log").read_text()[-3000:]
            assert "4 records read" in (tmp_path / "run.log").read_text()
            broker.produce("rides", ("e", '{"id": "e", "fare": 5}'))
            running = start(tmp_path)
            keys = [key for key, _ in wait_for(broker, 3, running, tmp_path)]
            assert keys == [b"a", b"d", b"e"]
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE_S) == 0, (tmp_path / "run.log").read_text()[-3000:]
        finally:
            running.kill()
            running.wait()


def test_fewer_cores_than_partitions_are_told(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("rides", 3)
        broker.create_topic("dear", 1)
        text = RIDES.replace("BOOTSTRAP", broker.bootstrap_servers).replace("FOLDER", str(tmp_path))
        (tmp_path / "rides.yaml").write_text(text)
        running = start(tmp_path)
        assert running.wait(PATIENCE_S) == 1
        assert "has 3 partitions, and Spark has 2 cores" in (tmp_path / "run.log").read_text()
