"""The ``quorum-state`` file: this voter's epoch, its leader, and its vote.

One line of JSON, as Kafka writes it: version 0 while kraft.version is 0 (the voters come from the configuration), version 1 from
kraft.version 1 on (they come from the log). It is replaced and synced before any promise in it leaves the process.

tidelog adds a field with a checksum, which Kafka ignores and drops: a flipped digit would be another vote.
"""

from __future__ import annotations

import binascii
import json
from typing import NamedTuple

from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import NO_BROKER, ZERO_UUID, Uuid, uuid_from_text, uuid_to_text
from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import read_file, replace_file

FILE_NAME = "quorum-state"
CHECKSUM = "tidelogCrc32"


class QuorumState(NamedTuple):
    """``leader_id`` and ``voted_id`` are -1 for none. ``voters`` are written in version 0 only."""

    leader_id: int
    leader_epoch: int
    voted_id: int = NO_BROKER
    voted_directory_id: Uuid = ZERO_UUID
    voters: tuple[int, ...] = ()
    version: int = 0

    def encode(self) -> bytes:
        """The file's contents, key by key as Kafka writes them: without a checksum."""
        if self.version == 0:
            fields: dict[str, object] = {
                "clusterId": "",
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter} for voter in self.voters],
                "data_version": 0,
            }
        else:
            fields = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "votedDirectoryId": uuid_to_text(self.voted_directory_id),
                "data_version": 1,
            }
        return json.dumps(fields, separators=(",", ":")).encode("ascii")


def sealed(data: bytes) -> bytes:
    """Contents with a checksum as the last field."""
    return data[:-1] + b',"%s":"%08x"}' % (CHECKSUM.encode("ascii"), binascii.crc32(data))


def decode(data: bytes, path: str) -> QuorumState:
    """MetadataLogError, naming the file, for contents that Kafka 4.3 would not write, or with a wrong checksum."""
    try:
        fields = json.loads(data)
        if CHECKSUM in fields and sealed(data[: data.rindex(b',"' + CHECKSUM.encode("ascii"))] + b"}") != data:
            raise ValueError("its checksum is wrong")
        version = int(fields["data_version"])
        if version not in (0, 1):
            raise MetadataLogError(f"{path} has data_version {version}; this node reads 0 and 1")
        return QuorumState(
            leader_id=int(fields["leaderId"]),
            leader_epoch=int(fields["leaderEpoch"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=uuid_from_text(fields["votedDirectoryId"]) if version == 1 else ZERO_UUID,
            voters=tuple(int(voter["voterId"]) for voter in fields["currentVoters"] or ()) if version == 0 else (),
            version=version,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MetadataLogError(
            f"{path} cannot be read ({error}). It holds this voter's vote: restore it, or set up the voter as a new one"
        ) from error


def load(fs: FileSystem, directory: str) -> QuorumState | None:
    """The state in the partition directory; None when this voter has never taken part."""
    path = f"{directory}/{FILE_NAME}"
    data = read_file(fs, path)
    return None if data is None else decode(data, path)


def store(fs: FileSystem, directory: str, state: QuorumState) -> None:
    """Replaces and syncs the file. Blocks."""
    replace_file(fs, f"{directory}/{FILE_NAME}", sealed(state.encode()))
