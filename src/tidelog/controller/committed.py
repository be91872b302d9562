"""CommittedImage: the cluster's image as of the quorum's high watermark, made by reading the metadata log behind it.

What a replica of the quorum serves from, whether it leads or not. Records of a transaction count when its end is committed.
"""

from __future__ import annotations

from tidelog.controller.loading import image_of_snapshot
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataLogError, decode_record
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.snapshots import Snapshot, SnapshotId


class CommittedImage:
    """See the module."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.next_offset = image.offset + 1
        """Everything below has been read."""
        self.bytes_since_snapshot = 0
        self._delta: ClusterDelta | None = None

    @property
    def transaction_open(self) -> bool:
        """Does the log, as far as it is committed, end within a transaction?"""
        return self._delta is not None

    def load(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """A snapshot that reaches further takes the image's place."""
        self.image = image_of_snapshot(self.image.cluster_id, snapshot_id, snapshot)
        self.next_offset = snapshot_id.offset
        self.bytes_since_snapshot = 0
        self._delta = None

    def advance(self, log: MetadataLog, high_watermark: int) -> None:
        """Reads what was committed. Blocks for what is not in the page cache.

        MetadataLogError for a record that cannot be applied: the node has to stop.
        """
        if self.next_offset >= high_watermark:
            return
        delta = self._delta or ClusterDelta(self.image)
        last_offset, epoch, timestamp_ms = self.image.offset, self.image.epoch, self.image.timestamp_ms
        for header, records in log.batches_from(self.next_offset):
            if header.next_offset > high_watermark:
                break
            if not header.is_control:
                for record in records:
                    try:
                        delta.replay(decode_record(record.value))
                    except MetadataLogError as error:
                        raise MetadataLogError(f"__cluster_metadata-0, offset {record.offset}: {error}") from error
            last_offset, epoch, timestamp_ms = header.last_offset, header.leader_epoch, header.max_timestamp
            self.next_offset = header.next_offset
            self.bytes_since_snapshot += header.size
        if delta.transaction_open:
            self._delta = delta
        else:
            self._delta = None
            self.image = delta.apply(last_offset, epoch, timestamp_ms)
