"""The four stories that apache/iceberg's sink for Kafka Connect was in the news with, told with our words and played with our
sink: what is a coordinator there is a driver here. For tables that are written without Spark:
``tests/unit/pipeline/lake/test_second_drivers.py``.

Run by ``make spark-iceberg`` in an environment of its own; with another PySpark these are left out.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")
from tests.spark.iceberg import ON_ITS_SPARK, batch, found, rows, sink

if not ON_ITS_SPARK:
    pytest.skip("Iceberg's Spark sink needs PySpark 4.1 (make spark-iceberg)", allow_module_level=True)

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.pipeline.world import Lake
from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.sinks.iceberg import IcebergSink
from tidelog.testing import Broker

LANDING = """\
pipeline: landing
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  events: {topics: [t], start: latest}
transforms:
  places: {from: events, sql: "SELECT _offset AS n FROM events"}
sinks:
  lake: {type: iceberg, from: places, table: lake.db.landing}
"""


def files_in_snapshots(lake: Any, table: str) -> list[str]:
    """Data files of the newest snapshot, by its manifests: one that two commits brought is there twice."""
    return [row[0] for row in lake.sql(f"SELECT data_file.file_path FROM lake.db.{table}.entries WHERE status < 2").collect()]


def test_a_driver_that_slept_moves_nothing_back(lake: Any) -> None:
    """#17551: a coordinator that should have been gone wrote its old position over the newer; what lay between was lost."""
    zombie, driver = sink(lake, "slept"), sink(lake, "slept")
    zombie.write(rows(lake, (0, 0)), batch(0, 0, 1))
    for number in (1, 2):
        driver.write(rows(lake, (number, 0)), batch(number, number, number + 1))
    for old in (0, 1, 2):
        zombie.write(rows(lake, (old, 0)), batch(old, old, old + 1))
    with pytest.raises(SinkError, match="another driver writes under this name"):
        zombie.write(rows(lake, (9, 9)), batch(1, 1, 9))
    successor = sink(lake, "slept")
    assert successor.last_committed() == batch(2, 2, 3)
    successor.write(rows(lake, (3, 0)), batch(3, 3, 4))
    assert found(lake, "slept") == [(number, 0) for number in range(4)]


def test_records_are_not_committed_again_under_the_next_number(lake: Any) -> None:
    """#17340: after a restart in mid-cycle the same files were in two commits, 111,927 rows doubled."""
    driver = sink(lake, "again")
    driver.write(rows(lake, (0, 0), (1, 0)), batch(0, 0, 2))
    restarted = sink(lake, "again")
    with pytest.raises(SinkError, match="startingOffsets="):
        restarted.write(rows(lake, (0, 0), (1, 0), (2, 0)), batch(1, 0, 3))
    restarted.write(rows(lake, (2, 0)), batch(1, 2, 3))
    assert found(lake, "again") == [(0, 0), (1, 0), (2, 0)]
    files = files_in_snapshots(lake, "again")
    assert len(files) == len(set(files))


def test_two_drivers_at_once_land_each_batch_once(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """#17637: a rebalance left two coordinators, and both committed. Here both have staged before either publishes."""
    drivers = [sink(lake, "pair"), sink(lake, "pair")]
    drivers[0].write(rows(lake, (0, 0)), batch(0, 0, 1))
    staged = threading.Barrier(2)
    stage = IcebergSink._stage

    def both(self: IcebergSink, *args: Any) -> int:
        with one_at_a_time:  # the session has one wap.id
            snapshot = stage(self, *args)
        staged.wait(120)
        return snapshot

    one_at_a_time = threading.Lock()
    monkeypatch.setattr(IcebergSink, "_stage", both)
    problems: list[BaseException] = []

    def drive(driver: IcebergSink) -> None:
        try:
            for number in (1, 2):
                driver.write(rows(lake, (number, 0)), batch(number, number, number + 1))
        except BaseException as problem:
            problems.append(problem)
            staged.abort()

    threads = [threading.Thread(target=drive, args=(driver,)) for driver in drivers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems
    assert found(lake, "pair") == [(0, 0), (1, 0), (2, 0)]


def test_a_driver_that_died_before_it_said_so_and_one_that_lost_its_place(lake: Any, tmp_path: Path) -> None:
    """#16282: the snapshot was there, and its maker died before it had moved its own position; #17551 again: a position was
    gone, ``latest`` was where to begin then, and what was in between was lost."""
    with Broker() as broker:
        broker.create_topic("t", 1)
        landing = Lake(lake, broker.bootstrap_servers, tmp_path, LANDING)

        def run(*values: str) -> list[int]:
            broker.produce("t", *values)
            landing.run()
            lake.catalog.refreshTable("lake.db.landing")
            return sorted(row[0] for row in lake.table("lake.db.landing").collect())

        landing.run()  # where the latest is now, is where it begins
        assert run("0", "1", "2") == [0, 1, 2]
        checkpoint = tmp_path / "checkpoints" / "source-events"
        last = max(
            (file for file in (checkpoint / "commits").iterdir() if file.name.isdecimal()), key=lambda file: int(file.name)
        )
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        assert run("3", "4") == [0, 1, 2, 3, 4]
        shutil.rmtree(checkpoint)
        (tmp_path / "checkpoints" / "source-events.start.json").unlink()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for done in admin.delete_records([TopicPartition("t", 0, 4)]).values():
            done.result(30)
        assert run("5", "6") == list(range(7))
    files = files_in_snapshots(lake, "landing")
    assert len(files) == len(set(files))
