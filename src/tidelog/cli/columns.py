"""Tables in the layout of Kafka's tools: columns with a minimum width, separated by one space, wider where a value needs it.

Clients choose names of groups and their own: what would control a terminal is shown as an escape. JSON has the names as they are.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from tidelog.model.printable import printable

Row = dict[str, Any]
LEAST_WIDTH = 8
"""A narrower column is unreadable; lines are then longer than the terminal."""
output_option = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="json: for programs."
)
"""The ``--output`` option of tools that describe something."""


@dataclass(frozen=True, slots=True)
class Column:
    """``key`` names the value in a row; ``pad`` False leaves the last column unpadded."""

    title: str
    key: str
    width: int
    pad: bool = True


def table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Title line and rows. None is printed as ``-``."""
    widths = [max([column.width, *(len(_text(row[column.key])) for row in rows)]) if column.pad else 0 for column in columns]
    lines = [[column.title for column in columns], *([_text(row[column.key]) for column in columns] for row in rows)]
    if sys.stdout.isatty():
        needed = [max(len(line[index]) for line in lines) for index in range(len(columns))]
        widths = fitting(widths, needed, shutil.get_terminal_size().columns)
        lines = [[_cut(text, width) if width else text for text, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(" ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines)


def fitting(widths: Sequence[int], needed: Sequence[int], room: int) -> list[int]:
    """Kafka's widths if they fit the terminal, else the widths of the values, else with the widest columns cut."""
    gaps = len(widths) - 1
    result = [max(wide, need) for wide, need in zip(widths, needed, strict=True)]
    if sum(result) + gaps <= room:
        return list(widths)
    result = list(needed)
    while sum(result) + gaps > room and max(result) > LEAST_WIDTH:
        result[result.index(max(result))] -= 1
    return result


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "\u2026"


def as_json(rows: object) -> str:
    """The table as JSON."""
    return json.dumps(rows, indent=2)


def _text(value: Any) -> str:
    return "-" if value is None else printable(str(value))
