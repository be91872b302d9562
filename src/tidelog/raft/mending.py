"""What becomes of a metadata log that is damaged: this voter asks the others for what it lost, or refuses to start.

Decided here (docs/adr/0023): whether another voter can have the records; that what is taken out of the log is kept beside it; and
that the end of the log before that is safe on the disk before anything is cut. A log that has caught up forgets that end.
"""

from __future__ import annotations

import logging

from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import StorageFailure
from tidelog.raft.config import RaftConfig
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.marks import read_lost_end, remove_lost_end, write_lost_end
from tidelog.raft.metadata_log import Damage, MetadataLog
from tidelog.raft.voter_history import VoterSets
from tidelog.storage.aside import keep_bytes

GUIDE = "docs/guide/operations.md, under 'A damaged metadata log'"
_logger = logging.getLogger(__name__)


def mend(log: MetadataLog, config: RaftConfig, sets: VoterSets, now_ms: int) -> LogEnd:
    """The end that the log has to reach before this replica may lead. Damage is out of the log when this returns. Blocks.

    MetadataLogError when no other voter has the records, or the note of a former loss does not read; then nothing was changed.
    StorageFailure when the disk fails.
    """
    damage, lost_end = log.damaged, read_lost_end(log.fs, log.dir)
    before = LogEnd(log.last_epoch, log.end_offset)
    if damage is not None:
        if config.can_vote and sets.voters.find(config.key) is not None and len(sets.voters.voters) == 1:
            raise MetadataLogError(_refusal(log, damage))
        lost_end = max(lost_end, before)
    try:
        if damage is not None:
            write_lost_end(log.fs, log.dir, lost_end)
            _take_out(log, damage, now_ms)
        elif lost_end != NOTHING_LOST and before >= lost_end:
            remove_lost_end(log.fs, log.dir)
            _logger.info("%s has all again that it had before it was damaged", log.dir)
            lost_end = NOTHING_LOST
    except OSError as problem:
        raise StorageFailure(log.dir, f"damage cannot be taken out: {problem}") from problem
    log.note_opened()
    return lost_end


def _refusal(log: MetadataLog, damage: Damage) -> str:
    rotten = damage.rotten
    return (
        f"{damage.path}: {rotten.end - rotten.position} bytes at position {rotten.position} are damaged: they held the metadata "
        f"records {rotten.first_offset} to {rotten.next_offset - 1} of {log.end_offset}. A crash does not leave that, and this "
        f"node is the only voter: no other has them. Nothing was changed. Restore {log.dir} from a backup, or see {GUIDE}"
    )


def _take_out(log: MetadataLog, damage: Damage, now_ms: int) -> None:
    """The log ends before the damage; everything behind it is kept under names that no start looks at."""
    rotten, fs = damage.rotten, log.fs
    kept = []
    for segment in log.log.segments:
        path = segment.path(".log")
        if path == damage.path:
            kept.append(keep_bytes(fs, segment.file, path, rotten.position, segment.size))
        elif segment.base_offset >= rotten.next_offset:
            kept.append(keep_bytes(fs, segment.file, path, 0, segment.size))
    _logger.error(
        "%s: %d bytes at position %d are damaged: the log is cut at offset %d, and the other voters are asked for the records up "
        "to %d; until it has them, this voter does not lead. What was cut is kept as %s",
        damage.path,
        rotten.end - rotten.position,
        rotten.position,
        rotten.first_offset,
        log.end_offset,
        ", ".join(path for path in kept if path is not None) or "nothing",
    )
    log.about_to_cut(rotten.first_offset)
    log.log.truncate_to(rotten.first_offset, now_ms)
    log.damaged = None
