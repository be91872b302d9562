"""Spark's own connector works against a node as it does against Apache Kafka: a stream from a topic into a topic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.availability import unavailable
from tests.spark.rows import CONNECTOR
from tidelog.testing import Broker
from tools.jars import JarsMissing, ensure

ROOT = Path(__file__).parents[2]
RECORDS = 10_000


def test_ten_thousand_records_go_through_sparks_own_connector_once(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    try:
        ensure(CONNECTOR)
    except JarsMissing as missing:
        unavailable(missing)
    with Broker() as broker:
        broker.create_topic("in", 2)
        broker.create_topic("out", 2)
        for partition in (0, 1):
            values = [(f"key {i}", f"value {i}") for i in range(partition, RECORDS, 2)]
            broker.produce("in", *values, partition=partition)
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.connector_relay", broker.bootstrap_servers, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.split() == ["rows", str(RECORDS)]
        written = {(f"key {i}".encode(), f"value {i}".encode()) for i in range(RECORDS)}
        assert {(each.key, each.value) for each in broker.messages("out")} == written
