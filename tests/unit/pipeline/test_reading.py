"""What a user wrote becomes a model, or an error with its line and the right key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.flows import flows
from tidelog.pipeline.model import Evolution, Format, Mode, OnError, Otherwise
from tidelog.pipeline.sections import Mistakes


def test_a_whole_pipeline_is_read_with_its_defaults() -> None:
    model = model_of()
    source = model.source("rides")
    assert source is not None and source.value.format is Format.JSON and source.on_error is OnError.DEAD_LETTERS
    assert model.checkpoint == "checkpoints/rides" and model.group == "tidelog-pipeline-rides" and model.trigger_ms == 1000
    bronze, silver = model.sinks
    assert (bronze.mode, bronze.evolution, bronze.option("path")) == (Mode.APPEND, Evolution.NONE, "lake/bronze")
    assert (silver.mode, silver.keys, silver.order_by) == (Mode.UPSERT, ("id",), "fare")
    assert model.transforms[0].expectations[0].otherwise is Otherwise.QUARANTINE


WRONG = [
    ("topics: [rides]", "topisc: [rides]", 6, "sources.rides.topisc: this key is not known here. Did you mean topics?"),
    ("path: lake/bronze", "pth: lake/bronze", 15, "sinks.bronze.pth: this key is not known here. Did you mean path?"),
    ("format: json", "format: jsno", 7, "'jsno' is none of raw, text, json, avro, protobuf. Did you mean json?"),
    ("from: silver, path", "from: silvr, path", 16, "no source or transform is called 'silvr'. Did you mean silver?"),
    (
        "type: delta, from: rides",
        "type: dleta, from: rides",
        15,
        "'dleta' is none of console, delta, hbase, iceberg, jdbc, parquet, topic. Did you mean delta?",
    ),
    ("keys: [id], ", "", 16, "mode upsert needs keys"),
    ("localhost:9092", "localhost", 2, "bootstrap.servers"),
    ("dead_letters: {type: delta, path: lake/dead}\n", "", 5, "add dead_letters: {type: delta"),
    ("quarantine: {type: delta, path: lake/quarantine}\n", "", 12, "add quarantine: {type: delta"),
    ('schema: "id string not null, fare double"', "framed: true", 7, "say schema (or schema_file), or the subject"),
    ('schema: "id string not null, fare double"', "subject: rides-value", 7, "say registry: {url: ...}"),
    ("from: rides\n    sql", "from: silver\n    sql", 10, "depend on each other in a cycle"),
    ("sql: SELECT id, fare FROM rides", "dedupe: [id]\n    sql: SELECT 1", 11, "it needs a watermark"),
    ("topics: [rides]", "topics: [rides]\n    max_records: some", 7, "must be a whole number from 1 on, and is 'some'"),
    ("topics: [rides]", "topics: [rides]\n    start: yesterday", 7, "must be earliest, latest or a time"),
    (
        "{type: delta, path: lake/dead}",
        "{type: hbase, url: 'http://g', table: t}",
        17,
        "a sink of type hbase has no place for these",
    ),
    (
        "{type: delta, path: lake/quar",
        "{type: topic, topic: t, path: lake/quar",
        18,
        "say one of console, delta, iceberg, jdbc, p",
    ),
    ("path: lake/bronze", "path: ''", 15, "sinks.bronze.path: it is empty, and a sink of type delta needs it"),
    ("topics: [rides]", "topics: ${TOPICS:-}", 6, "must be a list of texts, and is ''"),
    ("pipeline: rides\n", "pipeline: rides\ncheckpoint: ''\n", 2, "say a folder, or leave it out"),
    ("  rides:\n    topics", "  1rides:\n    topics", 5, "a name has letters"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "says"), WRONG)
def test_a_mistake_is_told_with_its_line_and_what_would_be_right(right: str, wrong: str, line: int, says: str) -> None:
    assert right in RIDES
    with pytest.raises(ConfigError) as caught:
        model_of(RIDES.replace(right, wrong, 1))
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"rides.yaml, line {line}: ")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = RIDES
    for right, wrong in (
        ("localhost:9092", "localhost"),
        ("topics: [rides]", "topisc: [rides]\n    start: yesterday\n    max_records: some"),
        ("format: json", "format: jsno"),
        ("type: delta, from: rides", "type: detla, from: rides"),
        ("from: silver, path", "from: silvr, mdoe: x, path"),
        ("otherwise: quarantine", "otherwise: quarantin"),
    ):
        assert right in text
        text = text.replace(right, wrong, 1)
    with pytest.raises(Mistakes) as caught:
        model_of(text + "trigger: 5\n")
    found = [str(mistake) for mistake in caught.value.found]
    assert str(caught.value) == "\n".join(found)
    wanted = [
        (2, "bootstrap.servers"),
        (6, "topisc: this key is not known here. Did you mean topics?"),
        (7, "sources.rides.start: 'yesterday' must be"),
        (8, "sources.rides.max_records: must be a whole number"),
        (9, "'jsno' is none of"),
        (15, "otherwise: 'quarantin' is none of drop, fail, quarantine. Did you mean quarantine?"),
        (17, "'detla' is none of console, delta, hbase, iceberg, jdbc, parquet, topic. Did you mean delta?"),
        (18, "mdoe: this key is not known here. Did you mean mode?"),
        (18, "no source or transform is called 'silvr'. Did you mean silver?"),
        (21, "trigger: '5' must be a number with a unit"),
    ]
    assert len(found) == len(wanted)
    for mistake, (line, says) in zip(found, wanted, strict=True):
        assert mistake.startswith(f"rides.yaml, line {line}: ") and says in mistake


def test_a_start_in_time_becomes_milliseconds_with_utc_where_no_zone_is_said() -> None:
    for text in ("2026-01-31T00:00:00Z", '"2026-01-31T01:00:00+01:00"', "2026-01-31 00:00:00"):
        source = model_of(RIDES.replace("topics: [rides]", f"topics: [rides]\n    start: {text}")).source("rides")
        assert source is not None and source.start == "1769817600000"


def test_a_start_before_1970_is_the_beginning() -> None:
    source = model_of(RIDES.replace("topics: [rides]", "topics: [rides]\n    start: 1969-12-31")).source("rides")
    assert source is not None and source.start == "earliest"


def test_the_pipeline_of_the_guide_is_right() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guide" / "pipeline.md"
    found = re.search(r"```yaml\n(.*?)```", guide.read_text(), re.S)
    assert found is not None
    assert [(flow.name, flow.remembers, len(flow.sinks)) for flow in flows(model_of(found[1]))] == [
        ("surge", True, 1),
        ("rides", False, 2),
    ]
