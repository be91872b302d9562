"""When a batch is read in two, and when it is left to Spark's source. The reading itself: ``tests/pipeline``."""

from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")
pytest.importorskip("tidelog.spark._values", reason="not compiled here")

from tidelog.pipeline import plain_reading
from tidelog.pipeline.decoding import plan
from tidelog.pipeline.model import Decode, Format, PipelineModel, Source
from tidelog.pipeline.plain_reading import FEW, PlainReader
from tidelog.spark import limits, values
from tidelog.spark.planning import SourceOffset

SPAN = SourceOffset({}), SourceOffset({})
FLAT = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
NESTED = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}]}'
SOURCE = Source("s", ("t",), value=Decode(Format.AVRO, FLAT), options=(("minPartitions", "2"),))


class Session:
    """A Spark session as far as it is asked here."""

    def __init__(self, policy: str = "CORRECTED") -> None:
        self.conf = {"spark.sql.legacy.timeParserPolicy": policy}


def reader(source: Source = SOURCE) -> PlainReader:
    return PlainReader(PipelineModel("p", (("bootstrap.servers", "localhost:1"),), (source,), ()), source)


def read(found: PlainReader, source: Source = SOURCE, session: Any = None) -> bool:
    return found.batch(cast(Any, session or Session()), plan(source, None), SPAN) is not None


def test_a_flat_schema_is_read_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONE_BATCH_OF_AVAILABLE_NOW", False)
    assert read(reader())
    assert not read(reader(), session=Session("legacy"))
    nested = Source("s", ("t",), value=Decode(Format.AVRO, NESTED))
    assert not read(reader(nested), nested)
    monkeypatch.setattr(values, "_compiled", lambda: None)
    assert not read(reader())


def test_pyspark_4_1_reads_all_batches_by_its_own_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONE_BATCH_OF_AVAILABLE_NOW", True)
    assert not read(reader())


def test_after_a_batch_with_many_odd_records_the_next_ones_are_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONE_BATCH_OF_AVAILABLE_NOW", False)
    found = reader()
    found.learn(FEW, FEW)
    found.learn(FEW + 1, 100 * FEW)
    assert read(found)
    found.learn(FEW + 1, 2 * FEW)
    assert [read(found) for _ in range(plain_reading._PAUSE + 1)] == [False] * plain_reading._PAUSE + [True]
