"""A pipeline from topics to Delta tables: bad records aside, each row once over crashes and lost checkpoints, and what it says
when the world is not as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.world import Lake
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.sinks.delta import DeltaSink
from tidelog.testing import Broker

RIDES = """\
pipeline: rides
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides:
    topics: [rides]
    key: text
    value: {format: json, schema: "id string not null, fare double"}
transforms:
  silver:
    from: rides
    sql: SELECT id, fare, _topic, _partition, _offset FROM rides
    expect:
      positive: {check: fare >= 0, otherwise: quarantine}
sinks:
  bronze: {type: delta, from: rides, path: FOLDER/bronze, partition_by: day(_timestamp)}
  silver: {type: delta, from: silver, path: FOLDER/silver, mode: upsert, keys: [id]}
dead_letters: {type: delta, path: FOLDER/dead}
quarantine: {type: delta, path: FOLDER/quarantine}
"""
RAW = """\
pipeline: raw
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources: {raw: {topics: [t], value: text}}
sinks: {raw: {type: delta, from: raw, path: FOLDER/raw}}
"""


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    # A client that nobody holds never answers.
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def delete_topic(broker: Broker, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in client.delete_topics([topic]).values():
        future.result(30)


def ride(name: str, fare: float) -> tuple[str, str]:
    return name, f'{{"id": "{name}", "fare": {fare}}}'


def test_every_record_lands_once_where_it_belongs(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("rides", 2)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES + "lineage: {file: FOLDER/events}\n")
    broker.produce("rides", ride("a", 1), ride("b", 2), ride("a", 3), ride("c", -1), partition=0)
    broker.produce("rides", ("x", "garbage"), ("x", '{"fare": 1}'), ("x", '{"id": "x", "tip": 1}'), partition=1)
    broker.produce("rides", ("x", '{"id": 1, "fare": "many"}'), ("x", "[]"), ("x", b"\xff{"), partition=1)
    summary = lake.run()
    assert (summary.records, summary.undecodable, summary.broken) == (10, 6, 1)
    assert lake.values("bronze", "_offset", "id", "_key") == [(0, "a", "a"), (1, "b", "b"), (2, "a", "a"), (3, "c", "c")]
    assert lake.values("silver", "id", "fare") == [("a", 3.0), ("b", 2.0)]
    assert lake.values("quarantine", "transform", "topic", "partition", "offset") == [("silver", "rides", 0, 3)]
    letters = {row.offset: (row.topic, row.partition, bytes(row.value), row.error) for row in lake.table("dead").collect()}
    assert letters[0] == ("rides", 1, b"garbage", "value: it is not JSON: expecting value at byte 0")
    assert [letters[offset][3].removeprefix("value: ") for offset in range(1, 6)] == [
        "the field id is missing",
        "the schema has no field tip: add it to the schema of the source",
        "the field fare is no double: many",
        "it is not a JSON object",
        "it is not UTF-8",
    ]
    assert lake.lines == ["rides: batch 0  10 records  " + lake.lines[0].split("  ")[2] + "  lag rides 0  up to date  "
                          "6 undecodable  1 broke a rule"]  # fmt: skip
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "COMPLETE"]
    assert events[2]["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 10
    assert list(events[2]["outputs"][0]["facets"]["columnLineage"]["fields"]) == ["id", "fare"]

    # The driver dies between the two sinks: bronze has the batch, silver has not.
    broker.produce("rides", ride("d", 4), ("x", "more garbage"))
    write = DeltaSink.write

    def dies(self: DeltaSink, batch: Any, identity: Any) -> None:
        if identity.sink == "silver":
            raise RuntimeError("killed here")
        write(self, batch, identity)

    monkeypatch.setattr(DeltaSink, "write", dies)
    with pytest.raises(PipelineFailure, match="killed here"):
        lake.run()
    monkeypatch.setattr(DeltaSink, "write", write)
    last = json.loads((tmp_path / "events").read_text().splitlines()[-1])
    assert last["eventType"] == "FAIL" and "killed here" in last["run"]["facets"]["errorMessage"]["message"]
    # And the checkpoint is gone as well: the tables say which batch has to be written again, and where to go on.
    shutil.rmtree(tmp_path / "checkpoints")
    broker.produce("rides", ride("e", 5))
    lake.run()
    assert lake.values("bronze", "id") == ["a", "a", "b", "c", "d", "e"]
    assert lake.values("silver", "id") == ["a", "b", "d", "e"]
    assert lake.table("dead").count() == 7


def test_a_checkpoint_and_a_table_that_do_not_fit_are_refused(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("t", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RAW)
    broker.produce("t", "a")
    lake.run()
    shutil.copytree(tmp_path / "checkpoints", tmp_path / "old")
    broker.produce("t", "b")
    lake.run()
    shutil.move(tmp_path / "checkpoints", tmp_path / "new")
    shutil.move(tmp_path / "old", tmp_path / "checkpoints")
    with pytest.raises(PipelineFailure, match="an old copy, or two pipelines"):
        lake.run()
    shutil.rmtree(tmp_path / "checkpoints")
    shutil.move(tmp_path / "new", tmp_path / "checkpoints")
    shutil.rmtree(tmp_path / "raw")
    broker.produce("t", "c")
    with pytest.raises(PipelineFailure, match=r"The sink raw has no batch of this pipeline.*--from-here raw"):
        lake.run()
    lake.run("raw")
    assert lake.values("raw", "value") == ["c"]


def test_a_topic_that_is_not_what_it_was_is_told(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("t", 1)
    broker.produce("t", *(str(i) for i in range(6)))
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RAW)
    lake.run()
    # Offsets that aged out before they were read.
    broker.produce("t", "6", "7", "8")
    delete_before(broker, "t", 8)
    with pytest.raises(PipelineFailure, match="on_data_loss: log"):
        lake.run()
    lake.change("value: text", "value: text, on_data_loss: log")
    lake.run()
    assert lake.values("raw", "value") == [*"012345", "8"]
    # Deleted and made again.
    lake.change(", on_data_loss: log", "")
    delete_topic(broker, "t")
    broker.create_topic("t", 1)
    broker.produce("t", "new")
    with pytest.raises(PipelineFailure, match=r"t was deleted and created again.*on_data_loss: log"):
        lake.run()
    # Also when the table is all that is left to tell.
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(PipelineFailure, match=r"t was deleted and created again.*on_data_loss: log"):
        lake.run()
    lake.change("value: text", "value: text, on_data_loss: log")
    lake.run()
    assert lake.values("raw", "value") == [*"012345", "8", "new"]


def test_a_window_remembers_and_its_bad_records_are_kept(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    text = RIDES[: RIDES.index("transforms")] + """\
transforms:
  timed:
    from: rides
    sql: SELECT timestamp_seconds(fare) AS at, id FROM rides
    watermark: at 10 seconds
  surge:
    from: timed
    stateful: true
    sql: SELECT window.start AS start, count(*) AS n FROM timed GROUP BY window(at, '1 minute')
