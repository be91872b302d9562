"""Records as the browser gets them: decoded, cut, masked; and whether a filter takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from tidelog.console.access.rights import Access
from tidelog.console.filters.evaluation import Part, Subject, Test
from tidelog.console.payloads.decoding import Payload, decode, masked, masked_text, whole_text
from tidelog.console.payloads.exact_json import behind
from tidelog.console.payloads.framed import HEADERS, Schemas
from tidelog.console.reading.scanning import Seen
from tidelog.records.compression import Codec

HEADER_BYTES: Final = 1024
"""Of each header's name and value that are shown."""
MAX_HEADERS: Final = 100
NO_TIMESTAMP: Final = -1

Paths = tuple[tuple[str, ...], ...]


class Row(NamedTuple):
    """One record for the browser, and what rows are sorted by."""

    partition: int
    offset: int
    timestamp: int
    line: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hidden:
    """The masked paths inside of each part of a record; an empty path is the whole part."""

    key: Paths = ()
    value: Paths = ()
    headers: Paths = ()

    @classmethod
    def of(cls, access: Access, cluster_id: str, topic: str) -> Hidden:
        """What a user may not see in a topic."""
        return cls(*(access.hidden(cluster_id, topic, part) for part in ("key", "value", "headers")))


@dataclass(frozen=True, slots=True)
class View:
    """How records are shown, and which. ``cut``: bytes of each key and value. ``aborted`` and ``control``: those, too."""

    key: str = "auto"
    value: str = "auto"
    cut: int = 16_384
    test: Test | None = None
    aborted: bool = False
    control: bool = False
    hidden: Hidden = Hidden()
    schemas: Schemas | None = None

    def row(self, seen: Seen) -> Row | None:
        """The record, or None if it is not wanted."""
        if (seen.state == "control" and not self.control) or (seen.state == "aborted" and not self.aborted):
            return None
        if self.test is not None and not self.test(self._subject(seen)):
            return None
        return Row(seen.partition, seen.offset, seen.timestamp, self._line(seen))

    def _subject(self, seen: Seen) -> Subject:
        hidden = self.hidden
        return Subject(
            seen.partition,
            seen.offset,
            seen.timestamp,
            _part(seen.key, hidden.key, self.schemas, _schema_header(seen, "key")),
            _part(seen.value, hidden.value, self.schemas, _schema_header(seen, "value")),
            {_name(name): _part(value, _of_header(hidden.headers, _name(name)), None) for name, value in seen.headers},
        )

    def _line(self, seen: Seen) -> dict[str, Any]:
        batch, hidden = seen.batch, self.hidden
        return {
            "kind": "record",
            "partition": seen.partition,
            "offset": str(seen.offset),
            "timestamp_ms": str(seen.timestamp),
            "timestamp_type": "append" if batch.log_append_time else "none" if seen.timestamp == NO_TIMESTAMP else "create",
            "key": self._shown(seen, "key", seen.key, hidden.key),
            "value": self._shown(seen, "value", seen.value, hidden.value),
            "headers": [
                {
                    "name": _name(name)[:HEADER_BYTES],
                    "value": _payload(value, "auto", HEADER_BYTES, _of_header(hidden.headers, _name(name))),
                }
                for name, value in seen.headers[:MAX_HEADERS]
            ],
            "size": len(seen.key or b"") + len(seen.value or b"") + sum(len(value or b"") for _, value in seen.headers),
            "batch": {
                "compression": _codec(batch.codec),
                "producer_id": str(batch.producer_id),
                "producer_epoch": batch.producer_epoch,
                "sequence": _sequence(batch.base_sequence, seen.offset - batch.base_offset),
                "transactional": batch.is_transactional,
                "leader_epoch": batch.leader_epoch,
            },
            "state": seen.state,
            "control": seen.control,
        }

    def _shown(self, seen: Seen, part: str, data: bytes | None, paths: Paths) -> Mapping[str, Any] | None:
        decoder = "hex" if seen.state == "control" else self.key if part == "key" else self.value
        return _payload(data, decoder, self.cut, paths, self.schemas, _schema_header(seen, part))


def instant(timestamp_ms: int) -> str | None:
    """ISO 8601 in UTC; None for none, or beyond the year 9999."""
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return None if timestamp_ms == NO_TIMESTAMP else when.isoformat(timespec="milliseconds")


def _payload(
    data: bytes | None,
    decoder: str,
    limit: int,
    paths: Paths,
    schemas: Schemas | None = None,
    header: bytes | None = None,
) -> Mapping[str, Any] | None:
    if data is None:
        return None
    found: Payload = masked(data, paths, limit, schemas, header) if paths else decode(data, decoder, limit, schemas, header)
    return found.as_json()


def _part(data: bytes | None, paths: Paths, schemas: Schemas | None, header: bytes | None = None) -> Part:
    return Part(
        lambda: masked_text(data, paths, schemas, header) if paths else whole_text(data, schemas, header),
        0 if data is None else len(data),
    )


def _schema_header(seen: Seen, part: str) -> bytes | None:
    """The value of the first header that says the schema of a key or value, as deserializers take it."""
    return next((value for name, value in seen.headers if _name(name) == HEADERS[part]), None)


def _of_header(paths: Paths, name: str) -> Paths:
    """The paths inside of one header's value: of ``headers.NAME.x`` the rest behind the name."""
    return tuple(tuple(rest) for path in paths if (rest := behind(path, name) if path else path) is not None)


def _name(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")


def _codec(number: int) -> str:
    try:
        return Codec(number).name.lower()
    except ValueError:
        return f"codec {number}"


def _sequence(base: int, delta: int) -> int:
    return -1 if base < 0 else (base + delta) & 0x7FFFFFFF
