"""What a pipeline may contain when Spark does not move its rows. Pure."""

from __future__ import annotations

from functools import partial

from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import flows
from tidelog.pipeline.model import Engine, Evolution, Format, Mode, OnError, Otherwise, PipelineModel, SinkSpec, Source, Transform
from tidelog.pipeline.sections import Document

BULK_SINKS = ("delta", "parquet")
BULK_PARTITIONS = ("topic", "partition", "date")
REAL_TIME_FORMATS = (Format.RAW, Format.TEXT, Format.JSON)
REAL_TIME_TRIGGER_MS = 60_000
LEAST_TRIGGER_MS = 5000
"""Spark's own minimum, spark.sql.streaming.realTimeMode.minBatchDuration, in ms."""


def check_bulk(model: PipelineModel, document: Document) -> None:
    """The bulk lane lands bytes unchanged: each source in one table of files, with nothing in between. Adds to the document a
    mistake for everything else."""
    tried = document.problems.tried
    asides = (
        ("transforms", model.transforms),
        ("registry", model.registry),
        ("dead_letters", model.dead_letters),
        ("quarantine", model.quarantine),
    )
    for key, said in asides:
        if said:
            document.problems.add(document.error((key,), f"{_lands_bytes()} Leave {key} out, or say engine: spark."))
    for source in model.sources:
        tried(partial(_bulk_source, model, source, document), None)
    for sink in model.sinks:
        tried(partial(_bulk_sink, sink, document), None)


def _bulk_source(model: PipelineModel, source: Source, document: Document) -> None:
    for key, decode in (("key", source.key), ("value", source.value)):
        if decode.format is not Format.RAW or decode.framed:
            raise document.error(("sources", source.name, key), f"{_lands_bytes()} Leave {key} out, or say engine: spark.")
    _one_sink(source, [sink.name for sink in model.sinks if sink.input == source.name], model.engine, document)


def _one_sink(source: Source, sinks: list[str], engine: Engine, document: Document) -> None:
    if len(sinks) != 1:
        raise document.error(
            ("sources", source.name),
            f"with engine: {engine} a source has one sink, and this one has {' and '.join(sinks) or 'none'}: "
            "give each sink a source of its own, or say engine: spark.",
        )


def _bulk_sink(sink: SinkSpec, document: Document) -> None:
    path = ("sinks", sink.name)
    if sink.kind not in BULK_SINKS:
        raise document.error(
            (*path, "type"), f"engine: bulk writes tables of the types {' and '.join(BULK_SINKS)}, and this is {sink.kind}."
        )
    if sink.option("path").startswith("hdfs:"):
        raise document.error(
            (*path, "path"),
            "tasks of engine: bulk write without Hadoop's client, so not to HDFS: say engine: spark and type: delta.",
        )
    if sink.mode is not Mode.APPEND:
        raise document.error((*path, "mode"), "engine: bulk can only append: take mode out, or say engine: spark.")
    if sink.evolution is not Evolution.NONE:
        raise document.error(
            (*path, "schema_evolution"), "with engine: bulk the columns are those of the source and never change: leave this out."
        )
    if sink.order_by:
        raise document.error((*path, "order_by"), "it belongs to mode: upsert, and engine: bulk can only append: leave it out.")
    for name in sink.partition_by:
        if name not in BULK_PARTITIONS:
            raise document.error(
                (*path, "partition_by"), f"engine: bulk can partition by {', '.join(BULK_PARTITIONS)}, and not by {name!r}."
            )


def _lands_bytes() -> str:
    return "engine: bulk lands keys and values as they are, without decoding, transforms or rules."


def check_real_time(model: PipelineModel, document: Document) -> None:
    """Real-time mode passes single records on inside the JVM: topics into topics, with nothing that needs a batch, state or
    Python. Adds to the document a mistake for everything else."""
    add, tried = document.problems.add, document.problems.tried
    for key in ("registry", "dead_letters", "quarantine"):
        if getattr(model, key):
            add(
                document.error(
                    (key,), f"engine: jvm takes topics to topics, and nothing aside. Leave {key} out, or say engine: spark."
                )
            )
    if model.trigger_ms < LEAST_TRIGGER_MS:
        add(
            document.error(
                ("trigger",), "with engine: jvm it is how often offsets are noted, from 5s on; records do not wait for it."
            )
        )
    for flow in flows(model):
        tried(partial(_one_sink, flow.sources[0], [sink.name for sink in flow.sinks], model.engine, document), None)
        tried(partial(_real_time_source, flow.sources[0], document), None)
        for transform in flow.transforms:
            tried(partial(_real_time_transform, transform, document), None)
        for sink in flow.sinks:
            tried(partial(_real_time_sink, sink, document), None)


def _real_time_source(source: Source, document: Document) -> None:
    path = ("sources", source.name)
    for key, decode in (("key", source.key), ("value", source.value)):
        if decode.format not in REAL_TIME_FORMATS or decode.framed:
            raise document.error(
                (*path, key),
                "engine: jvm decodes raw, text and json inside the JVM, and nothing else: say one of them, or engine: spark.",
            )
    if source.on_error is not OnError.DROP and {source.key.format, source.value.format} != {Format.RAW}:
        raise document.error(
            (*path, "on_error"), "with engine: jvm records that cannot be decoded can only be left out: say drop."
        )
    for key in ("max_records", "options"):
        if getattr(source, key):
            raise document.error(
                (*path, key), f"there are no batches to limit and no options of ours with engine: jvm: leave {key} out."
            )


def _real_time_transform(transform: Transform, document: Document) -> None:
    path = ("transforms", transform.name)
    if transform.remembers:
        raise document.error(path, "engine: jvm keeps no state (stateful, watermark, dedupe): say engine: spark.")
    if any(rule.otherwise is not Otherwise.DROP for rule in transform.expectations):
        raise document.error(
            (*path, "expect"), "with engine: jvm rows that break a rule can only be left out: say otherwise: drop."
        )


def _real_time_sink(sink: SinkSpec, document: Document) -> None:
    path = ("sinks", sink.name)
    if sink.kind != "topic":
        raise document.error(
            (*path, "type"), f"engine: jvm writes topics (type: topic), and this is {sink.kind}: say engine: spark."
        )
    for key, said in (
        ("stagingTopic", sink.option("stagingTopic")),
        ("inlineBytes", sink.option("inlineBytes")),
        ("partition_by", sink.partition_by),
        ("order_by", sink.order_by),
        ("schema_evolution", sink.evolution is not Evolution.NONE),
    ):
        if said:
            raise document.error((*path, key), "it means nothing with engine: jvm: leave it out.")


def needs_spark(model: PipelineModel, command: str) -> None:
    """PipelineFailure for a command that needs rows which Spark moves."""
    if model.engine is not Engine.SPARK:
        raise PipelineFailure(f"{command} is for pipelines of Spark's engine, and {model.name} says engine: {model.engine}.")
