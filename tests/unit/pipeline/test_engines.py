"""What a pipeline of the bulk lane may contain, and the errors about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.decorators import Pipeline
from tidelog.pipeline.engines import needs_spark
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import flows
from tidelog.pipeline.model import Engine
from tidelog.pipeline.session import settings_of

BULK = """\
pipeline: landing
engine: bulk
kafka:
  bootstrap.servers: localhost:9092
sources:
  orders:
    topics: [orders]
  clicks:
    pattern: clicks-.*
sinks:
  orders: {type: parquet, from: orders, path: lake/orders}
  clicks: {type: delta, from: clicks, path: lake/clicks, partition_by: [date]}
"""


def test_each_source_is_a_query_with_one_table() -> None:
    model = model_of(BULK)
    assert model.engine is Engine.BULK
    assert [(flow.name, [sink.name for sink in flow.sinks]) for flow in flows(model)] == [
        ("orders", ["orders"]),
        ("clicks", ["clicks"]),
    ]
    assert model_of().engine is Engine.SPARK


def test_a_pipeline_in_python_says_it_with_the_same_word() -> None:
    said = Pipeline("landing", engine="bulk", kafka={"bootstrap.servers": "localhost:9092"})
    said.source("orders", topics=["orders"])
    said.source("clicks", pattern="clicks-.*")
    said.sink("orders", type="parquet", from_="orders", path="lake/orders")
    said.sink("clicks", type="delta", from_="clicks", path="lake/clicks", partition_by=["date"])
    assert said.model() == model_of(BULK)


def test_the_session_needs_no_jar_for_the_tables() -> None:
    assert "spark.jars.packages" not in settings_of(model_of(BULK), (4, 3), "ivy.xml")


ORDERS = "type: parquet, from: orders, path: lake/orders"
WRONG = [
    ("engine: bulk", "engine: bluk", 2, "'bluk' is none of spark, bulk, jvm. Did you mean bulk?"),
    ("topics: [orders]", "topics: [orders]\n    value: text", 8, "engine: bulk lands keys and values as they are"),
    (ORDERS, ORDERS + "}\n  again: {" + ORDERS, 6, "this one has orders and again: give each sink a source of its own"),
    ("  clicks: {type: delta, from: clicks, path: lake/clicks, partition_by: [date]}\n", "", 8, "this one has none"),
    (ORDERS, "type: topic, from: orders, topic: out", 11, "tables of the types delta and parquet, and this is topic"),
    (ORDERS, "type: delta, mode: upsert, keys: [key], from: orders, path: p", 11, "can only append"),
    (ORDERS, "type: delta, from: orders, path: 'hdfs://name/orders'", 11, "so not to HDFS: say engine: spark and type: delta"),
    (ORDERS, ORDERS + ", schema_evolution: add", 11, "the columns are those of the source and never change"),
    (ORDERS, ORDERS + ", order_by: offset", 11, "it belongs to mode: upsert"),
    ("[date]", "[day(timestamp)]", 12, "can partition by topic, partition, date, and not by 'day(timestamp)'"),
    ("sinks:\n", "transforms: {t: {from: orders, sql: SELECT 1}}\nsinks:\n", 10, "Leave transforms out, or say engine: spark"),
    ("sinks:\n", "dead_letters: {type: delta, path: d}\nsinks:\n", 10, "Leave dead_letters out, or say engine: spark"),
    ("sinks:\n", "registry: {url: 'http://localhost:1'}\nsinks:\n", 10, "Leave registry out, or say engine: spark"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "says"), WRONG)
def test_what_the_lane_cannot_do_is_told_with_its_line(right: str, wrong: str, line: int, says: str) -> None:
    assert right in BULK
    with pytest.raises(ConfigError) as caught:
        model_of(BULK.replace(right, wrong))
    assert says in str(caught.value)
    assert f"line {line}:" in str(caught.value)


def test_commands_for_rows_that_spark_moves_say_so() -> None:
    needs_spark(model_of(RIDES), "compact")
    with pytest.raises(PipelineFailure, match="compact is for pipelines of Spark's engine, and landing says engine: bulk"):
        needs_spark(model_of(BULK), "compact")


def test_the_pipeline_in_the_guide_is_right() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guide" / "lake.md"
    text = guide.read_text().partition("```yaml\n")[2].partition("```")[0]
    assert model_of(text).sinks[0].partition_by == ("topic", "date")


REAL_TIME = """\
pipeline: rides
engine: jvm
kafka: {bootstrap.servers: "localhost:9092"}
sources:
  rides: {topics: [rides], value: {format: json, schema: "id string"}, on_error: drop}
transforms:
  dear: {from: rides, sql: SELECT id AS value FROM rides, expect: {known: {check: id IS NOT NULL}}}
sinks:
  dear: {type: topic, from: dear, topic: dear}
"""


def test_a_pipeline_in_real_time_notes_its_offsets_each_minute() -> None:
    model = model_of(REAL_TIME)
    assert (model.engine, model.trigger_ms) == (Engine.JVM, 60_000)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("engine: jvm", "engine: jvm\ntrigger: 1s", "line 3: trigger: .*from 5s on"),
        ("engine: jvm", "engine: jvm\ndead_letters: {type: delta, path: d}", "line 3: dead_letters: .*nothing aside"),
        (", on_error: drop", "", "no such sink|can only be left out: say drop"),
        (", on_error: drop", ", on_error: fail", "line 5: sources.rides.on_error: .*say drop"),
        (", on_error: drop", ", on_error: drop, max_records: 5", "no batches to limit"),
        (
            '{format: json, schema: "id string"}',
            "{format: protobuf, message: m, descriptor: d}",
            "raw, text and json inside the JVM",
        ),
        ("{check: id IS NOT NULL}", "{check: id IS NOT NULL, otherwise: fail}", "say otherwise: drop"),
        ("sql: SELECT", "stateful: true, sql: SELECT", "keeps no state"),
        ("{type: topic, from: dear, topic: dear}", "{type: console, from: dear}", "engine: jvm writes topics"),
        ("topic: dear}", "topic: dear, stagingTopic: s}", "stagingTopic: it means nothing with engine: jvm"),
        ("  dear: {type: topic", "  two: {type: topic, from: dear, topic: two}\n  dear: {type: topic", "has two and dear"),
    ],
)
def test_what_real_time_mode_cannot_do_is_told_with_its_line(old: str, new: str, said: str) -> None:
    assert old in REAL_TIME
    with pytest.raises(ConfigError, match=said):
        model_of(REAL_TIME.replace(old, new, 1))


def test_another_pyspark_is_told_early_with_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"in PySpark 4.3.0, and this is 4.2: .*install 'tidelog\[realtime\]'"):
        settings_of(model_of(REAL_TIME), (4, 2), "ivy.xml")
    assert settings_of(model_of(REAL_TIME), (4, 3), "ivy.xml")["spark.master"] == "local[*]"


def test_commands_for_rows_in_tables_are_not_for_real_time() -> None:
    with pytest.raises(PipelineFailure, match="rides says engine: jvm"):
        needs_spark(model_of(REAL_TIME), "compact")
