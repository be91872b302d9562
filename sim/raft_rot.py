"""One flipped bit in the metadata log of a simulated voter that is down, and what the real opening makes of it.

The voter's batches are written as the files of a metadata log on a simulated disk; a bit of the log is flipped; ``open_log``,
``voter_sets`` and ``mend`` do what a node's start does, also where the voters are records of the log (KIP-853). What they leave
becomes the voter's disk. A killed process leaves a note of what was flushed that lags; after a power loss the note is exact here,
since a damaged batch above it counts as torn (docs/adr/0023).
"""

from __future__ import annotations

import random
from enum import Enum

from sim.raft_checkers import Violation
from sim.raft_disk import Disk, decode_snapshot
from tidelog.metadata.records import MetadataLogError
from tidelog.raft import quorum_state
from tidelog.raft.log_changes import log_shape, voter_sets
from tidelog.raft.log_opening import open_log
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.mark_files import read_lost_voters, write_flushed, write_lost_end, write_lost_voters
from tidelog.raft.mending import mend
from tidelog.raft.metadata_log import PARTITION, MetadataLog, MetadataLogConfig
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.snapshots import SnapshotId, encode_snapshot, write_snapshot
from tidelog.raft.voter_history import VoterSets
from tidelog.raft.voters import VoterSet
from tidelog.storage.reboot_detection import note_kernel
from tidelog.storage.segment import file_stem
from tidelog.testing.simulation.disk import SimDisk

ROOT = "/data"
DIRECTORY = f"{ROOT}/{PARTITION}"
NOW_MS = 1_800_000_000_000
_BOOTSTRAP = SnapshotId(0, 0)


class Outcome(Enum):
    """What a start makes of a flipped bit."""

    WHOLE = "nothing is lost: a snapshot stands in for it, or nothing was there"
    LOST = "records are asked of the other voters"
    REFUSED = "it does not start; an operator puts back what was there"


def is_alone(disk: Disk, config: RaftConfig) -> bool:
    """Whether the voter is the only one, by its whole log."""
    return disk.voter_sets().voters.keys == (config.key,)


def flip_a_bit(disk: Disk, config: RaftConfig, rng: random.Random) -> Outcome:
    """Damages the log of ``disk`` and opens it. Violation when the log that is left is none that the voter ever had, and when the
    only voter gives records up, or starts with other voters than the log names."""
    ends = {LogEnd(batch.epoch, batch.next_offset) for batch in disk.log} | {LogEnd(0, 0)}
    ends |= {LogEnd(each.epoch, each.offset) for each in disk.snapshots}
    before, alone = disk.log_end, is_alone(disk, config)
    fs = _written(disk, rng)
    path = f"{DIRECTORY}/{file_stem(disk.log[0].base_offset)}.log"
    size = fs.stat(path).size
    # Half of them where no checksum looks: offset, length and epoch of the last batch.
    at = rng.randrange(size) if rng.random() < 0.5 else size - len(disk.log[-1].data) + rng.randrange(16)
    fs.flip(path, at, rng.randrange(8))
    log = open_log(fs, ROOT, MetadataLogConfig(), NOW_MS)
    sets = _voters(log, disk)
    try:
        lost_end = mend(log, config, sets, NOW_MS)
    except MetadataLogError:
        if fs.stat(path).size != size:
            raise Violation(f"voter {config.key.id} refuses to start, and has changed its log") from None
        return Outcome.REFUSED
    end = log_shape(log).end
    if end not in ends:
        raise Violation(f"voter {config.key.id} announces {end}, an end that its log never had")
    start = log.log.log_start_offset
    kept = [batch for batch in disk.log if start < batch.next_offset <= end.offset]
    if [header.base_offset for header, _ in log.batches_from(start)] != [batch.base_offset for batch in kept]:
        raise Violation(f"the log of voter {config.key.id} has other batches than before, up to {end}")
    disk.lost += [batch for batch in disk.log if batch.next_offset > end.offset]
    disk.log, disk.safe, disk.lost_end = kept, list(kept), max(disk.lost_end, lost_end)
    disk.witnesses = read_lost_voters(fs, DIRECTORY, disk.lost_end)
    disk.start = start
    disk.snapshots = {each: content for each, content in disk.snapshots.items() if each in log.snapshots}
    if end < before and disk.lost_end < before:
        raise Violation(f"voter {config.key.id} had {before}, is left with {end}, and asks only for {disk.lost_end}")
    if end < before and alone:
        raise Violation(f"voter {config.key.id}, the only one, gives up what it had between {end} and {before}")
    if sets.voters != disk.voter_sets().voters:
        raise Violation(f"voter {config.key.id} starts with the voters {sets.voters.ids}, its log has others")
    return Outcome.LOST if end < before else Outcome.WHOLE


def _voters(log: MetadataLog, disk: Disk) -> VoterSets:
    newest = log.newest_snapshot or (log.snapshots[0] if log.snapshots else None)
    snapshot = None if newest is None else (newest, log.read_snapshot(newest))
    return voter_sets(log, snapshot, VoterSet(()) if disk.first_level else disk.first_voters)


def _written(disk: Disk, rng: random.Random) -> SimDisk:
    fs = SimDisk()
    fs.make_dirs(DIRECTORY)
    file = fs.open(f"{DIRECTORY}/{file_stem(disk.log[0].base_offset)}.log", create=True)
    file.write(0, b"".join(batch.data for batch in disk.log))
    file.sync()
    file.close()
    for each, content in disk.snapshots.items():
        level, voters, _ = decode_snapshot(content)
        _write_snapshot(fs, each, voters if level else None)
    if disk.first_level and not disk.snapshots:
        _write_snapshot(fs, _BOOTSTRAP, disk.first_voters)
    assert disk.state is not None
    quorum_state.store(fs, DIRECTORY, disk.state)
    flushed = disk.log[-1]
    if rng.random() < 0.5:
        note_kernel(fs, DIRECTORY)
        # The first flush of an epoch wrote the note.
        flushed = next(batch for batch in disk.log if batch.epoch == flushed.epoch)
    write_flushed(fs, DIRECTORY, LogEnd(flushed.epoch, flushed.next_offset))
    if disk.lost_end > disk.log_end:
        write_lost_end(fs, DIRECTORY, disk.lost_end)
        write_lost_voters(fs, DIRECTORY, disk.lost_end, disk.witnesses)
    return fs


def _write_snapshot(fs: SimDisk, snapshot_id: SnapshotId, voters: VoterSet | None) -> None:
    empty = encode_snapshot(
        (), metadata_version=30, epoch=snapshot_id.epoch, now_ms=NOW_MS, last_timestamp_ms=NOW_MS, voters=voters
    )
    write_snapshot(fs, DIRECTORY, snapshot_id, empty)
