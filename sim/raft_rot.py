"""One flipped bit in the metadata log of a simulated voter that is down, and what the real opening makes of it.

The voter's batches are written as the files of a metadata log on a simulated disk; a bit of the log is flipped; ``open_log`` and
``mend`` do what a node's start does. What they leave becomes the voter's disk. A killed process leaves a note of what was flushed
that lags; after a power loss the note is exact here, since a damaged batch above it counts as torn (docs/adr/0023).
"""

from __future__ import annotations

import random

from sim.raft_checkers import Violation
from sim.raft_disk import Disk
from tidelog.raft import quorum_state
from tidelog.raft.config import RaftConfig
from tidelog.raft.log_changes import log_shape
from tidelog.raft.log_opening import open_log
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.marks import write_flushed, write_lost_end
from tidelog.raft.mending import mend
from tidelog.raft.metadata_log import PARTITION, MetadataLogConfig
from tidelog.raft.snapshots import encode_snapshot, write_snapshot
from tidelog.storage.reboot_detection import note_kernel
from tidelog.storage.segment import file_stem
from tidelog.testing.simulation.disk import SimDisk

ROOT = "/data"
DIRECTORY = f"{ROOT}/{PARTITION}"
NOW_MS = 1_800_000_000_000


def flip_a_bit(disk: Disk, config: RaftConfig, rng: random.Random) -> bool:
    """Whether records were lost by it: they were not when a snapshot stands in for them. Violation when the log that is left is
    none that the voter ever had."""
    ends = {LogEnd(batch.epoch, batch.next_offset) for batch in disk.log} | {LogEnd(0, 0)}
    ends |= {LogEnd(each.epoch, each.offset) for each in disk.snapshots}
    before = disk.log_end
    fs = _written(disk, rng)
    path = f"{DIRECTORY}/{file_stem(disk.log[0].base_offset)}.log"
    size = fs.stat(path).size
    # Half of them where no checksum looks: offset, length and epoch of the last batch.
    at = rng.randrange(size) if rng.random() < 0.5 else size - len(disk.log[-1].data) + rng.randrange(16)
    fs.flip(path, at, rng.randrange(8))
    log = open_log(fs, ROOT, MetadataLogConfig(), NOW_MS)
    lost_end = mend(log, config, disk.voter_sets(), NOW_MS)
    end = log_shape(log).end
    if end not in ends:
        raise Violation(f"voter {config.key.id} announces {end}, an end that its log never had")
    start = log.log.log_start_offset
    kept = [batch for batch in disk.log if start < batch.next_offset <= end.offset]
    if [header.base_offset for header, _ in log.batches_from(start)] != [batch.base_offset for batch in kept]:
        raise Violation(f"the log of voter {config.key.id} has other batches than before, up to {end}")
    disk.log, disk.safe, disk.lost_end = kept, list(kept), max(disk.lost_end, lost_end)
    disk.start = start
    disk.snapshots = {each: content for each, content in disk.snapshots.items() if each in log.snapshots}
    if end < before and disk.lost_end < before:
        raise Violation(f"voter {config.key.id} had {before}, is left with {end}, and asks only for {disk.lost_end}")
    return end < before


def _written(disk: Disk, rng: random.Random) -> SimDisk:
    fs = SimDisk()
    fs.make_dirs(DIRECTORY)
    file = fs.open(f"{DIRECTORY}/{file_stem(disk.log[0].base_offset)}.log", create=True)
    file.write(0, b"".join(batch.data for batch in disk.log))
    file.sync()
    file.close()
    for each in disk.snapshots:
        empty = encode_snapshot((), metadata_version=30, epoch=each.epoch, now_ms=NOW_MS, last_timestamp_ms=NOW_MS)
        write_snapshot(fs, DIRECTORY, each, empty)
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
    return fs
