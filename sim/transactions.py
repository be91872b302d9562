"""Transactional logs for property tests: random producers that write them, and what readers of committed records must see."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidelog.records.batch import BatchHeader, iter_headers, read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch, parse_end_txn_marker
from tidelog.records.record import Record, iter_records
from tidelog.storage import reading
from tidelog.storage.unified_log import UnifiedLog


@dataclass
class Producers:
    """What clients and coordinators know: epochs, sequences, open transactions. Odd producers bump their epoch with each marker
    (transaction.version 2), even ones do not."""

    rng: random.Random
    ids: tuple[int, ...] = (21, 22, 23, 24)
    epochs: dict[int, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def data(self, records: list[RecordData], producer: int | None = None) -> bytearray:
        """A batch within a transaction, which it opens if need be."""
        producer = self.rng.choice(self.ids) if producer is None else producer
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + len(records)
        self.open.add(producer)
        return build_batch(
            records,
            producer_id=producer,
            producer_epoch=self.epochs.get(producer, 0),
            base_sequence=sequence,
            transactional=True,
        )

    def marker(self, now_ms: int, producer: int | None = None, *, commit: bool | None = None) -> bytearray:
        """The end of a transaction; now and then for a producer that has none open."""
        if producer is None:
            producer = self.rng.choice(sorted(self.open) if self.open and self.rng.random() < 0.9 else self.ids)
        commit = self.rng.random() < 0.5 if commit is None else commit
        if producer % 2:
            self.epochs[producer] = self.epochs.get(producer, 0) + 1
            self.sequences[producer] = 0
        self.open.discard(producer)
        return end_txn_marker_batch(
            EndTxnMarker(commit, 0), producer_id=producer, producer_epoch=self.epochs.get(producer, 0), timestamp_ms=now_ms
        )

    def resume(self, log: UnifiedLog) -> None:
        """Go on from what a log knows."""
        entries = {producer: entry for producer, entry in log.producers.entries.items() if producer in self.ids}
        self.epochs = {producer: entry.epoch for producer, entry in entries.items()}
        self.sequences = {producer: entry.last_sequence + 1 for producer, entry in entries.items()}
        self.open = {producer for producer, entry in entries.items() if entry.txn_first_offset >= 0}


def is_commit(batch: bytes | memoryview, header: BatchHeader) -> bool | None:
    """How a marker ends its transaction; None for a marker of which compaction left the header alone."""
    record = next(iter(iter_records(batch, header)), None)
    marker = None if record is None else parse_end_txn_marker(record.key, record.value)
    return None if marker is None else marker.commit


def committed(batches: Iterable[bytes]) -> tuple[dict[int, bytes | None], int | None]:
    """By the book, from the first batch on: offset -> value of each record outside of aborted and open transactions; and the
    first offset of the oldest open one."""
    found: dict[int, bytes | None] = {}
    waiting: dict[int, dict[int, bytes | None]] = {}
    begun: dict[int, int] = {}
    for batch in batches:
        header = read_header(batch)
        if header.is_control:
            ended = waiting.pop(header.producer_id, {})
            begun.pop(header.producer_id, None)
            if is_commit(batch, header):
                found.update(ended)
            continue
        values = {record.offset: None if record.value is None else bytes(record.value) for record in iter_records(batch, header)}
        if header.is_transactional:
            begun.setdefault(header.producer_id, header.base_offset)
            waiting.setdefault(header.producer_id, {}).update(values)
        else:
            found.update(values)
    return found, min(begun.values(), default=None)


def read_committed(log: UnifiedLog, start: int, max_bytes: int) -> dict[int, Record]:
    """What a consumer with isolation.level=read_committed finds from ``start`` on, fetch by fetch, filtered as clients do it."""
    found: dict[int, Record] = {}
    offset, stable = max(start, log.log_start_offset), log.last_stable_offset
    while offset < stable:
        piece = reading.read(log, offset, max_bytes, upto=stable, min_one=True).slice
        if piece is None:
            break
        end = reading.end_of_read(log, offset, piece, stable)
        aborted = [(e.first_offset, e.producer_id) for e in reading.aborted_transactions(log, offset, end)]
        data = piece.read()
        offset = _filtered(data, sorted(aborted), offset, found)
    return found


def _filtered(data: bytes, aborted: list[tuple[int, int]], wanted: int, found: dict[int, Record]) -> int:
    """One answer, as KafkaConsumer goes through it; where the next fetch begins."""
    dropped: set[int] = set()
    offset = wanted
    for header in iter_headers(data):
        while aborted and aborted[0][0] <= header.last_offset:
            dropped.add(aborted.pop(0)[1])
        offset = header.last_offset + 1
        if header.is_control:
            if is_commit(data, header) is False:
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            found.update((record.offset, record) for record in iter_records(data, header) if record.offset >= wanted)
    return offset
