"""Rows as cells of HBase, in the JSON of its REST server. Pure: the same rows are the same bytes whenever they are written.

A row key is the key columns as text, with a zero byte between several (as Phoenix joins them). A cell's timestamp comes from the
row too, so a batch that is written again writes the same cells, and of two rows with one key HBase shows the newer.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidelog.pipeline.sinks.base import SinkError

BETWEEN_KEYS = b"\0"
LONGEST_KEY = 32_767
"""HBase's limit (``HConstants.MAX_ROW_LENGTH``), bytes."""
MAX_ROWS = 1000
MAX_BYTES = 1 << 20
"""A request has at most this many rows, and is sent when its values reach this many bytes."""
_NUMBERS = {"tinyint": ">b", "smallint": ">h", "int": ">i", "bigint": ">q", "float": ">f", "double": ">d"}
PACKED = (*_NUMBERS, "boolean")
"""Spark's types that ``encoding: binary`` writes as Java's ``Bytes.toBytes`` does; all others are text in both encodings."""


@dataclass(frozen=True, slots=True)
class Cells:
    """How rows become cells. Sent to executors. ``columns``: column -> ``family:qualifier``; ``packed``: column -> Spark's
    type, for those that are written as Java writes them; ``keys`` and ``at``: the columns of the row key and of the timestamp;
    without ``at`` HBase uses its clock."""

    columns: Mapping[str, bytes]
    keys: tuple[str, ...]
    at: str = ""
    packed: Mapping[str, str] = field(default_factory=dict)

    def requests(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[bytes, int]]:
        """Bodies of requests, and the number of rows in each. SinkError for a row that HBase cannot take."""
        names = {name: _text(column) for name, column in self.columns.items()}
        packers = {name: packer(kind) for name, kind in self.packed.items()}
        found: list[dict[str, Any]] = []
        size = 0
        for row in rows:
            cells = []
            dated = {"timestamp": row[self.at]} if self.at else {}
            for name, column in names.items():
                value = row[name]
                raw = packers[name](value) if value is not None and name in packers else as_bytes(value)
                cells.append({"column": column, **dated, "$": _text(raw)})
                size += len(raw)
            found.append({"key": _text(row_key([row[key] for key in self.keys])), "Cell": cells})
            if len(found) == MAX_ROWS or size >= MAX_BYTES:
                yield _body(found), len(found)
                found, size = [], 0
        if found:
            yield _body(found), len(found)


def row_key(values: list[Any]) -> bytes:
    """The values of the key columns as HBase's row key."""
    parts = [as_bytes(value) for value in values]
    if len(parts) > 1 and any(BETWEEN_KEYS in part for part in parts):
        raise SinkError("a key column contains a zero byte, which separates the columns of a row key: use one key column.")
    key = BETWEEN_KEYS.join(parts)
    if not 0 < len(key) <= LONGEST_KEY:
        raise SinkError(f"a row key has {len(key)} bytes, and HBase takes 1 to {LONGEST_KEY}: use other keys.")
    return key


def as_bytes(value: Any) -> bytes:
    """Text in UTF-8, bytes unchanged. NULL has no bytes: its cell hides the earlier value."""
    if value is None:
        return b""
    return value if isinstance(value, bytes) else str(value).encode()


def packer(kind: str) -> Callable[[Any], bytes]:
    """The equivalent of Java's ``Bytes.toBytes`` for this Spark type."""
    if kind == "boolean":
        return lambda value: b"\xff" if value else b"\0"
    return struct.Struct(_NUMBERS[kind]).pack


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _body(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps({"Row": rows}, separators=(",", ":")).encode()
