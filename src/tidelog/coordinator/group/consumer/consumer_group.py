"""One group of the consumer protocol (KIP-848): epochs, members, target and current assignment.

Everything but the timers is durable and is changed only by replaying records (``consumer_records``); members are immutable
values. The group epoch rises when members, subscriptions or topics change. The target assignment is computed for a group epoch,
and each member reconciles with it independently (``reconciliation``). This module decides which state a group is in, and that a
partition has one owner at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from tidelog.model.errors import ErrorCode, KafkaError

Partitions = Mapping[bytes, frozenset[int]]
"""Topic id -> partitions."""
Owned = Mapping[bytes, Mapping[int, int]]
"""Topic id -> partition -> the target's epoch in which its owner got it."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
NO_ASSIGNMENT_EPOCH = -1
"""After the target assignment was deleted."""


class MemberState(IntEnum):
    """How far a member has reconciled with its target, as stored in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has not confirmed yet that it revoked partitions."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that other members have not released yet."""
    UNKNOWN = 127

    @classmethod
    def read(cls, number: int) -> MemberState:
        """The state; UNKNOWN for a number of a later version."""
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


class ConsumerGroupState(Enum):
    """The value is the name that Kafka's tools show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ClassicMetadata(NamedTuple):
    """What a member of the classic protocol sent with its last JoinGroup: protocol names and metadata, in its order."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. ``topics`` is sorted; ``regex`` is empty without a pattern; ``assignor`` None leaves the choice to the other
    members."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    """Partitions that the member must give up, and may still read until it confirms that it has."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether the member has fully reconciled with this target."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch in which the member got a partition that it reads or is revoking; None for any other."""
        given = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if given is None else given


class ResolvedRegex(NamedTuple):
    """The topics that a pattern matched, as of an offset of the metadata log."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


NOT_RESOLVED = ResolvedRegex(frozenset(), -1, -1)


class Timers:
    """Deadlines of a group's members: soft state, restarted after a load."""

    __slots__ = ("joins", "rebalances", "sessions", "soonest_ms", "syncs")

    def __init__(self) -> None:
        self.sessions: dict[str, int] = {}
        self.rebalances: dict[str, tuple[int, int]] = {}
        """Member -> (deadline, the epoch that it must leave by then)."""
        self.joins: dict[str, int] = {}
        self.syncs: dict[str, int] = {}
        self.soonest_ms: int | None = None
        """At or before the earliest deadline."""

    def arm(self, timers: dict[str, int], member_id: str, deadline_ms: int) -> None:
        """Sets or moves a deadline."""
        timers[member_id] = deadline_ms
        self._note(deadline_ms)

    def arm_rebalance(self, member_id: str, deadline_ms: int, epoch: int) -> None:
        """Sets the deadline by which the member must leave ``epoch``."""
        self.rebalances[member_id] = (deadline_ms, epoch)
        self._note(deadline_ms)

    def _note(self, deadline_ms: int) -> None:
        if self.soonest_ms is None or deadline_ms < self.soonest_ms:
            self.soonest_ms = deadline_ms

    def forget(self, member_id: str) -> None:
        """Drops the timers of a removed member."""
        for timers in (self.sessions, self.joins, self.syncs):
            timers.pop(member_id, None)
        self.rebalances.pop(member_id, None)

    def look_again(self) -> None:
        """Recomputes the earliest deadline, without those that were extended or dropped."""
        times = [*self.sessions.values(), *self.joins.values(), *self.syncs.values()]
        times += [deadline_ms for deadline_ms, _ in self.rebalances.values()]
        self.soonest_ms = min(times, default=None)


