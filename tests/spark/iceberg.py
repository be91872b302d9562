"""Iceberg's sink on a catalog of its own: what its tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.spark.session import session
from tidelog.pipeline.ivy import repository_of, settings_text
from tidelog.pipeline.model import SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange
from tidelog.pipeline.sinks.iceberg import JARS, SETTINGS, IcebergSink

ON_ITS_SPARK = metadata.version("pyspark").startswith("4.1.")


@contextmanager
def lake_in(folder: Path) -> Iterator[Any]:
    """A session that knows the catalog ``lake``."""
    (folder / "ivy.xml").write_text(settings_text(repository_of(os.environ, Path.home())))
    settings = {
        **SETTINGS,
        "spark.jars.packages": JARS[(4, 1)],
        "spark.jars.ivySettings": str(folder / "ivy.xml"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "warehouse"),
    }
    made = session(**settings)
    try:
        yield made
    finally:
        made.stop()


def sink(lake: Any, table: str, **more: Any) -> IcebergSink:
    """A sink, as one driver has it."""
    found = IcebergSink(SinkSpec("lake", "iceberg", options=(("table", f"lake.db.{table}"),), **more), "p")
    found.check(lake)
    return found


def batch(number: int, start: int, end: int) -> BatchIdentity:
    """Offsets of one partition."""
    return BatchIdentity("p", "lake", number, (OffsetRange("t", "id", 0, start, end),))


def rows(lake: Any, *pairs: tuple[int, int]) -> Any:
    """A batch's rows."""
    return lake.createDataFrame(list(pairs), "n bigint, m bigint")


def found(lake: Any, table: str) -> list[tuple[int, int]]:
    """What is in a table."""
    return sorted(tuple(row) for row in lake.table(f"lake.db.{table}").collect())
