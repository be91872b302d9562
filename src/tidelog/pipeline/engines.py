"""What a pipeline may say when Spark does not move its rows. Pure."""

from __future__ import annotations

from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.model import Engine, Evolution, Format, Mode, PipelineModel, SinkSpec, Source
from tidelog.pipeline.sections import Document

BULK_SINKS = ("delta", "parquet")
BULK_PARTITIONS = ("topic", "partition", "date")


def check_bulk(model: PipelineModel, document: Document) -> None:
    """The bulk lane lands bytes as they are: each source in one table of files, and nothing in between. ConfigError tells the
    first thing that it cannot do."""
    asides = (
        ("transforms", model.transforms),
        ("registry", model.registry),
        ("dead_letters", model.dead_letters),
        ("quarantine", model.quarantine),
    )
    for key, said in asides:
        if said:
            raise document.error((key,), f"{_lands_bytes()} Leave {key} out, or say engine: spark.")
    for source in model.sources:
        _bulk_source(model, source, document)
    for sink in model.sinks:
        _bulk_sink(sink, document)


def _bulk_source(model: PipelineModel, source: Source, document: Document) -> None:
    for key, decode in (("key", source.key), ("value", source.value)):
        if decode.format is not Format.RAW or decode.framed:
            raise document.error(("sources", source.name, key), f"{_lands_bytes()} Leave {key} out, or say engine: spark.")
    sinks = [sink.name for sink in model.sinks if sink.input == source.name]
    if len(sinks) != 1:
        raise document.error(
            ("sources", source.name),
            f"with engine: bulk a source has one sink, and this one has {' and '.join(sinks) or 'none'}: "
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


def needs_spark(model: PipelineModel, command: str) -> None:
    """PipelineFailure for what is done with rows that Spark moves."""
    if model.engine is Engine.BULK:
        raise PipelineFailure(f"{command} is for pipelines of Spark's engine, and {model.name} says engine: bulk.")
