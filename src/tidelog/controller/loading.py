"""The cluster's image from what is on disk: the newest snapshot, then every batch of the log after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.features import KRAFT_VERSION, check_levels
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError, decode_record
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.node import VoterHistory
from tidelog.raft.snapshots import Snapshot, SnapshotId
from tidelog.raft.voters import VoterSet
from tidelog.records.batch import BatchHeader
from tidelog.records.control import ControlType, control_type, parse_kraft_version, parse_voters
from tidelog.records.record import Record


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the directory says. ``delta`` leads from the empty image to ``image``; ``bytes_since_snapshot`` counts log bytes."""

    image: ClusterImage
    delta: ClusterDelta
    history: VoterHistory
    transaction_open: bool
    bytes_since_snapshot: int


def image_of_snapshot(cluster_id: str, snapshot_id: SnapshotId, snapshot: Snapshot) -> ClusterImage:
    """The image that a snapshot is of; of the 0-0 checkpoint the empty one. MetadataLogError for a record that makes no sense."""
    delta = ClusterDelta(ClusterImage(cluster_id=cluster_id))
    for record in snapshot.records:
        delta.replay(record)
    if snapshot_id.is_bootstrap:
        return delta.base
    return delta.apply(snapshot_id.offset - 1, snapshot_id.epoch, snapshot.timestamp_ms)


class _Loader:
    def __init__(self, cluster_id: str) -> None:
        self.delta = ClusterDelta(ClusterImage(cluster_id=cluster_id))
        self.history = VoterHistory()
        self.offset = -1
        self.epoch = 0
        self.timestamp_ms = 0
        self.log_bytes = 0

    def take_snapshots(self, log: MetadataLog) -> None:
        """The newest real snapshot, or the voters of the 0-0 checkpoint."""
        chosen = log.newest_snapshot or (log.snapshots[0] if log.snapshots else None)
        if chosen is None:
            return
        snapshot = log.read_snapshot(chosen)
        for record in snapshot.records:
            self.delta.replay(record)
        if not chosen.is_bootstrap:
            self.offset, self.epoch, self.timestamp_ms = chosen.offset - 1, chosen.epoch, snapshot.timestamp_ms
        if snapshot.voters is not None:
            self.history = VoterHistory(snapshot.kraft_version or 0, snapshot.voters, in_log=not chosen.is_bootstrap)

    def take_batch(self, header: BatchHeader, records: list[Record]) -> None:
        for record in records:
            if header.is_control:
                self._take_control(record)
                continue
            try:
                self.delta.replay(decode_record(record.value))
            except MetadataLogError as error:
                raise MetadataLogError(f"__cluster_metadata-0, offset {record.offset}: {error}") from error
        self.offset, self.epoch, self.timestamp_ms = header.last_offset, header.leader_epoch, header.max_timestamp
        self.log_bytes += header.size

    def _take_control(self, record: Record) -> None:
        kind = control_type(record.key)
        if kind == ControlType.KRAFT_VERSION:
            self.history = replace(self.history, kraft_version=parse_kraft_version(record.value), in_log=True)
        elif kind == ControlType.KRAFT_VOTERS:
            self.history = replace(self.history, voters=VoterSet.of(parse_voters(record.value)), in_log=True)


def load(log: MetadataLog, cluster_id: str) -> Loaded:
    """Everything, checked for what this node can serve. Blocks.

    MetadataLogError for a record that cannot be read or applied; UnsupportedFeatureLevel for a feature level above ours.
    """
    loader = _Loader(cluster_id)
    loader.take_snapshots(log)
    for header, records in log.batches_from(loader.offset + 1):
        loader.take_batch(header, records)
    image = loader.delta.apply(loader.offset, loader.epoch, loader.timestamp_ms)
    check_levels({**image.features, KRAFT_VERSION: loader.history.kraft_version})
    return Loaded(image, loader.delta, loader.history, loader.delta.transaction_open, loader.log_bytes)
