"""Denials out of the lines that nodes write to their audit. Pure; whatever is in the topic is skipped unless it is one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tidelog.records.batch import CorruptBatch, iter_headers
from tidelog.records.record import iter_records

MOST_DECOMPRESSED: Final = 4 << 20
MOST_LINE: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Denial:
    """An operation that the authorizer denied. ``kind``: TOPIC, GROUP, ..."""

    at_ms: int
    principal: str
    client_id: str
    host: str
    operation: str
    kind: str
    name: str


def events(records: bytes, begin: int) -> tuple[list[Denial], int]:
    """Denials in fetched batches, and the offset behind them; ``begin`` where none is whole."""
    found: list[Denial] = []
    try:
        for header in iter_headers(records):
            if header.end_position > len(records):
                break
            for record in iter_records(records, header, max_decompressed=MOST_DECOMPRESSED):
                denial = denial_of(record.value or b"")
                if denial is not None:
                    found.append(denial)
            begin = max(begin, header.next_offset)
    except CorruptBatch:
        pass
    return found, begin


def denial_of(line: bytes) -> Denial | None:
    """From an event of the audit; None for another one, or for something else."""
    if len(line) > MOST_LINE:
        return None
    try:
        event: Any = json.loads(line)
        if event["type"] != "authorization" or event["allowed"] or event.get("dryRun"):
            return None
        at = datetime.fromisoformat(event["time"])
        return Denial(
            int(at.timestamp() * 1000),
            str(event["principal"]),
            str(event.get("clientId") or ""),
            str(event["host"]),
            str(event["operation"]),
            str(event["resourceType"]),
            str(event["resourceName"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
