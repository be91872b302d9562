"""Tables of plain Parquet (``manifests``) as DataFrames: exactly the files that commits name."""

from __future__ import annotations

from typing import Any

from tidelog.pipeline.lake.manifests import DATE, ManifestTable, TableState
from tidelog.pipeline.sinks.base import SinkError
from tidelog.spark.arrow import SQL_TYPES

_BATCH = "batch"


def read_table(spark: Any, path: str) -> Any:
    """The newest version of the table as a DataFrame. SinkError when there is no table.

    With Spark alone: ``spark.read.option("basePath", <path>/data).schema(...).parquet(*files).drop("batch")``.
    """
    table = ManifestTable(path)
    state = table.state()
    if state.version < 0:
        raise SinkError(f"There is no table in {path}: no directory _tidelog with commits.")
    schema = ", ".join(f"`{name}` {kind}" for name, kind in schema_of(state).items())
    if not state.files:
        return spark.createDataFrame([], schema)
    files = [str(table.data / name) for name in sorted(state.files)]
    reader = spark.read.option("basePath", str(table.data)).schema(f"{schema}, `{_BATCH}` string")
    return reader.parquet(*files).drop(_BATCH)


def schema_of(state: TableState) -> dict[str, str]:
    """Column -> Spark's type, the partition columns last."""
    partitions = {name: "date" if name == DATE else SQL_TYPES.get(name, "string") for name in state.partition_by}
    return {**{name: kind for name, kind in state.columns.items() if name not in partitions}, **_typed(state, partitions)}


def _typed(state: TableState, partitions: dict[str, str]) -> dict[str, str]:
    """A table that a pipeline made states the types of its partition columns."""
    return {name: state.columns.get(name, kind) for name, kind in partitions.items()}
