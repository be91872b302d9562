"""One share group (KIP-932): epochs, members, target assignment, and which partitions have a state at the share coordinator.

All of it is durable and changed only by replaying records, but for session deadlines and what ``metadata_checked`` says. Members
share partitions, so there is nothing to revoke: a member moves to the target at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidelog.model.errors import ErrorCode, KafkaError

Partitions = Mapping[bytes, frozenset[int]]
"""Topic id -> partitions."""
JOIN_EPOCH, LEAVE_EPOCH = 0, -1
FIRST_EPOCH = 1
"""That of a new group; its first member raises it."""


class ShareGroupState(Enum):
    """The value is the name that Kafka's tools show."""

    EMPTY = "Empty"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member; ``topics`` is sorted."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    epoch: int = 0
    previous_epoch: int = -1
    assigned: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """Which partitions have a state. ``initializing`` and ``initialized``: topic id -> its name and partitions; ``deleting``:
    topic id -> its name."""

    initializing: Mapping[bytes, tuple[str, frozenset[int]]] = field(default_factory=dict)
    initialized: Mapping[bytes, tuple[str, frozenset[int]]] = field(default_factory=dict)
    deleting: Mapping[bytes, str] = field(default_factory=dict)

    def begin(self, topics: Mapping[bytes, tuple[str, frozenset[int]]]) -> StatePartitions:
        """These are being initialized."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return StatePartitions(_plus(self.initializing, topics), self.initialized, deleting)

    def settle(self, done: Mapping[bytes, tuple[str, frozenset[int]]], failed: Partitions) -> StatePartitions:
        """``done`` are initialized; ``failed`` may be tried again."""
        gone = {topic_id: partitions for topic_id, (_, partitions) in done.items()}
        left = _minus(_minus(self.initializing, gone), failed)
        return StatePartitions(left, _plus(self.initialized, done), self.deleting)

    def delete(self, topic_ids: Iterable[bytes]) -> StatePartitions:
        """The states of these topics are being deleted."""
        names = {
            each: name for each, (name, _) in (*self.initializing.items(), *self.initialized.items()) if each in {*topic_ids}
        }
        left = self.without(names)
        return StatePartitions(left.initializing, left.initialized, {**left.deleting, **names})

    def without(self, topic_ids: Iterable[bytes]) -> StatePartitions:
        """Nothing is known of these topics."""
        gone = {*topic_ids}
        return StatePartitions(
            {each: known for each, known in self.initializing.items() if each not in gone},
            {each: known for each, known in self.initialized.items() if each not in gone},
            {each: name for each, name in self.deleting.items() if each not in gone},
        )

    def known(self) -> Partitions:
        """The partitions that may have a state."""
        both = _plus(self.initialized, self.initializing)
        return {topic_id: partitions for topic_id, (_, partitions) in both.items()}


def _plus(
    first: Mapping[bytes, tuple[str, frozenset[int]]], second: Mapping[bytes, tuple[str, frozenset[int]]]
) -> dict[bytes, tuple[str, frozenset[int]]]:
    result = dict(first)
    for topic_id, (name, partitions) in second.items():
        result[topic_id] = name, partitions | result.get(topic_id, (name, frozenset()))[1]
    return result


def _minus(known: Mapping[bytes, tuple[str, frozenset[int]]], gone: Partitions) -> dict[bytes, tuple[str, frozenset[int]]]:
    left = {each: (name, partitions - gone.get(each, frozenset())) for each, (name, partitions) in known.items()}
    return {each: (name, partitions) for each, (name, partitions) in left.items() if partitions}


class ShareGroup:
    __slots__ = (
        "assignment_epoch",
        "assignment_ms",
        "epoch",
        "group_id",
        "initializing_since",
        "members",
        "metadata_checked",
        "metadata_hash",
        "sessions",
        "state_partitions",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_ms = 0
        """When the target was computed; 0 when that is not known."""
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Partitions] = {}
        self.state_partitions = StatePartitions()
        self.metadata_checked = False
        """Whether the topics are still those that ``metadata_hash`` was computed from; soft state."""
        self.sessions: dict[str, int] = {}
        """Member id -> when its session ends; soft state."""
        self.initializing_since: dict[bytes, int] = {}
        """Topic id -> when its partitions were last ordered to be initialized; soft state."""

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def member(self, member_id: str) -> ShareMember:
        """The member. KafkaError UNKNOWN_MEMBER_ID when there is none with that id."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {self.group_id} has no member {member_id}: join again.")
        return found

    def topics(self, members: Iterable[ShareMember] | None = None) -> frozenset[str]:
        """All topics that the members subscribe to."""
        return frozenset(topic for member in (self.members.values() if members is None else members) for topic in member.topics)

    def check(self) -> None:
        """Asserts the invariants."""
        assert all(key == member.member_id for key, member in self.members.items()), self.group_id
        assert self.assignment_epoch <= self.epoch, (self.group_id, self.assignment_epoch, self.epoch)
        assert all(member.epoch <= self.epoch for member in self.members.values()), self.group_id
