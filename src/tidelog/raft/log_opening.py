"""Opens the metadata log of a voter or observer: recovers its files and decides how much of them is the log.

Storage recovers the segments. What its checksums cannot show, ``continuity`` finds. Damage that a snapshot stands in for is
dropped with all before the snapshot; what a power loss may have left of records that were never synced is cut; any other damage
stays, and ``mending`` decides what becomes of it.
"""

from __future__ import annotations

import logging

from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import METADATA_TOPIC_ID
from tidelog.model.ports import FileSystem
from tidelog.raft import quorum_state, renewal
from tidelog.raft.continuity import ContinuityCheck, Known
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.mark_files import FLUSHED, read_flushed
from tidelog.raft.metadata_log import PARTITION, MetadataLog, MetadataLogConfig
from tidelog.raft.snapshots import SnapshotId, remove_leftovers
from tidelog.storage.checkpoints import PARTITION_METADATA, encode_partition_metadata, replace_file
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.reboot_detection import kernel_survived
from tidelog.storage.recovery import LoadRequest, load_log

_logger = logging.getLogger(__name__)


def open_log(fs: FileSystem, log_dir: str, config: MetadataLogConfig, now_ms: int) -> MetadataLog:
    """Creates or recovers the log in ``log_dir``. Blocks.

    StorageFailure when the directory cannot be read; MetadataLogError when quorum-state cannot, or contradicts the log;
    ConfigError for segments that cannot hold the largest batch.
    """
    if config.segment_bytes < config.max_batch_bytes:
        raise ConfigError(
            f"metadata.log.segment.bytes is {config.segment_bytes}, but must be at least {config.max_batch_bytes}: "
            "a batch of the metadata log can be that large."
        )
    directory = f"{log_dir}/{PARTITION}"
    log_config = LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        retention_ms=-1,
        max_message_bytes=config.max_batch_bytes,
    )
    try:
        fs.make_dirs(directory)
        remove_leftovers(fs, directory)
        if not fs.exists(f"{directory}/{PARTITION_METADATA}"):
            replace_file(fs, f"{directory}/{PARTITION_METADATA}", encode_partition_metadata(METADATA_TOPIC_ID))
        has_log = any(name.endswith(".log") for name in fs.listdir(directory))
        survived, flushed = kernel_survived(fs, directory), read_flushed(fs, directory)
        state = quorum_state.load(fs, directory)
    except OSError as problem:
        raise StorageFailure(log_dir, f"the metadata log cannot be opened: {problem}") from problem
    if state is not None and state.leader_epoch < flushed.epoch:
        raise MetadataLogError(
            f"{directory}/{quorum_state.FILE_NAME} has epoch {state.leader_epoch}, but records of epoch {flushed.epoch} were "
            f"flushed ({FLUSHED}): it is damaged or older than the log, and the vote in it is lost. Restore it, or set up the "
            "voter as a new one"
        )
    if has_log:
        # Every batch is read, whatever was flushed.
        request = LoadRequest(directory, PARTITION, log_config, False, survived, flushed.offset, read_all=True)
        log = load_log(fs, request, now_ms)
    else:
        log = create_log(fs, directory, PARTITION, METADATA_TOPIC_ID, log_config, now_ms)
    opened = MetadataLog(fs, log, config)
    try:
        renewal.leave_out_damaged(opened)
        _start_at_snapshot(opened, now_ms)
        _check(opened, flushed, None if state is None else state.leader_epoch, survived, now_ms)
    except OSError as problem:
        raise StorageFailure(log_dir, f"the metadata log cannot be opened: {problem}") from problem
    return opened


def _start_at_snapshot(opened: MetadataLog, now_ms: int) -> None:
    """A snapshot past the end of the log came from another voter just before a crash: the log continues after it."""
    log, newest = opened.log, opened.newest_snapshot
    if newest is not None and newest.offset > log.log_end_offset:
        _logger.warning("The metadata log ends at %d, before snapshot %s: emptied", log.log_end_offset, newest)
        opened.start_after(newest, now_ms)
    oldest = next((each.offset for each in opened.snapshots if not each.is_bootstrap), 0)
    start = log.log_start_offset
    epochs = log.leader_epochs.entries()
    if start < oldest and (start > 0 or (epochs and epochs[0][1] > start)):
        # It was cleaned, and the segment with the earlier records is still there. Their epochs are no longer known: to a
        # replica that diverged there, this log would seem to continue the replica's.
        log.update_high_watermark(oldest)
        log.delete_records_before(oldest)


def _check(opened: MetadataLog, flushed: LogEnd, epoch: int | None, survived: bool, now_ms: int) -> None:
    """Looks for damage in the whole log, and sets ``damaged`` to the first that no snapshot stands in for."""
    log, newest = opened.log, opened.newest_snapshot
    oldest = next((each for each in opened.snapshots if not each.is_bootstrap), None)
    begin = oldest if log.log_start_offset else None
    found = ContinuityCheck(log, Known(_end_of(begin), flushed, epoch))
    if found.damages and newest is not None:
        needed = ContinuityCheck(log, Known(_end_of(newest), flushed, epoch))
        if not needed.damages:
            _logger.error("%s: the damaged records lie below snapshot %s, and are not needed", log.dir, newest.file_name)
            log.update_high_watermark(newest.offset)
            log.delete_records_before(newest.offset)
            opened.snapshots = [each for each in opened.snapshots if each.is_bootstrap or each == newest]
        found, begin = needed, newest
    _take_epochs(opened, found, begin)
    if not found.damages:
        return
    first = found.damages[0]
    if first.rotten.first_offset >= flushed.offset and not survived:
        kept = ", ".join(opened.cut_before(first, now_ms)) or "nothing"
        _logger.error("%s: cut at offset %d, unflushed when the machine stopped: %s; kept as %s", first.path, log.log_end_offset,
                      first.why, kept)  # fmt: skip
        return
    if opened.unreadable:
        lost = "; ".join(f"snapshot {each.file_name} is damaged, {problem}" for each, problem in opened.unreadable.items())
        first = first._replace(why=f"{first.why}, and {lost}")
    opened.damaged, opened.end_before_damage = first, found.end


def _end_of(snapshot_id: SnapshotId | None) -> LogEnd:
    return LogEnd(0, 0) if snapshot_id is None else LogEnd(snapshot_id.epoch, snapshot_id.offset)


def _take_epochs(opened: MetadataLog, found: ContinuityCheck, begin: SnapshotId | None) -> None:
    """The epochs are those of the batches: leader-epoch-checkpoint has no checksum, and elections depend on them."""
    epochs = opened.log.leader_epochs
    known = epochs.entries()
    epochs.clear()
    if begin is not None:
        epochs.assign(begin.epoch, begin.offset)
    for epoch, start in found.epochs:
        epochs.assign(epoch, start)
    if known != epochs.entries():
        _logger.warning(
            "%s: the epochs %s are taken from the batches; leader-epoch-checkpoint had %s", opened.dir, epochs.entries(), known
        )
