"""Groups of all four protocols in one shape: members, assignments, committed offsets, lag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.client.admin import groups, share_groups, streams_groups
from tidelog.client.admin.group_results import StreamsMember, StreamsSubtopology
from tidelog.client.admin.topics import check
from tidelog.client.calls import Ask, Call, Coordinator, Locate, Node, Partition, VersionOf
from tidelog.console.reading.fetching import Bounds, bounds
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET
from tidelog.protocol.messages.list_groups import ListGroupsRequest
from tidelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
EMPTY_STATES: Final = frozenset({"Empty", "Dead"})
GROUPS_IN_OFFSET_FETCH_FROM: Final = 8
NAMES_IN_OFFSET_FETCH_TO: Final = 9


@dataclass(frozen=True, slots=True)
class Listed:
    """A group as its coordinator lists it. ``kind``: its type, classic where the broker is too old to say."""

    group_id: str
    kind: str
    state: str
    protocol: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member. ``epoch`` and ``target`` are None where the protocol has none. Streams groups: subtopologies stand for topics,
    ``assignment`` and ``target`` are active tasks, and ``streams`` has the rest."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    assignment: tuple[Partition, ...]
    target: tuple[Partition, ...] | None
    streams: StreamsMember | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group without its offsets."""

    group_id: str
    kind: str
    state: str
    assignor: str | None
    epoch: int | None
    target_epoch: int | None
    members: tuple[MemberState, ...]
    topology_epoch: int | None = None
    subtopologies: tuple[StreamsSubtopology, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """One partition of a group. Of share groups ``committed`` is the start offset, and ``known_lag`` what the broker counts."""

    committed: int | None
    bounds: Bounds
    known_lag: int | None = None

    @property
    def lag(self) -> int | None:
        """Records up to the high watermark; None where that is not known."""
        if self.known_lag is not None:
            return self.known_lag
        if self.committed is None or self.bounds.end is None:
            return None
        return max(0, self.bounds.end - self.committed)


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group with its offsets, and the node id of its coordinator."""

    group: GroupState
    coordinator: int
    progress: Mapping[Partition, Progress]

    @property
    def lag(self) -> int | None:
        """The sum over the partitions whose lag is known; None when none is."""
        known = [each.lag for each in self.progress.values() if each.lag is not None]
        return sum(known) if known else None


def listed_at(broker_id: int) -> Call[list[Listed]]:
    """The groups of one broker. KafkaError."""
    answer = yield Ask(ListGroupsRequest(), Node(broker_id), code_of=lambda answer: int(answer.error_code))
    check(answer.error_code)
    return [
        Listed(each.group_id, (each.group_type or CLASSIC).lower(), each.group_state or "", each.protocol_type or "", broker_id)
        for each in answer.groups
    ]


def described(group_id: str, kind: str) -> Call[GroupState]:
    """A group of this type. KafkaError (GROUP_ID_NOT_FOUND)."""
    if kind == SHARE:
        share = yield from share_groups.describe(group_id)
        members = tuple(
            MemberState(each.member_id, None, each.client_id, each.host, each.epoch, each.assignment, None)
            for each in share.members
        )
        return GroupState(group_id, kind, share.state, share.assignor or None, share.epoch, share.assignment_epoch, members)
    if kind == STREAMS:
        streams = yield from streams_groups.describe(group_id)
        threads = tuple(
            MemberState(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.host,
                each.epoch,
                each.assignment.active,
                each.target.active,
                each,
            )
            for each in streams.members
        )
        return GroupState(
            group_id,
            kind,
            streams.state,
            None,
            streams.epoch,
            streams.target_epoch,
            threads,
            streams.topology_epoch,
            streams.subtopologies,
        )
    found = yield from groups.describe(group_id)
    consumers = tuple(
        MemberState(each.member_id, each.instance_id, each.client_id, each.host, each.epoch, each.assignment, each.target)
        for each in found.members
    )
    own = CLASSIC if found.epoch is None else CONSUMER
    return GroupState(group_id, own, found.state, found.assignor or None, found.epoch, found.target_epoch, consumers)


def progress(group_id: str, kind: str, also: Iterable[Partition] = ()) -> Call[dict[Partition, Progress]]:
    """Offsets and bounds of each partition with an offset, and of those in ``also``. Committed offsets are read before the ends,
    so that no lag is negative."""
    if kind == SHARE:
        starts = yield from share_groups.offsets(group_id)
        limits = yield from bounds(sorted(starts))
        return {at: Progress(each.start_offset, limits[at], each.lag) for at, each in sorted(starts.items())}
    offsets = yield from committed(group_id)
    wanted = sorted({*offsets, *also})
    limits = yield from bounds(wanted)
    return {at: Progress(offsets.get(at), limits[at]) for at in wanted}


def committed(group_id: str, topic: str | None = None, partitions: Iterable[int] = ()) -> Call[dict[Partition, int]]:
    """The committed offsets of a group, all or of some partitions of a topic; empty for a group without any. KafkaError.

    Topics are asked for by name: an answer with ids (KIP-848) would cost a list of all topics for each group."""
    to = Coordinator(group_id)
    version = yield VersionOf(OffsetFetchRequest.API_KEY, to)
    if version >= GROUPS_IN_OFFSET_FETCH_FROM:
        topics = None if topic is None else [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)])
        found = (yield Ask(request, to, NAMES_IN_OFFSET_FETCH_TO, _first_group)).groups[0]
    else:
        old = None if topic is None else [OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))]
        found = yield Ask(OffsetFetchRequest(group_id=group_id, topics=old), to, code_of=lambda answer: int(answer.error_code))
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    check(found.error_code)
    return {
        (each.name, part.partition_index): part.committed_offset
        for each in found.topics
        for part in each.partitions
        if part.error_code == ErrorCode.NONE and part.committed_offset != NO_OFFSET
    }


def _first_group(answer: Any) -> int:
    return int(answer.groups[0].error_code)


def snapshot(group_id: str, kind: str) -> Call[GroupSnapshot]:
    """A group with everything that its page shows. KafkaError."""
    group = yield from described(group_id, kind)
    assigned = () if kind == STREAMS else (at for member in group.members for at in member.assignment)
    found = yield from progress(group_id, group.kind, assigned)
    node_id, _, _ = yield Locate(Coordinator(group_id))
    return GroupSnapshot(group, node_id, found)


def by_topic(partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    """Partitions as ``[{"topic": .., "partitions": [..]}]``."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return [{"topic": topic, "partitions": indexes} for topic, indexes in found.items()]
