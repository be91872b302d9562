"""Spark's limits for what a micro-batch may read, under one name for all versions of PySpark.

PySpark 4.2 brought them to Python sources. 4.1 has none, and these stand in for them: the reader limits itself
(``source.TidelogStreamReader``). 4.1 does not announce AvailableNow to it, so such a query reads one batch of that limit; after a
crash that is the interrupted batch. To read everything, run the query until it reads nothing (``pipeline.running``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

ONE_BATCH_OF_AVAILABLE_NOW = False
"""Whether Spark ends an AvailableNow query of a Python source after one batch, instead of reading everything available."""

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
            """A reader that Spark notifies when a query shall read everything available and end."""


__all__ = ["ONE_BATCH_OF_AVAILABLE_NOW", "ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]
