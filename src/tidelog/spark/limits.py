"""Spark's words for how much a micro-batch may read, under one name for all versions of PySpark.

PySpark 4.2 brought them to Python sources. In 4.1 there are none, and these stand in for them: the reader then limits itself
(``source.TidelogStreamReader``), and AvailableNow, which it is not told of, reads one batch of that limit; after a crash that
one batch is the one that was begun. Who wants everything starts the query again until it brings nothing (``pipeline.running``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

ONE_BATCH_OF_AVAILABLE_NOW = False
"""Whether Spark ends a query of a Python source after one batch, though it was to read everything that is there."""

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
    except ImportError:
        ONE_BATCH_OF_AVAILABLE_NOW = True

        class ReadLimit:
            """How much to read."""

        @dataclass(frozen=True)
        class ReadAllAvailable(ReadLimit):
            """Everything."""

        @dataclass(frozen=True)
        class ReadMaxRows(ReadLimit):
            """At most so many rows."""

            max_rows: int

        class SupportsTriggerAvailableNow:
            """A reader that is told when everything that is there now is to be read."""


__all__ = ["ONE_BATCH_OF_AVAILABLE_NOW", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]
