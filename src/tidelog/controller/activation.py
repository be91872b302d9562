"""The records a controller writes when it becomes active: the bootstrap records of an empty log, the end of a transaction that
its predecessor left open, and its own registration."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.controller.dynamic_configs import min_in_sync_for_all
from tidelog.metadata.image import ClusterImage, ControllerImage
from tidelog.metadata.records import MetadataLogError, MetadataRecord
from tidelog.metadata.snapshot import register_controller_record
from tidelog.metadata.supported_features import (
    CONTROLLER_REGISTRATION_MV,
    ELR_VERSION,
    METADATA_VERSION,
    TRANSACTIONS_MV,
    check_levels,
    default_levels,
)
from tidelog.model.ports import FileSystem
from tidelog.protocol.messages.abort_transaction_record import AbortTransactionRecord
from tidelog.protocol.messages.begin_transaction_record import BeginTransactionRecord
from tidelog.protocol.messages.end_transaction_record import EndTransactionRecord
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.raft.snapshots import BOOTSTRAP_FILE, read_snapshot


def bootstrap_of(fs: FileSystem, log_dir: str) -> list[MetadataRecord]:
    """The bootstrap records that ``format`` left for the first start, or our default feature levels in a directory without
    them. Blocks.

    UnsupportedFeatureLevel for a level that this node does not support.
    """
    path = f"{log_dir}/{BOOTSTRAP_FILE}"
    if not fs.exists(path):
        return [FeatureLevelRecord(name=name, feature_level=level) for name, level in default_levels().items()]
    records = list(read_snapshot(fs, path).records)
    check_levels({record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)})
    return records


def bootstrap_records(bootstrap: Sequence[MetadataRecord], min_insync_replicas: int) -> list[MetadataRecord]:
    """The first records of a new cluster, in one transaction: the contents of ``bootstrap.checkpoint`` and, when those enable
    eligible leader replicas, the cluster-wide ``min.insync.replicas`` that ELR requires."""
    level = next((r.feature_level for r in bootstrap if isinstance(r, FeatureLevelRecord) and r.name == METADATA_VERSION), 0)
    if level == 0:
        raise MetadataLogError("bootstrap.checkpoint names no metadata.version; format the directory again")
    records = list(bootstrap)
    if any(isinstance(r, FeatureLevelRecord) and r.name == ELR_VERSION and r.feature_level > 0 for r in bootstrap):
        records += min_in_sync_for_all(ClusterImage(), min_insync_replicas)
    if level < TRANSACTIONS_MV:
        return records
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]


def abort_records() -> list[MetadataRecord]:
    """Aborts a transaction that the previous leader did not finish; its records never take effect."""
    return [AbortTransactionRecord(reason="The controller that began it is gone.")]


def registration_records(image: ClusterImage, controller: ControllerImage) -> list[MetadataRecord]:
    """The controller's registration; none while ``metadata.version`` does not have the record."""
    if image.metadata_version < CONTROLLER_REGISTRATION_MV:
        return []
    return [register_controller_record(controller)]
