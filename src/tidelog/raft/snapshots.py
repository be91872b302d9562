"""Metadata snapshots: ``<end offset>-<epoch>.checkpoint`` beside the log; they replace the records below that offset.

A snapshot is a sequence of record batches from offset 0: a control batch with the SnapshotHeader (and with KRaftVersion and
Voters from kraft.version 1 on), batches of metadata records, a control batch with the SnapshotFooter. It is written to ``.part``,
synced, and renamed: a file with the final name is complete. ``bootstrap.checkpoint`` and the 0-0 checkpoint have the same format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord, decode_record, encode_record
from tidelog.metadata.snapshot import snapshot_records
from tidelog.model.ports import File, FileSystem
from tidelog.raft.voters import VoterSet
from tidelog.records.batch import CorruptBatch, crc_is_valid, iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.control import (
    ControlType,
    control_batch,
    control_type,
    kraft_version_value,
    parse_kraft_version,
    parse_snapshot_header,
    parse_voters,
    snapshot_footer_value,
    snapshot_header_value,
    voters_value,
)
from tidelog.records.record import Record, iter_records
from tidelog.storage.checkpoints import read_file
from tidelog.storage.producer_replay import iter_batches

SUFFIX = ".checkpoint"
BOOTSTRAP_FILE = f"bootstrap{SUFFIX}"
"""The records that ``format`` left for the first start of a cluster."""
PART_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
MAX_BATCH_RECORDS = 1024
MAX_BATCH_BYTES = 8 * 1024 * 1024
RECORDS_A_BREATH = 64
"""Records encoded in one go, some tenths of a millisecond, before the job yields."""
READ_ONLY = 0o400


class SnapshotId(NamedTuple):
    """All records below ``offset`` (exclusive); ``epoch`` is that of the last one."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}{SUFFIX}"

    @property
    def is_bootstrap(self) -> bool:
        """The 0-0 checkpoint of ``format``: it holds the first voter set, and is never served to other replicas (KIP-853)."""
        return self.offset == 0


class Snapshot(NamedTuple):
    """The contents of a snapshot file."""

    timestamp_ms: int
    kraft_version: int | None
    voters: VoterSet | None
    records: tuple[MetadataRecord, ...]


def parse_file_name(name: str) -> SnapshotId | None:
    """The id in a snapshot's file name; None for any other file."""
    stem = name.removesuffix(SUFFIX)
    offset, dash, epoch = stem.partition("-")
    if stem == name or not dash or len(offset) != 20 or len(epoch) != 10 or not (offset + epoch).isdecimal():
        return None
    return SnapshotId(int(offset), int(epoch))


def list_snapshots(fs: FileSystem, directory: str) -> list[SnapshotId]:
    """The complete snapshots in the directory, ascending."""
    return sorted(found for name in fs.listdir(directory) if (found := parse_file_name(name)) is not None)


def remove_leftovers(fs: FileSystem, directory: str) -> None:
    """Removes half-written and half-deleted files after a crash."""
    for name in fs.listdir(directory):
        for suffix in (PART_SUFFIX, DELETED_SUFFIX):
            if name.endswith(SUFFIX + suffix):
                fs.remove(f"{directory}/{name}")


def encode_snapshot(
    records: Iterable[MetadataRecord],
    *,
    metadata_version: int,
    epoch: int,
    now_ms: int,
    last_timestamp_ms: int,
    voters: VoterSet | None = None,
) -> Iterator[bytearray]:
    """The batches of a snapshot file. ``voters``: the voter set, when kraft.version is 1."""
    control = [(ControlType.SNAPSHOT_HEADER, snapshot_header_value(last_timestamp_ms))]
    if voters is not None:
        control.append((ControlType.KRAFT_VERSION, kraft_version_value(1)))
        control.append((ControlType.KRAFT_VOTERS, voters_value(voters.voters)))
    yield control_batch(control, timestamp_ms=now_ms, base_offset=0, leader_epoch=epoch)
    offset = len(control)
    for batch in _batches(records, metadata_version, now_ms):
        yield build_batch(batch, base_offset=offset, leader_epoch=epoch)
        offset += len(batch)
    footer = [(ControlType.SNAPSHOT_FOOTER, snapshot_footer_value())]
    yield control_batch(footer, timestamp_ms=now_ms, base_offset=offset, leader_epoch=epoch)


