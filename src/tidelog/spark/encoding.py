"""Arrow batches into record batches, one open per partition: which row goes where, and when a batch is closed.

A row goes to its column ``partition``, else where Java's producer puts its key, else (no key) to the task's present partition,
which changes when a batch for it is closed. A batch is closed when it is full, when memory is short, and at the end.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.client.producer_settings import ProducerSettings
from tidelog.model.errors import ConfigError
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import HEADER_SIZE
from tidelog.records.builder import assemble
from tidelog.records.compression import Codec, compress
from tidelog.spark.appending import WriteFailed
from tidelog.spark.rows import Bytes, Rows, encoder, partitions_of

COLUMNS = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""The columns that a row may have, and their Spark types: those of Spark's Kafka connector, and ``timestamp``."""


@dataclass(slots=True)
class _Open:
    body: bytearray
    base_timestamp: int
    max_timestamp: int
    count: int = 0


def check_columns(names_and_types: list[tuple[str, str]], topic: str | None) -> None:
    """ConfigError when rows of this schema cannot be written, or not without loss."""
    found = dict(names_and_types)
    for name, kind in names_and_types:
        if name not in COLUMNS:
            raise ConfigError(
                f"The column {name} would not be written: a record has {', '.join(COLUMNS)}. Drop it, or put it into value "
                "(to_json(struct(...)))."
            )
        if kind not in COLUMNS[name]:
            raise ConfigError(f"The column {name} is {kind}, and must be {' or '.join(COLUMNS[name])}: cast it.")
    if "value" not in found:
        raise ConfigError("There is no column value, and that is what is written: rows need value, and may have key.")
    if topic is None and "topic" not in found:
        raise ConfigError("No topic is named: set the option topic, or give rows a column topic.")
    if topic is not None and "topic" in found:
        raise ConfigError(f"The option topic says {topic!r}, and rows have a column topic too: drop one of them.")


