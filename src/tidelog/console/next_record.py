"""The record that a group reads next, as far as it explains that it does not: its batch, its time, and of what kind it is beside
the records before it. Contents are not kept. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from tidelog.console.payloads.framed import MAGIC, PREFIX
from tidelog.model.ports import Buffer
from tidelog.records.batch import BatchHeader, CorruptBatch, crc_is_valid, iter_headers
from tidelog.records.record import iter_records

MOST_DECOMPRESSED: Final = 4 << 20
"""Bytes of one batch; what is longer is not looked into."""
MOST_PARSED: Final = 1 << 18
"""Bytes of a value; a longer one is of no kind."""
MOST_BEFORE: Final = 8
"""Records before the next one that it is compared with."""
JSON, FRAMED, TEXT, BINARY, EMPTY, UNKNOWN = "JSON", "framed", "text", "binary", "empty", ""
MOST_ID: Final = 1 << 24
"""Ids of schemas: a larger number is taken for something else."""


@dataclass(frozen=True, slots=True)
class NextRecord:
    """``offset``: its own, at or behind the committed one. ``batch_bytes``: the size of its batch."""

    offset: int
    batch_bytes: int
    timestamp_ms: int = -1
    """The latest of its batch, by which retention goes."""
    kind: str = UNKNOWN
    schema_id: int | None = None
    """Of a value that begins with one (Confluent's serializers)."""
    before: tuple[str, ...] = ()
    """Kinds of the records before it, the oldest first."""
    corrupt: str | None = None
    """Why a client cannot read the batch."""
    schema_missing: bool = False
    """The registry that was asked has no schema with this id."""


def next_record(records: Buffer, begin: int, end: int) -> NextRecord | None:
    """From the answer to a Fetch at ``begin``; None where it has no record before ``end``, or only a part of the batch."""
    try:
        for header in iter_headers(records):
            if header.last_offset < begin or header.is_control or not header.records_count:
                continue
            return _of_batch(records, header, begin, end)
    except CorruptBatch:
        pass
    return None


def _of_batch(records: Buffer, header: BatchHeader, begin: int, end: int) -> NextRecord | None:
    if header.end_position > len(records):
        return None
    found = NextRecord(max(begin, header.base_offset), header.size, header.max_timestamp)
    if not crc_is_valid(records, header):
        return NextRecord(found.offset, header.size, header.max_timestamp, corrupt="its checksum does not fit its bytes")
    try:
        for record in iter_records(records, header, max_decompressed=MOST_DECOMPRESSED):
            if begin <= record.offset < end:
                kind, schema_id = kind_of(record.value)
                return NextRecord(record.offset, header.size, header.max_timestamp, kind, schema_id)
    except CorruptBatch:
        pass  # too large to be looked into, or for the client to say
    return found


def kinds_before(records: Buffer, begin: int) -> tuple[str, ...]:
    """Kinds of the last records before ``begin``, from the answer to a Fetch a little before it."""
    kinds: list[str] = []
    try:
        for header in iter_headers(records):
            if header.base_offset >= begin:
                break
            if header.is_control or header.end_position > len(records):
                continue
            for record in iter_records(records, header, max_decompressed=MOST_DECOMPRESSED):
                if record.offset < begin:
                    kinds.append(kind_of(record.value)[0])
    except CorruptBatch:
        pass
    return tuple(kinds[-MOST_BEFORE:])


def kind_of(value: bytes | None) -> tuple[str, int | None]:
    """What a consumer would take the value for, and its schema's id. A number or a word alone counts as text, not as JSON."""
    if not value:
        return EMPTY, None
    if len(value) > MOST_PARSED:
        return UNKNOWN, None
    if len(value) >= PREFIX and value[0] == MAGIC:
        schema_id = int.from_bytes(value[1:PREFIX], "big")
        return (FRAMED, schema_id) if 0 < schema_id < MOST_ID else (BINARY, None)
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return BINARY, None
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return TEXT, None
        return JSON, None
    return TEXT, None
