"""How a sink's rows are put into folders: by columns, or by a time that is cut to year, month, day or hour.

``day(event_time)`` adds the column ``event_time_day`` to the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tidelog.model.errors import ConfigError

_FORM = re.compile(r"(?:(year|month|day|hour)\((\w+)\)|(\w+))")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One level of folders. ``unit`` is empty for a plain column."""

    source: str
    unit: str = ""

    @property
    def name(self) -> str:
        """The column that is partitioned by."""
        return f"{self.source}_{self.unit}" if self.unit else self.source

    def sql(self) -> str:
        """The expression."""
        if self.unit == "day":
            return f"to_date(`{self.source}`)"
        form = {"year": "yyyy", "month": "yyyy-MM", "hour": "yyyy-MM-dd-HH"}
        return f"date_format(`{self.source}`, '{form[self.unit]}')" if self.unit else f"`{self.source}`"

    def column(self) -> Any:
        """The expression for Spark."""
        from pyspark.sql import functions as F

        return F.expr(self.sql())


def partition_columns(said: tuple[str, ...]) -> tuple[PartitionColumn, ...]:
    """ConfigError for a text that is neither a column nor a unit of one."""
    found = []
    for text in said:
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ConfigError(
                f"partition_by has {text!r}: say a column, or year, month, day or hour of one, like day(event_time)."
            )
        found.append(PartitionColumn(match[3] or match[2], match[1] or ""))
    return tuple(found)
