"""Small files beside the metadata log, each with a checksum: what was flushed, and what this voter had before it was damaged.

``tidelog-flushed``: the log was synced below this offset, and the record before it has this epoch. It may lag; it is lowered
before the log is cut. Bad bytes below it are rot.

``tidelog-lost-end``: epoch and end offset of the log before its damaged part was taken out. Until the log reaches as far again,
or has caught up with a leader, this voter must neither lead nor vote for a candidate that has less: it may have confirmed what it
lost (docs/adr/0023). A file that does not read stops the voter, as an unreadable vote does.

``tidelog-lost-voters``: the other voters by the log before the damage, which can show that a part of it was never committed
(``lost_records``), and the end that it belongs to. Without it, or where it does not read, nothing is shown.
"""

from __future__ import annotations

import binascii

from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSystem
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.voters import ReplicaKey
from tidelog.storage.checkpoints import read_file, replace_file

FLUSHED = "tidelog-flushed"
LOST_END = "tidelog-lost-end"
LOST_VOTERS = "tidelog-lost-voters"
ANY_NUMBER = -1


def _encode(*numbers: int) -> bytes:
    text = " ".join(map(str, numbers))
    return f"{text} {binascii.crc32(text.encode('ascii')):08x}\n".encode("ascii")


def _decode(raw: bytes | None, count: int) -> tuple[int, ...] | None:
    try:
        *words, _ = (raw or b"").decode("ascii").split()
        numbers = tuple(map(int, words))
    except ValueError:
        return None
    return numbers if count in (len(numbers), ANY_NUMBER) and _encode(*numbers) == raw else None


def read_flushed(fs: FileSystem, directory: str) -> LogEnd:
    """Epoch -1 when it is not known; offset 0 when the file is missing or damaged: then it proves nothing."""
    raw = read_file(fs, f"{directory}/{FLUSHED}")
    found = _decode(raw, 2)
    if found is not None:
        return LogEnd(found[1], found[0])
    alone = _decode(raw, 1)  # as it was written before it had an epoch
    return LogEnd(-1, 0 if alone is None else alone[0])


def flushed_is_damaged(fs: FileSystem, directory: str) -> bool:
    """Whether ``tidelog-flushed`` is there and does not read. Raises OSError."""
    raw = read_file(fs, f"{directory}/{FLUSHED}")
    return raw is not None and _decode(raw, 2) is None and _decode(raw, 1) is None


def encode_flushed(mark: LogEnd) -> bytes:
    """The file's contents."""
    return _encode(mark.offset, mark.epoch)


def write_flushed(fs: FileSystem, directory: str, mark: LogEnd) -> None:
    """Safe when it returns. Blocks; OSError as it comes."""
    replace_file(fs, f"{directory}/{FLUSHED}", encode_flushed(mark))


def read_lost_end(fs: FileSystem, directory: str) -> LogEnd:
    """(0, 0) for a voter that lost nothing. MetadataLogError, naming the file, when it does not read."""
    path = f"{directory}/{LOST_END}"
    raw = read_file(fs, path)
    if raw is None:
        return LogEnd(0, 0)
    found = _decode(raw, 2)
    if found is None:
        raise MetadataLogError(
            f"{path} cannot be read. It says how much this voter had before its log was damaged: restore it, or set up the voter "
            "as a new one"
        )
    return LogEnd(*found)


def write_lost_end(fs: FileSystem, directory: str, end: LogEnd) -> None:
    """Safe when it returns. Blocks; OSError as it comes."""
    replace_file(fs, f"{directory}/{LOST_END}", _encode(end.epoch, end.offset))


def read_lost_voters(fs: FileSystem, directory: str, end: LogEnd) -> tuple[ReplicaKey, ...]:
    """The voters that were written for this end of the log; none when there is no such file, or it does not read."""
    numbers = _decode(read_file(fs, f"{directory}/{LOST_VOTERS}"), ANY_NUMBER) or ()
    if len(numbers) % 2 or numbers[:2] != end:
        return ()
    pairs = zip(numbers[2::2], numbers[3::2], strict=True)
    return tuple(ReplicaKey(node_id, Uuid(disk.to_bytes(16, "big"))) for node_id, disk in pairs)


def write_lost_voters(fs: FileSystem, directory: str, end: LogEnd, voters: tuple[ReplicaKey, ...]) -> None:
    """Safe when it returns. Blocks; OSError as it comes."""
    named = (number for key in voters for number in (key.id, int.from_bytes(key.directory_id, "big")))
    replace_file(fs, f"{directory}/{LOST_VOTERS}", _encode(end.epoch, end.offset, *named))


def remove_lost_end(fs: FileSystem, directory: str) -> None:
    """The log has as much again, on the disk. An operator may have removed the file."""
    for name in (LOST_END, LOST_VOTERS):
        if fs.exists(f"{directory}/{name}"):
            fs.remove(f"{directory}/{name}")
    fs.sync_dir(directory)