def _batches(records: Iterable[MetadataRecord], metadata_version: int, now_ms: int) -> Iterator[Sequence[RecordData]]:
    batch: list[RecordData] = []
    size = 0
    for record in records:
        value = encode_record(record, metadata_version)
        if batch and (len(batch) == MAX_BATCH_RECORDS or size + len(value) > MAX_BATCH_BYTES // 2):
            yield batch
            batch, size = [], 0
        batch.append(RecordData(None, value, now_ms))
        size += len(value)
    if batch:
        yield batch


def read_snapshot(fs: FileSystem, path: str) -> Snapshot:
    """The checked contents of the file. MetadataLogError, naming the file and the position, when it is not a complete
    snapshot."""
    data = read_file(fs, path)
    if data is None:
        raise MetadataLogError(f"{path} does not exist")
    try:
        return _parse(data, path)
    except CorruptBatch as error:
        raise MetadataLogError(f"{path} cannot be read: {error}") from error


def _parse(data: bytes, path: str) -> Snapshot:
    timestamp_ms: int | None = None
    kraft_version: int | None = None
    voters: VoterSet | None = None
    records: list[MetadataRecord] = []
    finished = False
    view = memoryview(data)
    for header in iter_headers(view):
        batch = view[header.position : header.position + header.size]
        if not crc_is_valid(view, header):
            raise CorruptBatch(f"the batch at byte {header.position} has a wrong checksum")
        if finished or (timestamp_ms is None and not header.is_control):
            raise CorruptBatch(f"the batch at byte {header.position} lies outside the snapshot's header and footer")
        for record in iter_records(batch):
            if not header.is_control:
                records.append(_decode(record, path))
                continue
            kind = control_type(record.key)
            if kind == ControlType.SNAPSHOT_HEADER:
                timestamp_ms = parse_snapshot_header(record.value)
            elif kind == ControlType.KRAFT_VERSION:
                kraft_version = parse_kraft_version(record.value)
            elif kind == ControlType.KRAFT_VOTERS:
                voters = VoterSet.of(parse_voters(record.value))
            finished = kind == ControlType.SNAPSHOT_FOOTER
    if timestamp_ms is None or not finished:
        raise CorruptBatch("it has no snapshot header or no footer")
    return Snapshot(timestamp_ms, kraft_version, voters, tuple(records))


def _decode(record: Record, path: str) -> MetadataRecord:
    try:
        return decode_record(record.value)
    except MetadataLogError as error:
        raise MetadataLogError(f"{path}, record {record.offset}: {error}") from error


class SnapshotCheck:
    """One read of a snapshot file, piece by piece: checksums, header and footer. Records are not decoded."""

    def __init__(self, file: File, chunk_bytes: int = 1 << 20) -> None:
        """``chunk_bytes``: bytes read at a time."""
        self.problem: str | None = None
        """What is wrong, once it is ``done``."""
        self.done = False
        self.work = 0
        """Bytes read so far."""
        self._file = file
        self._chunk_bytes = chunk_bytes
        self._walk = self._batches()

    def advance(self, budget: int) -> None:
        """Reads about ``budget`` more bytes. Blocks; raises OSError."""
        start = self.work
        for _ in self._walk:
            if self.work - start >= budget:
                return
        self.done = True

    def _batches(self) -> Iterator[None]:
        size, finished, begun = self._file.size(), False, False
        for header, batch in iter_batches(self._file, 0, size, self._chunk_bytes):
            if not crc_is_valid(batch, header):
                self.problem = f"the batch at byte {self.work} has a wrong checksum"
                return
            if header.is_control:
                kinds = [control_type(each.key) for each in iter_records(batch)]
                begun = begun or ControlType.SNAPSHOT_HEADER in kinds
                finished = ControlType.SNAPSHOT_FOOTER in kinds
            self.work += header.size
            yield
        if self.work < size:
            self.problem = f"no batch begins at byte {self.work}"
        elif not begun or not finished:
            self.problem = "it has no snapshot header or no footer"


def problem_of_snapshot(fs: FileSystem, path: str) -> str | None:
    """What is wrong with the file; None for a good one. Blocks; OSError."""
    file = fs.open(path, write=False)
    try:
        check = SnapshotCheck(file)
        while not check.done:
            check.advance(1 << 30)
    finally:
        file.close()
    return check.problem


def write_snapshot(
    fs: FileSystem, directory: str, snapshot_id: SnapshotId, batches: Iterable[bytearray], *, replace: bool = False
) -> int:
    """Writes the file under its final name, synced and read-only; returns its size in bytes. Blocks. Does nothing when it
    exists, unless it is to ``replace`` a damaged one."""
    path = f"{directory}/{snapshot_id.file_name}"
    if fs.exists(path) and not replace:
        return fs.stat(path).size
    part = path + PART_SUFFIX
    file = fs.open(part, create=True)
    position = 0
    try:
        file.truncate(0)
        for batch in batches:
            position += file.write(position, batch)
        file.sync()
    finally:
        file.close()
    fs.set_mode(part, READ_ONLY)
    fs.rename(part, path)
    fs.sync_dir(directory)
    return position


def _at_ease(records: Iterable[MetadataRecord], breathe: Callable[[], None]) -> Iterator[MetadataRecord]:
    for number, record in enumerate(records, 1):
        if not number % RECORDS_A_BREATH:
            breathe()
        yield record


class SnapshotJob:
    """Writes one snapshot of an immutable image. Created on the loop, run in a thread."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        image: ClusterImage,
        voters: VoterSet | None,
        now_ms: int,
        *,
        makes_up_for_damage: bool = False,
    ) -> None:
        self.makes_up_for_damage = makes_up_for_damage
        """It replaces all that is older, and a file of its name."""
        self.id = SnapshotId(image.offset + 1, image.epoch)
        self.size = 0
        self.error: OSError | None = None
        self._fs = fs
        self._directory = directory
        self._image = image
        self._voters = voters
        self._now_ms = now_ms

    def run(self, breathe: Callable[[], None] = lambda: None) -> None:
        """Blocks. An OSError is kept for the code that finishes the job. ``breathe`` is called repeatedly, so that the loop
        gets the interpreter while a large snapshot takes seconds."""
        try:
            self.size = write_snapshot(
                self._fs, self._directory, self.id, self._encode(breathe), replace=self.makes_up_for_damage
            )
        except OSError as problem:
            self.error = problem

    def _encode(self, breathe: Callable[[], None]) -> Iterator[bytearray]:
        return encode_snapshot(
            _at_ease(snapshot_records(self._image), breathe),
            metadata_version=self._image.metadata_version,
            epoch=self.id.epoch,
            now_ms=self._now_ms,
            last_timestamp_ms=self._image.timestamp_ms,
            voters=self._voters,
        )
