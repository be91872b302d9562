"""One streams group (KIP-1071): epochs, topology, members, target and current assignment of tasks.

Members, epochs, topology and assignments are durable and change only by replaying records (``streams_records``). Soft state is
what a new coordinator computes again: the configured topology, deadlines, which member asked for a shutdown, and the epoch of the
endpoints that members tell each other for interactive queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from tidelog.coordinator.group.streams.owned_tasks import NOTHING_OWNED, OwnedTasks
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.coordinator.group.streams.task_holders import TaskHolders
from tidelog.coordinator.group.streams.tasks import NO_TASKS, Tasks
from tidelog.coordinator.group.streams.topology import ConfiguredTopology
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
FIRST_EPOCH = 1
"""Of a new group and of its target; the first member raises the group's."""
NO_EPOCH = -1


class MemberState(IntEnum):
    """How far a member has reconciled with its target, as stored in records; numbered from 1, unlike those of consumer groups."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """It has not confirmed yet that it gave up tasks."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that others have not released yet."""
    UNKNOWN = 127

    @classmethod
    def read(cls, number: int) -> MemberState:
        """The state; UNKNOWN for a number of a later version."""
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One member: a thread of a Streams client. Threads of one client have the same ``process_id``. ``endpoint``: host and port
    for interactive queries."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: OwnedTasks = NOTHING_OWNED
    revoking: OwnedTasks = NOTHING_OWNED
    """Tasks that the member must give up, and may still run until it confirms that it has."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether the member has fully reconciled with this target."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def epoch_of(self, subtopology_id: str, partition: int) -> int | None:
        """The epoch in which the member got an active task that it runs or gives up; None for any other."""
        given = self.assigned.active.get(subtopology_id, {}).get(partition)
        return self.revoking.active.get(subtopology_id, {}).get(partition) if given is None else given


class Deadlines:
    """When members and delays end: soft state, started again after a load."""

    __slots__ = ("first_assignment_ms", "rebalances", "sessions")

    def __init__(self) -> None:
        self.sessions: dict[str, int] = {}
        self.rebalances: dict[str, tuple[int, int]] = {}
        """Member -> (deadline, the epoch that it must leave by then)."""
        self.first_assignment_ms: int | None = None
        """When the first assignment of a group that was empty is due; None when none is delayed."""

    def soonest_ms(self) -> int | None:
        """The earliest deadline."""
        times = [*self.sessions.values(), *(deadline_ms for deadline_ms, _ in self.rebalances.values())]
        if self.first_assignment_ms is not None:
            times.append(self.first_assignment_ms)
        return min(times, default=None)

    def forget(self, member_id: str) -> None:
        """Drops those of a removed member."""
        self.sessions.pop(member_id, None)
        self.rebalances.pop(member_id, None)


class StreamsGroup:
    __slots__ = (
        "_readers",
        "assignment_configs",
        "assignment_epoch",
        "assignment_ms",
        "configured",
        "deadlines",
        "endpoint_epoch",
        "epoch",
        "group_id",
        "holders",
        "members",
        "metadata_checked",
        "metadata_hash",
        "shutdown_member",
        "target",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        """The epoch of the topology whose topics are all there; -1 for none."""
        self.assignment_configs: Mapping[str, str] = {}
        """The settings that the last group epoch was raised with."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_ms = 0
        """When the target was computed; 0 if never."""
        self.topology: StreamsGroupTopologyValue | None = None
        self._readers: dict[str, str] = {}
        """The first subtopology that reads a topic, by its name."""
        self.members: dict[str, StreamsMember] = {}
        self.target: dict[str, Tasks] = {}
        self.holders = TaskHolders()
        self.configured: ConfiguredTopology | None = None
        """The topology with partition counts, as of the topics that ``metadata_hash`` was computed from; soft state."""
        self.metadata_checked = False
        """Whether the topics are still those that ``metadata_hash`` was computed from; soft state."""
        self.shutdown_member: str | None = None
        """The member that asked for the end of the whole application; soft state."""
        self.endpoint_epoch = 0
        """Raised when the partitions of an endpoint change; soft state."""
        self.deadlines = Deadlines()

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def member(self, member_id: str) -> StreamsMember:
        """The member. KafkaError UNKNOWN_MEMBER_ID when there is none with that id."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {self.group_id} has no member {member_id}: join again.")
        return found

    def target_of(self, member_id: str) -> Tasks:
        """The member's target."""
        return self.target.get(member_id, NO_TASKS)

    def subtopology_of(self, topic: str) -> str | None:
        """The subtopology that reads the topic; None when none does."""
        return self._readers.get(topic)

    # -- replayed ------------------------------------------------------------------------------------------------------------

    def set_topology(self, topology: StreamsGroupTopologyValue | None) -> None:
        """Replays the topology's record."""
        if topology != self.topology:
            self.topology = topology
            self.metadata_checked = False
            self._readers = {}
            for each in () if topology is None else topology.subtopologies:
                for name in (*each.source_topics, *(info.name for info in each.repartition_source_topics)):
                    self._readers.setdefault(name, each.subtopology_id)

    def update_member(self, new: StreamsMember) -> None:
        """Replays a member's record."""
        self._drop(new.member_id)
        self.members[new.member_id] = new
        self.holders.add(new.member_id, new.process_id, new.assigned.plain(), new.revoking.plain())

    def remove_member(self, member_id: str) -> None:
        """Replays a member's tombstone."""
        self._drop(member_id)
        self.members.pop(member_id, None)
        if not self.members:
            self.shutdown_member = None

    def _drop(self, member_id: str) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self.holders.drop(member_id, old.assigned.plain(), old.revoking.plain())

    # -- invariants ----------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Asserts the invariants: an active task runs on one member at a time, and a process holds a task in one role."""
        assert all(key == member.member_id for key, member in self.members.items()), self.group_id
        assert self.assignment_epoch <= self.epoch, (self.group_id, self.assignment_epoch, self.epoch)
        active: dict[tuple[str, int], str] = {}
        for key, member in self.members.items():
            assert (member.state is MemberState.UNREVOKED_TASKS) or not member.revoking, (self.group_id, member)
            for owned in (member.assigned, member.revoking):
                for subtopology_id, partitions in owned.active.items():
                    for partition in partitions:
                        task = (subtopology_id, partition)
                        assert active.setdefault(task, key) == key, (self.group_id, task, key)
