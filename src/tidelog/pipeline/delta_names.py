"""How SQL names a Delta table by its path."""

from __future__ import annotations

from typing import Any


def delta_name(spark: Any, path: str) -> str:
    """``path`` as SQL takes it. A relative path is made absolute, as Spark reads it: in SQL it would name a table."""
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return quoted(system.makeQualified(place).toString())


def quoted(place: str) -> str:
    """A qualified path in backquotes."""
    return "delta.`" + place.replace("`", "``") + "`"
