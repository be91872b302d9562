"""Results of admin calls about groups."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.client.calls import Partition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group of any type; ``state`` and ``group_type`` are empty if the broker is too old to report them."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group. ``epoch`` and ``target`` are None in the classic protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Partition, ...]
    epoch: int | None = None
    target: tuple[Partition, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group. ``epoch`` and ``target_epoch`` are None for classic groups."""

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset and its leader epoch, -1 if it has none."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member of a share group."""

    member_id: str
    client_id: str
    host: str
    epoch: int
    assignment: tuple[Partition, ...]
    topics: tuple[str, ...] = ()
    """Those that it subscribes to."""


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group (KIP-932)."""

    group_id: str
    state: str
    assignor: str
    members: tuple[ShareMember, ...]
    epoch: int
    assignment_epoch: int


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """Where a share partition starts: records before it are done. None: not known yet; ``lag`` also with an old broker."""

    start_offset: int | None
    leader_epoch: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class StreamsTasks:
    """Tasks by role: (subtopology id, partition)."""

    active: tuple[Partition, ...]
    standby: tuple[Partition, ...]
    warmup: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group: a thread of a process. ``classic``: it uses the classic protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    process_id: str
    epoch: int
    topology_epoch: int
    assignment: StreamsTasks
    target: StreamsTasks
    classic: bool


@dataclass(frozen=True, slots=True)
class StreamsSubtopology:
    """A part of the topology: the names of the topics that it reads, and of those that belong to the group."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroup:
    """A streams group (KIP-1071). ``topology_epoch`` is -1 while the group has no topology."""

    group_id: str
    state: str
    members: tuple[StreamsMember, ...]
    epoch: int
    target_epoch: int
    topology_epoch: int
    subtopologies: tuple[StreamsSubtopology, ...]
