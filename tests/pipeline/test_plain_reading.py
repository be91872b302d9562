"""Batches whose plain records compiled code decodes: the rows are Spark's, and none is lost between the two readings."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")
pytest.importorskip("tidelog.spark._values", reason="not compiled here")

import pyarrow as pa

from tests.pipeline.world import Lake
from tidelog.pipeline import batches, expectations, plain_reading
from tidelog.pipeline.decoding import decoded, plan
from tidelog.pipeline.model import Decode, Format, Source
from tidelog.pipeline.plain_schemas import value_schema
from tidelog.spark import limits
from tidelog.spark.values import decoder
from tidelog.testing import Broker

SCHEMA = "id bigint not null, n int, x double, name string, ok boolean, at timestamp, day date"
NUMBERS = [
    "0",
    "-0",
    "7",
    "-1",
    "01",
    "1.0",
    "1e3",
    "-2.5E-3",
    "1e400",
    "1e-400",
    "4.9e-324",
    "0.1",
    "NaN",
    "Infinity",
    "123456789012345678",
    "9223372036854775807",
    "1.",
    ".5",
    "0x1",
    "9223372036854775808",
    "2147483647",
    "2147483648",
    "12345678901234567890.123",
]
TEXTS = ['""', '"a"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u0000"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"', '"\\q"', '"\t"']
TEXTS += ["'a'", '"é😀"', '"a']
TIMES = [
    "2026-01-31T12:00:00Z",
    "2026-01-31T12:00:00.123456Z",
    "2026-01-31T12:00:00.1234567Z",
    "2024-02-29T23:59:59.9Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "0000-01-01T00:00:00Z",
    "1582-10-10T00:00:00Z",
    "2026-01-31T12:00:00+02:00",
    "2026-01-31",
    "2023-02-29T00:00:00Z",
    "2026-01-31T24:00:00Z",
    "2026-1-31T12:00:00Z",
    "soon",
    "1969-12-31T23:59:59.5Z",
    "2026-01-31T12:00Z",
]
DAYS = [
    "2026-01-31",
    "2024-02-29",
    "2023-02-29",
    "0001-01-01",
    "9999-12-31",
    "1582-10-10",
    "2026-1-1",
    "20260131",
    "1900-02-29",
    "2000-02-29",
]
RIGHT = {
    "id": ["0", "7", "-1", "9007199254740993", "123456789012345678"],
    "n": ["0", "-7", "2147483647", "-2147483648"],
    "x": ["0", "1.5", "-2.5E-3", "1e22", "4.9e-324", "123456789012345678", "null"],
    "name": ['""', '"a"', '"é😀"', '"\\u00e9\\ud83d\\ude00"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"', "null"],
    "ok": ["true", "false", "null"],
    "at": ['"2026-01-31T12:00:00Z"', '"2026-01-31T12:00:00.123456Z"', '"1969-12-31T23:59:59.5Z"', '"0001-01-01T00:00:00Z"'],
    "day": ['"2024-02-29"', '"9999-12-31"', '"1582-10-10"', '"1969-12-31"'],
}
WRONG = [*NUMBERS, *TEXTS, *(f'"{text}"' for text in [*TIMES, *DAYS]), "null", "true", "{}", "[1]", '{"a": 1}']


def blank(chance: random.Random) -> str:
    """What may stand between two signs, and rarely what may not."""
    return chance.choice(["\x0c", "\u00a0"]) if chance.random() < 0.002 else chance.choice(["", "", " ", "\n", "\t", "\r"])


def value(chance: random.Random, name: str) -> str:
    """What stands behind a field's name: mostly what should."""
    if name == "x" and chance.random() < 0.5:
        return repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-30, 30))
    return chance.choice(WRONG if name not in RIGHT or chance.random() < 0.08 else RIGHT[name])


def record(chance: random.Random) -> bytes:
    """A JSON object, and sometimes something that is none."""
    names = ["id", *(name for name in RIGHT if name != "id" and chance.random() < 0.8)]
    if chance.random() < 0.1:
        chance.shuffle(names)
    if chance.random() < 0.03:
        names += chance.choices(["id", "more", "ID", "i\\u0064", ""], k=1)
    fields = [f'{blank(chance)}"{name}"{blank(chance)}:{blank(chance)}{value(chance, name)}{blank(chance)}' for name in names]
    text = "{" + ",".join(fields) + "}" + (chance.choice(["}", "{}", ",", " x"]) if chance.random() < 0.02 else blank(chance))
    found = bytearray(text.encode())
    if chance.random() < 0.1:
        at = chance.randrange(len(found))
        found[at : at + chance.randrange(2)] = chance.choice([b"", b"\xff", b"\x00", b",", b'"', b"\\", b"\xed\xa0\x80"])
    return bytes(found)


