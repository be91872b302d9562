"""Who votes on metadata: those in ``controller.quorum.voters`` (kraft.version 0), or in the log (kraft.version 1, KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidelog.model.errors import ConfigError
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.records.control import Endpoint, Voter


@dataclass(frozen=True, slots=True)
class ReplicaKey:
    """A voter is a node and its disk: with another directory id it is somebody else (trap 66)."""

    id: int
    directory_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters by id. Directory ids are zero in a static set."""

    voters: tuple[Voter, ...]

    @staticmethod
    def of(voters: Iterable[Voter]) -> VoterSet:
        return VoterSet(tuple(sorted(voters, key=lambda voter: voter.voter_id)))

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.voter_id for voter in self.voters)

    def find(self, key: ReplicaKey) -> Voter | None:
        """The voter that this replica is; None when it has no vote. A static set knows no directories."""
        for voter in self.voters:
            if voter.voter_id == key.id and voter.directory_id in (ZERO_UUID, key.directory_id):
                return voter
        return None

    def with_endpoints(self, key: ReplicaKey, endpoints: tuple[Endpoint, ...]) -> VoterSet:
        """The set in which this replica listens there. AssertionError unless it is in the set."""
        assert self.find(key) is not None, key
        return VoterSet(tuple(replace(v, endpoints=endpoints) if v.voter_id == key.id else v for v in self.voters))


def parse_quorum_voters(text: str) -> VoterSet:
    """``1@host:9093,2@[::1]:9093``, the value of ``controller.quorum.voters``. ConfigError names what is wrong."""
    voters = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        node, at, address = entry.partition("@")
        host, colon, port = address.rpartition(":")
        if not at or not colon or not node.isdecimal() or not port.isdecimal() or not host or int(port) > 65535:
            raise ConfigError(f"controller.quorum.voters has {entry!r}; each voter is written as id@host:port")
        endpoint = Endpoint("CONTROLLER", host.removeprefix("[").removesuffix("]"), int(port))
        voters.append(Voter(int(node), ZERO_UUID, (endpoint,)))
    if len({voter.voter_id for voter in voters}) != len(voters):
        raise ConfigError(f"controller.quorum.voters names a voter twice: {text!r}")
    return VoterSet.of(voters)
