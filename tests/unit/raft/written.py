"""A metadata log as a quorum writes it, and bits of it flipped."""

from __future__ import annotations

from pathlib import Path

from tidelog.raft.metadata_log import MetadataLog
from tidelog.records.batch import BatchHeader, iter_headers
from tidelog.records.control import ControlType, LeaderChange, leader_change_value

NO_OP = b"\x01\x14\x00\x00"
CHANGE = (ControlType.LEADER_CHANGE, leader_change_value(LeaderChange(1, (), ())))
SEGMENT = "00000000000000000000.log"


def append(log: MetadataLog, *epochs: int) -> None:
    """A batch of two records per epoch; those of a new epoch are a leader's first."""
    for epoch in epochs:
        if epoch > log.last_epoch:
            log.append_control([CHANGE, CHANGE], epoch, 1)
        else:
            log.append_values([NO_OP, NO_OP], epoch, 1)


def flush(log: MetadataLog) -> int:
    job = log.flush_job()
    job.run()
    return log.flushed(job, 1000)


def headers(path: Path) -> list[BatchHeader]:
    """Of the batches in a file."""
    return list(iter_headers(path.read_bytes()))


def flip(path: Path, position: int, bit: int = 3) -> bytes:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)
    return bytes(data)


def flip_in_batch(path: Path, number: int, at: int, bit: int = 3) -> bytes:
    """A bit of the byte ``at`` bytes into a batch."""
    return flip(path, headers(path)[number].position + at, bit)
