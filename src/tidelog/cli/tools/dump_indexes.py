"""Indexes and snapshots for ``tidelog dump-log``, compared with the log that they index."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from tidelog.records.batch import HEADER_SIZE, BatchHeader, CorruptBatch, read_header
from tidelog.storage.index import CorruptIndex, OffsetIndex, TimeIndex, parse_transaction_index
from tidelog.storage.producer_state import CorruptSnapshot, decode_snapshot

_LENGTH_PREFIX = 12


class Problems:
    """Problems found, by file."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, where: str, what: str) -> None:
        self._found.setdefault(where, []).append(what)

    def print(self) -> None:
        """Prints to standard error, after everything else."""
        for where, problems in self._found.items():
            print(f"Mismatches in {where}:", file=sys.stderr)
            for problem in problems:
                print(f"  {problem}", file=sys.stderr)


def dump_offset_index(path: str, problems: Problems, *, verify_only: bool, sanity_only: bool) -> None:
    """``offset: position:`` per entry. Each must be the last offset of the batch at that position."""
    log_path = _log_of(path)
    log_size = os.path.getsize(log_path) if os.path.exists(log_path) else 1 << 31
    try:
        index = OffsetIndex.parse(_base_offset(path), _read(path), log_size)
    except CorruptIndex as error:
        problems.add(path, str(error))
        return
    if sanity_only:
        print(f"{path} passed sanity check.")
        return
    for relative, position in zip(index.relative_offsets, index.positions, strict=True):
        offset = index.base_offset + relative
        if not verify_only:
            print(f"offset: {offset} position: {position}")
        if os.path.exists(log_path):
            header = _batch_at(log_path, position)
            if header is None:
                problems.add(path, f"Index offset: {offset}, and no batch at position {position} of the log")
            elif header.last_offset != offset:
                problems.add(path, f"Index offset: {offset}, log offset: {header.last_offset}")


def dump_time_index(path: str, problems: Problems, *, verify_only: bool, sanity_only: bool) -> None:
    """``timestamp: offset:`` per entry. Each must be the largest timestamp of the log up to that offset."""
    try:
        index = TimeIndex.parse(_base_offset(path), _read(path))
    except CorruptIndex as error:
        problems.add(path, str(error))
        return
    if sanity_only:
        print(f"{path} passed sanity check.")
        return
    log_path = _log_of(path)
    batches = _headers(log_path) if os.path.exists(log_path) else None
    largest = -1
    header: BatchHeader | None = None
    for timestamp, relative in zip(index.timestamps, index.relative_offsets, strict=True):
        offset = index.base_offset + relative
        if not verify_only:
            print(f"timestamp: {timestamp} offset: {offset}")
        if batches is None:
            continue
        while header is None or header.last_offset < offset:
            header = next(batches, None)
            if header is None:
                problems.add(path, f"Index offset: {offset}, and no such offset in the log")
                return
            largest = max(largest, header.max_timestamp)
        if timestamp != largest:
            problems.add(path, f"Index timestamp: {timestamp}, log timestamp: {largest}")


def dump_transaction_index(path: str, problems: Problems) -> None:
    """One line per aborted transaction."""
    try:
        entries = parse_transaction_index(_base_offset(path), _read(path))
    except CorruptIndex as error:
        problems.add(path, str(error))
        return
    for entry in entries:
        print(
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} lastOffset: {entry.last_offset}"
            f" lastStableOffset: {entry.last_stable_offset}"
        )


def dump_snapshot(path: str, problems: Problems) -> None:
    """One line per producer, with its last batch if it has one."""
    try:
        entries = decode_snapshot(_read(path))
    except CorruptSnapshot as error:
        problems.add(path, str(error))
        return
    for entry in entries:
        first = entry.txn_first_offset
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {'OptionalLong.empty' if first < 0 else f'OptionalLong[{first}]'}"
            f" lastTimestamp: {entry.last_timestamp}"
        )
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} lastOffset: {batch.last_offset}"
                f" offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
        print(line)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _log_of(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.log"


def _base_offset(path: str) -> int:
    """From the name of the file; 0 when the name has none."""
    stem = os.path.basename(path).split(".")[0]
    return int(stem) if stem.isdecimal() else 0


def _batch_at(log_path: str, position: int) -> BatchHeader | None:
    with open(log_path, "rb") as file:
        file.seek(position)
        return _header(file.read(HEADER_SIZE))


def _headers(log_path: str) -> Iterator[BatchHeader]:
    """All batch headers, without their records."""
    position = 0
    with open(log_path, "rb") as file:
        while True:
            file.seek(position)
            header = _header(file.read(HEADER_SIZE))
            if header is None:
                return
            yield header
            position += header.size


def _header(data: bytes) -> BatchHeader | None:
    """The header in these bytes, without its records; None when it is malformed."""
    if len(data) < HEADER_SIZE:
        return None
    size = int.from_bytes(data[8:12], "big", signed=True) + _LENGTH_PREFIX
    if size < HEADER_SIZE:
        return None
    try:
        # Only the header was read: it is parsed as a batch without records, then its size is restored.
        header = read_header(data[:8] + (HEADER_SIZE - _LENGTH_PREFIX).to_bytes(4, "big") + data[12:])
    except CorruptBatch:
        return None
    header.size = size
    return header
