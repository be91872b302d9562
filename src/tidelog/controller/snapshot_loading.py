"""The cluster's image from a snapshot on disk."""

from __future__ import annotations

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.raft.snapshots import Snapshot, SnapshotId


def image_of_snapshot(cluster_id: str, snapshot_id: SnapshotId, snapshot: Snapshot) -> ClusterImage:
    """The image of a snapshot; empty for the 0-0 checkpoint. MetadataLogError for a record that cannot be applied."""
    delta = ClusterDelta(ClusterImage(cluster_id=cluster_id))
    for record in snapshot.records:
        delta.replay(record)
    if snapshot_id.is_bootstrap:
        return delta.base
    return delta.apply(snapshot_id.offset - 1, snapshot_id.epoch, snapshot.timestamp_ms)