class RowEncoder:
    """``closed`` receives each finished batch, without producer fields; ``partitions`` is the number of partitions of a topic."""

    def __init__(
        self,
        settings: ProducerSettings,
        topic: str | None,
        partitions: Callable[[str], int],
        closed: Callable[[TopicPartition, int, bytearray], None],
        *,
        now_ms: int,
        first_partition: int = 0,
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._partitions = partitions
        self._closed = closed
        self._now_ms = now_ms
        self._first = first_partition
        self._open: dict[TopicPartition, _Open] = {}
        self._held = 0
        self._at: dict[str, int] = {}
        self._batch_bytes = min(settings.batch_size, settings.max_request_size - HEADER_SIZE)

    def add(self, batch: Any) -> None:
        """Add all rows of an Arrow record batch. ConfigError or WriteFailed names a row that cannot be written."""
        if not batch.num_rows:
            return
        rows = _rows(batch, self._now_ms)
        encoding = encoder(rows)
        for topic, chosen in self._topics(batch):
            self._add(topic, chosen, batch, rows, encoding)

    def finish(self) -> None:
        """Close the open batches."""
        for at in sorted(self._open):
            self._close(at)

    def _topics(self, batch: Any) -> list[tuple[str, array[int] | None]]:
        if self._topic is not None:
            return [(self._topic, None)]
        column = _column(batch, "topic")
        if column is None or column.null_count:
            raise WriteFailed("A row has no topic: its column topic is null, and the option topic is not set.")
        names = pc.unique(column).to_pylist()
        if len(names) == 1:
            return [(names[0], None)]
        everything = column.to_pylist()
        by_topic: dict[str, array[int]] = {name: array("i") for name in names}
        for row, name in enumerate(everything):
            by_topic[name].append(row)
        return list(by_topic.items())

    def _add(self, topic: str, chosen: array[int] | None, batch: Any, rows: Rows, encoding: Any) -> None:
        count = self._partitions(topic)
        keyed = partitions_of(rows.key, rows.rows, count)
        explicit = _column(batch, "partition")
        if explicit is not None:
            for row, asked in enumerate(explicit.to_pylist()):
                if asked is not None:
                    if not 0 <= asked < count and (chosen is None or row in set(chosen)):
                        raise WriteFailed(f"A row is for partition {asked} of {topic}, which has partitions 0 to {count - 1}.")
                    keyed[row] = asked
        by_partition: dict[int, array[int]] = {}
        for row in range(rows.rows) if chosen is None else chosen:
            by_partition.setdefault(keyed[row], array("i")).append(row)
        for partition, its in sorted(by_partition.items()):
            self._append(topic, partition, its, rows, encoding, count)

    def _append(self, topic: str, partition: int, its: array[int], rows: Rows, encoding: Any, count: int) -> None:
        timestamps = memoryview(rows.timestamps).cast("B").cast("q")
        done = 0
        while done < len(its):
            index = partition if partition >= 0 else self._at.setdefault(topic, self._first % count)
            at = TopicPartition(topic, index)
            found = self._open.get(at)
            if found is None:
                first = timestamps[its[done]]
                found = self._open[at] = _Open(bytearray(), first, first)
            before, size = done, len(found.body)
            done, highest = encoding.append(found.body, its, done, found.base_timestamp, found.count, self._batch_bytes)
            found.count += done - before
            found.max_timestamp = max(found.max_timestamp, highest)
            self._held += len(found.body) - size
            if done < len(its):
                self._close(at)
                if partition < 0:
                    self._at[topic] = (index + 1) % count
            while self._held > self._settings.buffer_memory and self._open:
                self._close(max(self._open, key=lambda a: len(self._open[a].body)))

    def _close(self, at: TopicPartition) -> None:
        found = self._open.pop(at)
        self._held -= len(found.body)
        if not found.count:
            return
        codec = self._settings.codec
        body: Any = found.body
        if codec != Codec.NONE:
            body = compress(codec, bytes(found.body), self._settings.compression_level)
        size = HEADER_SIZE + len(body)
        if size > self._settings.max_request_size:
            raise WriteFailed(
                f"Rows for {at} make a batch of {size} bytes, and kafka.max.request.size is {self._settings.max_request_size}: "
                "raise it, and the topic's max.message.bytes."
            )
        batch = assemble(
            body,
            found.count,
            base_offset=0,
            last_offset_delta=found.count - 1,
            leader_epoch=-1,
            attributes=codec,
            base_timestamp=found.base_timestamp,
            max_timestamp=found.max_timestamp,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
        )
        self._closed(at, found.count, batch)


def _column(batch: Any, name: str) -> Any:
    index = batch.schema.get_field_index(name)
    return None if index < 0 else batch.column(index)


def _rows(batch: Any, now_ms: int) -> Rows:
    return Rows(
        batch.num_rows,
        _timestamps(_column(batch, "timestamp"), batch.num_rows, now_ms),
        _bytes(_column(batch, "key")),
        _bytes(_column(batch, "value")),
        _headers(_column(batch, "headers")),
    )


def _bytes(column: Any) -> Bytes | None:
    """The buffers of a column. A column that begins inside of its buffers, or has 64-bit offsets, is copied first."""
    if column is None or column.null_count == len(column):
        return None
    if column.type != pa.binary():
        column = column.cast(pa.binary())
    if column.offset:
        column = pa.concat_arrays([column, pa.array([], pa.binary())])
        if column.offset:
            column = pa.array(column.to_pylist(), pa.binary())
    valid, offsets, data = column.buffers()
    return Bytes(offsets, data if data is not None else b"", valid if column.null_count else None)


def _timestamps(column: Any, count: int, now_ms: int) -> Any:
    if column is None:
        return array("q", [now_ms]) * count
    millis = column.cast(pa.timestamp("ms", tz=column.type.tz), safe=False).cast(pa.int64()).fill_null(now_ms)
    return millis.buffers()[1][8 * millis.offset : 8 * (millis.offset + count)]


def _headers(column: Any) -> list[Any] | None:
    if column is None or column.null_count == len(column):
        return None
    found: list[Any] = []
    for pairs in column.to_pylist():
        taken = []
        for pair in pairs or ():
            if pair is None or pair["key"] is None:
                raise WriteFailed("A row has a header without a key: every header needs one.")
            taken.append((pair["key"].encode(), pair["value"]))
        found.append(taken)
    return found
