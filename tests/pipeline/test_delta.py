"""The Delta sink by itself: a batch lands once, under its identity, and a full disk is reported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.test_run import RAW
from tidelog.pipeline.model import Evolution, Mode, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError
from tidelog.pipeline.sinks.delta import DeltaSink
from tidelog.testing import Broker


def identity(batch: int, end: int = 5) -> BatchIdentity:
    return BatchIdentity("p", "s", batch, (OffsetRange("t", "id", 0, 0, end),))


def test_a_batch_lands_once_and_the_table_says_so_itself(spark: Any, tmp_path: Path) -> None:
    spec = SinkSpec("s", "delta", "d", Mode.UPSERT, ("id",), "at", options=(("path", str(tmp_path / "t")),))
    rows = spark.createDataFrame([(1, 5, "a"), (1, 7, "b"), (2, 1, "c")], "id int, at int, v string")

    def sink(**more: Any) -> DeltaSink:
        import dataclasses

        made = DeltaSink(dataclasses.replace(spec, **more), "p")
        made.check(spark)
        return made

    first = sink()
    assert first.last_committed() is None
    first.write(rows, identity(3))
    first.write(rows.limit(0), identity(4, 6))
    # A later process, and a batch that is run again.
    again = sink()
    assert again.last_committed() == identity(4, 6)
    assert again.committed(identity(3)) and not again.committed(identity(5))
    again.write(rows.where("id = 2"), identity(4, 6))
    with pytest.raises(SinkError, match="two pipelines write under one name"):
        again.write(rows, identity(4, 99))
    # An older row of a key that comes later changes nothing; a newer one does.
    again.write(spark.createDataFrame([(1, 6, "late"), (2, 2, "new")], "id int, at int, v string"), identity(5))
    table = spark.read.format("delta").load(str(tmp_path / "t"))
    assert sorted(tuple(row) for row in table.collect()) == [(1, 7, "b"), (2, 2, "new")]
    # Columns that the table lacks are told, or added.
    more = spark.createDataFrame([(3, 1, "d", 9)], "id int, at int, v string, tip int")
    with pytest.raises(SinkError, match=r"tip.*schema_evolution: add"):
        again.write(more, identity(6))
    sink(evolution=Evolution.ADD).write(more, identity(6))
    assert spark.read.format("delta").load(str(tmp_path / "t")).where("tip = 9").count() == 1
    commits = sorted((tmp_path / "t" / "_delta_log").glob("*.json"))
    assert sum('"txn"' in commit.read_text() for commit in commits) == 4
    spec_of_another = DeltaSink(SinkSpec("other", "delta", options=spec.options), "p")
    spec_of_another.check(spark)
    assert spec_of_another.last_committed() is None


@pytest.mark.parametrize("mode", [Mode.APPEND, Mode.UPSERT])
def test_types_grow_wider_where_that_was_asked_for_and_are_never_cut(spark: Any, tmp_path: Path, mode: Mode) -> None:
    keys = ("id",) if mode is Mode.UPSERT else ()

    def write(batch: int, rows: Any, evolution: Evolution) -> None:
        made = DeltaSink(SinkSpec("s", "delta", "d", mode, keys, "id" if keys else "", (), evolution, (("path", path),)), "p")
        made.check(spark)
        made.write(rows, identity(batch, batch + 1))

    path = str(tmp_path / "t")
    write(0, spark.createDataFrame([(1, 1)], "id int, n int"), Evolution.NONE)
    for evolution in Evolution:
        with pytest.raises(SinkError, match=r"another type|other types"):
            write(1, spark.createDataFrame([(2, 1.5)], "id int, n double"), evolution)
    wide = spark.createDataFrame([(2, 5_000_000_000)], "id int, n bigint")
    for evolution in (Evolution.NONE, Evolution.ADD):
        with pytest.raises(SinkError, match="schema_evolution: merge"):
            write(1, wide, evolution)
    write(1, wide, Evolution.MERGE)
    table = spark.read.format("delta").load(path)
    assert sorted(tuple(row) for row in table.collect()) == [(1, 1), (2, 5_000_000_000)]


def test_a_full_disk_is_told_and_loses_nothing(broker: Broker, tmp_path: Path) -> None:
    inside = ["unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "mount -t tmpfs none /mnt"], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    broker.create_topic("t", 1)
    for start in range(0, 4000, 500):
        broker.produce("t", *(f"{i:0>900}" for i in range(start, start + 500)))
    file, table = tmp_path / "p.yaml", tmp_path / "raw"
    table.mkdir()
    settings = json.dumps({"master": "local[1]", "sql.parquet.compression.codec": "none", "driver.host": "127.0.0.1"})
    text = RAW.replace("BOOTSTRAP", broker.bootstrap_servers).replace("FOLDER", str(tmp_path)) + f"spark: {settings}\n"
    file.write_text(text)
    run = f"{sys.executable} -m tidelog.cli.main pipeline run {file} --once"
    full = subprocess.run(
        [*inside, f"mount -t tmpfs -o size=1m none {table} && {run}"], capture_output=True, text=True, check=False
    )
    assert full.returncode == 1
    assert "A disk is full (No space left on device). Nothing of this batch was committed" in full.stderr
    # The small disk is gone, and with it what was on it: the same batch is written to a larger one.
    done = subprocess.run(["sh", "-c", run], capture_output=True, text=True, check=False)
    assert "4,000 records read" in done.stdout, done.stderr[-2000:]