sinks:
  surge: {type: delta, from: surge, path: FOLDER/surge}
dead_letters: {type: delta, path: FOLDER/dead}
"""  # fmt: skip
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, text)
    broker.produce("rides", ride("a", 1), ride("b", 2), ("x", "garbage"))
    lake.run()
    broker.produce("rides", ride("c", 59), ride("d", 200))
    lake.run()
    assert lake.values("surge", "n") == [3]
    assert lake.table("dead").count() == 1
    shutil.rmtree(tmp_path / "checkpoints" / "sink-surge")
    (tmp_path / "checkpoints" / "sink-surge.start.json").unlink()
    with pytest.raises(PipelineFailure, match="This query remembers earlier rows"):
        lake.run()


def test_a_batch_that_an_earlier_run_planned_says_what_is_still_to_read(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RAW)
    broker.produce("t", "0", "1", "2")

    def dies(self: DeltaSink, batch: Any, identity: Any) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaSink, "write", dies)
        with pytest.raises(PipelineFailure, match="killed here"):
            lake.run()
    broker.produce("t", *(str(number) for number in range(3, 10)))
    lake.lines.clear()
    lake.run()
    assert lake.lines[0].split("  ")[0::3][:2] == ["raw: batch 0", "lag t 7"]
    assert "up to date" not in lake.lines[0]
    assert lake.lines[-1].split("  ")[3:] == ["lag t 0", "up to date"]
    assert lake.values("raw", "value") == [*"0123456789"]


def test_a_line_counts_the_bad_rows_of_its_batch(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
    made = lake.made()
    broker.produce("rides", ("x", "garbage"), ("x", "garbage"), ride("c", -1))
    watched: list[tuple[int, int]] = []

    def more(query: str, ranges: Any, counts: Any) -> None:
        watched.append(counts.bad)
        if len(watched) == 1:
            broker.produce("rides", ("x", "garbage"), ride("a", 1))
        else:
            made.stop()

    made._watch = more
    made.run(once=False)
    assert watched[-1] == (3, 1)
    assert lake.lines[0].endswith("2 undecodable  1 broke a rule")
    assert lake.lines[-1].endswith("1 undecodable")
