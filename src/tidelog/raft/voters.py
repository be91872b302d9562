"""The voters of the metadata quorum: in ``controller.quorum.voters`` (kraft.version 0), or in the log (kraft.version 1,
KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidelog.model.errors import ConfigError
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.records.control import Endpoint, Voter


class ReplicaKey(NamedTuple):
    """A voter is a node and its disk: with another directory id it is another voter (KIP-853)."""

    id: int
    directory_id: Uuid = ZERO_UUID

    def is_same(self, other: ReplicaKey) -> bool:
        """Whether ``other`` can be this replica; a key without a directory matches any replica of that id."""
        return self.id == other.id and self.directory_id in (ZERO_UUID, other.directory_id)


def endpoint_on(endpoints: Sequence[Endpoint], listener: str) -> Endpoint | None:
    """The endpoint of that controller listener, the first one where none has its name, None without any."""
    return next((each for each in endpoints if each.name == listener), endpoints[0] if endpoints else None)


class VoterSet(NamedTuple):
    """The voters by id. Directory ids are zero in a static set."""

    voters: tuple[Voter, ...]

    @staticmethod
    def of(voters: Iterable[Voter]) -> VoterSet:
        return VoterSet(tuple(sorted(voters, key=lambda voter: voter.voter_id)))

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.voter_id for voter in self.voters)

    def find(self, key: ReplicaKey) -> Voter | None:
        """The voter with this key; None when it is not a voter. A static set has no directories."""
        for voter in self.voters:
            if voter.voter_id == key.id and voter.directory_id in (ZERO_UUID, key.directory_id):
                return voter
        return None

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(ReplicaKey(voter.voter_id, Uuid(voter.directory_id)) for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def by_id(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.voter_id == node_id), None)

    def endpoint_of(self, node_id: int, listener: str) -> Endpoint | None:
        """The address of a voter for a node that reaches controllers on ``listener``, see ``endpoint_on``."""
        return endpoint_on(self.endpoints_of(node_id), listener)

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        voter = self.by_id(node_id)
        return voter.endpoints if voter is not None else ()

    def adding(self, voter: Voter) -> VoterSet | None:
        """The set with one more; None when the id is taken."""
        return None if self.by_id(voter.voter_id) is not None else VoterSet.of([*self.voters, voter])

    def removing(self, key: ReplicaKey) -> VoterSet | None:
        """The set without this one; None when it is not in it, or is the last one."""
        left = [each for each in self.voters if (each.voter_id, each.directory_id) != (key.id, key.directory_id)]
        return VoterSet.of(left) if 0 < len(left) < len(self.voters) else None

    def updating(self, voter: Voter) -> VoterSet | None:
        """The set with changed data of this voter; None when it is not in it."""
        found = self.find(ReplicaKey(voter.voter_id, Uuid(voter.directory_id)))
        return None if found is None else VoterSet.of([voter if each is found else each for each in self.voters])


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