def easy(chance: random.Random) -> bytes:
    """A record that every reader takes."""
    found = {"id": chance.randrange(-(1 << 40), 1 << 40), "n": chance.randrange(1000), "x": chance.random(), "name": "zone é"}
    return json.dumps(found, ensure_ascii=chance.random() < 0.5).encode()


def test_what_is_plain_is_what_spark_decodes(spark: Any) -> None:
    chance = random.Random(20261124)
    values: list[bytes | None] = [record(chance) for _ in range(12_000)] + [easy(chance) for _ in range(2000)] + [None]
    keys = [chance.choice([None, b"", b"k", "ü".encode(), b"\xff"]) for _ in values]
    source = Source("s", ("t",), key=Decode(Format.TEXT), value=Decode(Format.JSON, SCHEMA))
    found = plan(source, None)
    schema = value_schema(found)
    assert schema is not None
    made = decoder(schema)
    assert made is not None
    ours = made.decode(pa.array(values, pa.binary()), pa.array(keys, pa.binary()))
    names = [field.name for field in schema.fields]
    batch = pa.RecordBatch.from_arrays(ours.columns, names)
    batch.validate(full=True)
    count = len(values)
    raw = pa.table(
        {
            "topic": pa.array(["t"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([0] * count, pa.timestamp("us", tz="UTC")),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    theirs = decoded(spark.createDataFrame(raw), found).orderBy("_offset").drop("_raw_key", "_raw_value").toArrow()
    # Arrow's arrays, since Spark has dates that Python's types lack.
    theirs = theirs.filter(ours.plain)
    kept = [text for text, is_plain in zip(values, ours.plain.to_pylist(), strict=True) if is_plain]
    wrong = [(text, said) for text, said in zip(kept, theirs["_error"].to_pylist(), strict=True) if said is not None]
    assert not wrong
    for name in names:
        one, two = batch.column(name).to_pylist(), theirs[name].to_pylist()
        assert [(text, *pair) for text, *pair in zip(kept, one, two, strict=True) if repr(pair[0]) != repr(pair[1])] == []
    said_keys = [key for key, is_plain in zip(keys, ours.plain.to_pylist(), strict=True) if is_plain]
    assert theirs["_key"].to_pylist() == [None if key is None else key.decode() for key in said_keys]
    of_records = sum(ours.plain.to_pylist()[:12_000])
    # Of the easy ones only those with a key that is no UTF-8 are odd.
    assert sum(ours.plain.to_pylist()[12_000:]) > 1500
    assert 1000 < of_records < 11_000


PIPELINE = """\
pipeline: plain
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides:
    topics: [rides]
    headers: true
    key: text
    value: {format: json, schema: "id bigint not null, n double, name string"}
transforms:
  good: {from: rides, sql: SELECT * FROM rides, expect: {positive: {check: n > 0}, named: {check: name IS NOT NULL}}}
sinks:
  rides: {type: delta, from: good, path: FOLDER/rides}
dead_letters: {type: delta, path: FOLDER/dead}
"""
fast = pytest.mark.skipif(limits.ONE_BATCH_OF_AVAILABLE_NOW, reason="PySpark 4.1 reads batches in its own way only")


@fast
@pytest.mark.parametrize("few", [1000, 3])
def test_plain_and_odd_records_land_once_each_with_their_places(
    few: int, spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_reading, "FEW", few)
    broker.create_topic("rides", 2)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, PIPELINE)
    plain = [json.dumps({"id": number, "n": number % 5, "name": "a" if number % 7 else None}) for number in range(200)]
    odd_but_good = [
        '{"id": 1000, "n": "NaN", "name": "b"}',
        '{"id": 1001, "n": 12345678901234567890, "name": "c"}',
        '{"id": 1002, "n": 1, "name": 5}',
    ]
    bad = ['{"id": 1', '{"n": 1}', '{"id": 1} x', "", '{"id": 1, "more": 2}', '{"id": 5.5}']
    for number, text in enumerate([*plain, *odd_but_good, *bad]):
        broker.produce("rides", (f"k{number}", text), partition=number % 2)
    broker.produce("rides", (b"\xff", '{"id": 1, "n": 1, "name": "a"}'), partition=0)
    for _ in range(2):
        lake.run()
    expected = [number for number in range(200) if number % 5 and number % 7]
    rows = lake.values("rides", "id", "_key", "name")
    assert [row[0] for row in rows if row[0] < 1000] == expected
    assert [row for row in rows if row[0] >= 1000] == [(1000, "k200", "b"), (1001, "k201", "c"), (1002, "k202", "5")]
    places = lake.values("rides", "_partition", "_offset")
    assert len(set(places)) == len(places) == len(expected) + 3
    assert sorted(bytes(row.value).decode() for row in lake.table("dead").collect()) == sorted(
        [*bad, '{"id": 1, "n": 1, "name": "a"}']
    )
    assert f"{len(plain) + len(odd_but_good) + len(bad) + 1} records" in lake.lines[0]
    assert f"{len(bad) + 1} undecodable" in lake.lines[0]
    # A row that breaks two rules is counted for both.
    breaks = sum(not number % 5 for number in range(200)) + sum(not number % 7 for number in range(200))
    assert f"{breaks} broke a rule" in lake.lines[0]


@fast
def test_where_most_records_are_odd_spark_decodes_the_next_batches_whole(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_reading, "FEW", 3)
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, PIPELINE.replace("headers: true", "max_records: 20"))
    batches = []
    real = plain_reading.PlainReader.batch

    def watched(self: Any, *given: Any) -> Any:
        found = real(self, *given)
        batches.append(found is not None)
        return found

    monkeypatch.setattr(plain_reading.PlainReader, "batch", watched)
    broker.produce("rides", *(f'{{"id": {number}, "n": {number + 1}, "name": {number}}}' for number in range(60)))
    lake.run()
    assert lake.values("rides", "id") == list(range(60))
    assert batches == [True, False, False]


@fast
def test_a_rule_that_no_row_can_keep_is_counted_too(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "_PATIENCE_S", 0.5)
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, PIPELINE.replace("check: n > 0", "check: 1 > 2"))
    broker.produce("rides", '{"id": 1, "n": 1, "name": "a"}', '{"id": 2, "n": 1, "name": null}')
    assert lake.run().broken == 3
    assert lake.values("rides", "id") == []


@fast
def test_a_deleted_topic_or_lost_records_end_the_batch_as_they_end_sparks_own(spark: Any, broker: Broker, tmp_path: Path) -> None:
    from tidelog.pipeline.failures import PipelineFailure

    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, PIPELINE)
    broker.produce("rides", '{"id": 1, "n": 1, "name": "a"}')
    lake.run()
    confluent_kafka = pytest.importorskip("confluent_kafka.admin")
    admin = confluent_kafka.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics(["rides"])["rides"].result()
    broker.create_topic("rides", 1)
    broker.produce("rides", '{"id": 2, "n": 1, "name": "a"}', '{"id": 3, "n": 1, "name": "a"}')
    with pytest.raises(PipelineFailure, match="deleted and created again"):
        lake.run()
    assert lake.values("rides", "id") == [1]


@fast
def test_rules_of_an_upsert_are_counted_while_it_is_written(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch makes the table, the second is merged into it; neither reads its rows once more for the counts."""
    judged: list[str] = []
    real = expectations.judge

    def watched(frame: Any, transform: Any) -> Any:
        judged.append(transform.name)
        return real(frame, transform)

    monkeypatch.setattr(batches, "judge", watched)
    broker.create_topic("rides", 1)
    text = PIPELINE.replace("headers: true", "max_records: 40").replace(
        "FOLDER/rides}", "FOLDER/rides, mode: upsert, keys: [id]}"
    )
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, text)
    for number in range(80):
        ride = {"id": number % 60, "n": number % 4, "name": None if number % 10 == 5 else f"a{number}"}
        broker.produce("rides", '{"n"' if number == 33 else json.dumps(ride))
    run = lake.run()
    good = [number for number in range(80) if number % 4 and number % 10 != 5 and number != 33]
    newest = {number % 60: f"a{number}" for number in good}
    assert lake.values("rides", "id", "name") == sorted(newest.items())
    assert (run.records, run.undecodable) == (80, 1)
    assert run.broken == sum(not number % 4 for number in range(80)) + sum(number % 10 == 5 for number in range(80))
    assert judged == []