class ConsumerGroup:
    """A group; ``target`` holds each member's target assignment."""

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_checked",
        "metadata_hash",
        "owners",
        "regexes",
        "static",
        "target",
        "timers",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        # As in Kafka 4.3, the first recorded epoch is 2: a member of a group without a computed target is at 1.
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1
        self.assignment_timestamp_ms = 0
        """When the target was computed; 0 if never."""
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}
        """Instance id -> member id."""
        self.target: dict[str, Partitions] = {}
        self.owners: dict[bytes, dict[int, str]] = {}
        """Topic id -> partition -> the member that reads it or is revoking it."""
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """Whether a record from before Kafka 4.1 is still in the log; the next change deletes it."""
        self.metadata_checked = False
        """Whether the topics are still those that ``metadata_hash`` was computed from; soft state."""
        self.timers = Timers()

    # -- what it is in -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def member(self, member_id: str) -> ConsumerMember:
        """The member. KafkaError UNKNOWN_MEMBER_ID when there is none with that id."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {self.group_id} has no member {member_id}: join again.")
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member with this instance id."""
        member_id = None if instance_id is None else self.static.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None = None) -> Partitions:
        """The member's target. While it has none, that of the static member that it replaces."""
        own = self.target.get(member_id)
        if own is None and instance_id is not None:
            own = self.target.get(self.static.get(instance_id, ""))
        return {} if own is None else own

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """The member that reads a partition now or is revoking it."""
        return self.owners.get(topic_id, {}).get(partition)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether another member still owns a part of this member's target."""
        return any(
            partition not in member.assigned.get(topic_id, {}) and self.owner(topic_id, partition) is not None
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    # -- who subscribes to what ----------------------------------------------------------------------------------------------

    def subscribers(self, regex: str) -> int:
        """The number of members that subscribe to a pattern."""
        return sum(member.regex == regex for member in self.members.values())

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that a member subscribes to, by name and by its pattern. A pattern that is not resolved yet matches
        nothing."""
        return frozenset(member.topics) | self.regexes.get(member.regex, NOT_RESOLVED).topics

    def subscribed_topics(self, members: Iterable[ConsumerMember] | None = None) -> frozenset[str]:
        """All topics that ``members`` (by default all members) subscribe to."""
        topics: set[str] = set()
        for member in self.members.values() if members is None else members:
            topics |= self.topics_of(member)
        return frozenset(topics)

    def members_with(self, updated: ConsumerMember | None, without: Iterable[str] = ()) -> dict[str, ConsumerMember]:
        """The members after a change: ``updated`` added, or in place of the member with its id or instance id, and those of
        ``without`` removed."""
        members = dict(self.members)
        for member_id in without:
            members.pop(member_id, None)
        if updated is not None:
            former = None if updated.instance_id is None else self.static.get(updated.instance_id)
            if former is not None and former != updated.member_id:
                members.pop(former, None)
            members[updated.member_id] = updated
        return members

    # -- the classic members of a consumer group -----------------------------------------------------------------------------

    def all_classic_except(self, gone: Iterable[str]) -> bool:
        """Whether all remaining members speak the classic protocol and at least one of ``gone`` does not."""
        leaving = set(gone)
        stay = [member for key, member in self.members.items() if key not in leaving]
        return all(member.classic is not None for member in stay) and any(
            self.members[key].classic is None for key in leaving if key in self.members
        )

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether all members that speak the classic protocol support at least one of these protocols."""
        wanted = list(names)
        if protocol_type != "consumer" or not wanted:
            return False
        sets = [{name for name, _ in member.classic.protocols} for member in self.members.values() if member.classic is not None]
        return any(all(name in names_of for names_of in sets) for name in wanted)

    # -- replayed ------------------------------------------------------------------------------------------------------------

    def update_member(self, new: ConsumerMember) -> None:
        """Replays a member's record."""
        old = self.members.get(new.member_id)
        if old is not None:
            self._drop(old)
        self.members[new.member_id] = new
        if new.instance_id is not None:
            self.static[new.instance_id] = new.member_id
        for owned in (new.assigned, new.revoking):
            for topic_id, partitions in owned.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, new.member_id))

    def remove_member(self, member_id: str) -> None:
        """Replays a member's tombstone."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._drop(old)

    def _drop(self, old: ConsumerMember) -> None:
        if old.instance_id is not None and self.static.get(old.instance_id) == old.member_id:
            del self.static[old.instance_id]
        for owned in (old.assigned, old.revoking):
            for topic_id, partitions in owned.items():
                of_topic = self.owners.get(topic_id, {})
                for partition in partitions:
                    # In a compacted log the record of the next owner may come first.
                    if of_topic.get(partition) == old.member_id:
                        del of_topic[partition]
                if not of_topic:
                    self.owners.pop(topic_id, None)

    # -- invariants ----------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Asserts the invariants."""
        assert all(key == member.member_id for key, member in self.members.items()), self.group_id
        assert all(self.members[key].instance_id == instance for instance, key in self.static.items()), self.group_id
        assert self.assignment_epoch <= self.epoch, (self.group_id, self.assignment_epoch, self.epoch)
        held: dict[tuple[bytes, int], str] = {}
        for key, member in self.members.items():
            assert (member.state is MemberState.UNREVOKED_PARTITIONS) or not member.revoking, (self.group_id, member)
            for owned in (member.assigned, member.revoking):
                for topic_id, partitions in owned.items():
                    for partition in partitions:
                        assert held.setdefault((topic_id, partition), key) == key, (self.group_id, topic_id, partition, key)
                        assert self.owner(topic_id, partition) == key, (self.group_id, topic_id, partition, key)
