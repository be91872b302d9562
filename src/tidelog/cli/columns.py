"""Tables in the layout of Kafka's tools: columns of a least width, one blank between them, wider where a value needs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` names the value in a row; ``pad`` False leaves the last column unpadded."""

    title: str
    key: str
    width: int
    pad: bool = True


def table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Title line and rows. None is shown as ``-``."""
    widths = [max([column.width, *(len(_text(row[column.key])) for row in rows)]) if column.pad else 0 for column in columns]
    lines = [[column.title for column in columns], *([_text(row[column.key]) for column in columns] for row in rows)]
    return "\n".join(" ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines)


def as_json(rows: object) -> str:
    """The same for programs."""
    return json.dumps(rows, indent=2)


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
