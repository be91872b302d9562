"""The sink inside a running Spark: a batch and a stream into topics, each row once, in its place, and again nothing.

What needs no JVM, and what happens between the steps of a commit, is in ``tests/unit/spark``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidelog.client.partitioning import partition_of
from tidelog.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("out", 3)
        yield found


def test_a_batch_lands_whole_by_key_and_with_a_name_and_a_number_once(spark: Any, broker: Broker) -> None:
    rows = spark.range(300).selectExpr(
        "cast(id as string) key", "concat('v', id) value", "array(named_struct('key', 'h', 'value', cast('x' as binary))) headers"
    )
    told = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", "txnAppId": "a", "txnVersion": "0"}
    for inline in ("0", "1000000"):
        rows.repartition(2).write.format("tidelog").options(**told, inlineBytes=inline).mode("append").save()
    found = broker.messages("out")
    assert sorted((m.key, m.value) for m in found) == sorted((str(i).encode(), b"v%d" % i) for i in range(300))
    assert all(m.partition == partition_of(m.key or b"", 3) and m.headers == {"h": b"x"} for m in found)


def test_a_stream_goes_from_topic_to_topic_and_goes_on_after_a_restart(spark: Any, broker: Broker, tmp_path: Path) -> None:
    told = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    for start in (0, 100):
        broker.produce("in", *[(f"k{i}", f"v{i}") for i in range(start, start + 100)])
        source = spark.readStream.format("tidelog").options(**told, subscribe="in", startingOffsets="earliest").load()
        writer = source.select("key", "value", "timestamp").writeStream.format("tidelog").options(**told, topic="out")
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()
    landed = {(m.key, m.value): m.timestamp_ms for m in broker.messages("out")}
    assert landed == {(m.key, m.value): m.timestamp_ms for m in broker.messages("in")}
    assert len(broker.messages("out")) == 200


def test_what_cannot_be_written_is_told_before_anything_is(spark: Any, broker: Broker) -> None:
    writer = spark.range(3).write.format("tidelog").option("kafka.bootstrap.servers", broker.bootstrap_servers).mode("append")
    with pytest.raises(Exception, match="The column id would not be written"):
        writer.option("topic", "out").save()
