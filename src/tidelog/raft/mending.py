"""What becomes of a metadata log that is damaged: this voter asks the others for what it lost, or refuses to start.

Decided here (docs/adr/0023): whether another voter can have the records; that what is taken out of the log is kept beside it; and
that the end of the log before that is safe on the disk before anything is cut. A log that has caught up forgets that end.
"""

from __future__ import annotations

import logging

from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import StorageFailure
from tidelog.raft.continuity import Damage
from tidelog.raft.log_changes import last_voters, may_hide_voters, voters_behind_damage
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.lost_records import witnesses
from tidelog.raft.mark_files import read_lost_end, read_lost_voters, remove_lost_end, write_lost_end, write_lost_voters
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.voter_history import VoterSets
from tidelog.raft.voters import ReplicaKey, VoterSet

GUIDE = "docs/guide/operations.md, under 'A damaged metadata log'"
_logger = logging.getLogger(__name__)


def mend(log: MetadataLog, config: RaftConfig, sets: VoterSets, now_ms: int) -> LogEnd:
    """The end that the log has to reach before this replica may lead. Damage is out of the log when this returns. Blocks.

    MetadataLogError when no other voter has the records, when what can be read of the log disagrees on that, or when the note of
    a former loss does not read; then nothing was changed.
    StorageFailure when the disk fails.
    """
    damage, lost_end = log.damaged, read_lost_end(log.fs, log.dir)
    before = LogEnd(log.last_epoch, log.end_offset)
    if damage is not None:
        _refuse_what_others_cannot_mend(log, damage, config, sets.voters)
        known = _witnesses(log, config, sets.voters, lost_end)
        lost_end = max(lost_end, log.end_before_damage)
    try:
        if damage is not None:
            write_lost_voters(log.fs, log.dir, lost_end, known)
            write_lost_end(log.fs, log.dir, lost_end)
            _take_out(log, damage, now_ms)
        elif lost_end != NOTHING_LOST and before >= lost_end:
            forget_loss(log)
            lost_end = NOTHING_LOST
    except OSError as problem:
        raise StorageFailure(log.dir, f"damage cannot be taken out: {problem}") from problem
    log.note_opened()
    return lost_end


def forget_loss(log: MetadataLog) -> None:
    """The log has caught up, on the disk: the next start demands nothing any more. Blocks; OSError as it comes."""
    remove_lost_end(log.fs, log.dir)
    _logger.info("%s has all again that it had before it was damaged", log.dir)


def _witnesses(log: MetadataLog, config: RaftConfig, voters: VoterSet, lost_before: LogEnd) -> tuple[ReplicaKey, ...]:
    """The voters whose logs can show what was never committed of what is lost now, and in a loss that is not mended yet."""
    latest = last_voters(log, voters)
    found = () if latest is None or not config.can_vote else witnesses(latest, config.key)
    agrees = lost_before == NOTHING_LOST or read_lost_voters(log.fs, log.dir, lost_before) == found
    return found if agrees else ()


def _refuse_what_others_cannot_mend(log: MetadataLog, damage: Damage, config: RaftConfig, voters: VoterSet) -> None:
    """MetadataLogError when this node is the only voter, or when that depends on which part of the log is asked."""
    if not config.can_vote:
        return
    rotten = damage.rotten
    what = (
        f"{damage.path}: {_where(damage)}, with the metadata records {rotten.first_offset} to {rotten.next_offset - 1} of "
        f"{log.end_before_damage.offset}: {damage.why}. A crash does not leave that"
    )
    alone = _is_only_voter(config, voters)
    if len(voters.voters) == 2 and voters.find(config.key) is not None and may_hide_voters(log):
        raise MetadataLogError(
            f"{what}. The voters before it are {_ids(voters)}. In the damaged records the other one may have been removed: "
            f"whether another controller has the records is not certain. Nothing was changed. {_ways_out(log)}"
        )
    for behind in voters_behind_damage(log):
        if _is_only_voter(config, behind) != alone:
            raise MetadataLogError(
                f"{what}. Before the damage the voters are {_ids(voters)}, in or behind it {_ids(behind)}: whether another "
                f"controller has the records is not certain. Nothing was changed. {_ways_out(log)}"
            )
    if alone:
        raise MetadataLogError(
            f"{what}, and this node is the only voter: no other has them. Nothing was changed. Restore {log.dir} from a backup, "
            f"or see {GUIDE}"
        )


def _ways_out(log: MetadataLog) -> str:
    return (
        "If other controllers of this cluster are running, take this node's vote (metadata-quorum remove-controller), format an "
        "empty directory for it, and give that a vote (metadata-quorum add-controller). If not, restore "
        f"{log.dir} from a backup, or see {GUIDE}"
    )


def _is_only_voter(config: RaftConfig, voters: VoterSet) -> bool:
    return voters.find(config.key) is not None and len(voters.voters) == 1


def _ids(voters: VoterSet) -> str:
    return ", ".join(map(str, voters.ids)) or "none"


def _where(damage: Damage) -> str:
    rotten = damage.rotten
    if rotten.end == rotten.position:
        return f"the bytes that should follow position {rotten.position} are missing"
    return f"{rotten.end - rotten.position} bytes at position {rotten.position} are damaged"


def _take_out(log: MetadataLog, damage: Damage, now_ms: int) -> None:
    """The log ends before the damage; everything behind it is kept aside."""
    kept = log.cut_before(damage, now_ms)
    _logger.error(
        "%s: %s: %s. The log is cut at offset %d, and the other voters are asked for the records up to %d; until it has them, "
        "this voter does not lead. What was cut is kept as %s",
        damage.path,
        _where(damage),
        damage.why,
        log.end_offset,
        log.end_before_damage.offset,
        ", ".join(kept) or "nothing",
    )
    log.damaged = None
