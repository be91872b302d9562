"""StreamsGroupHeartbeat: joins a member, extends its session, takes its report and returns its tasks (KIP-1071).

A heartbeat may do four things, each with its records, in Kafka's order: change the member; store the topology of the first
member; raise the group's epoch, because a member, the topics, the validated topology or the settings of the assignment changed;
compute a target for that epoch; move the member towards the target. All decisions use the state before the request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.consumer.consumer_heartbeat import check_sizes
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord, group_tombstone
from tidelog.coordinator.group.streams.streams_answer import (
    Answered,
    StatusCode,
    endpoints,
    partition_count,
    status,
    told_tasks,
)
from tidelog.coordinator.group.streams.streams_group import JOIN_EPOCH, MemberState, StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.streams_records import current_record, epoch_record, member_record, topology_record
from tidelog.coordinator.group.streams.streams_settings import assignment_configs, setting
from tidelog.coordinator.group.streams.streams_target import NextTarget, Plan, next_target
from tidelog.coordinator.group.streams.streams_validation import check_epoch, check_tasks, read_reported
from tidelog.coordinator.group.streams.task_reconciliation import Target, reconcile
from tidelog.coordinator.group.streams.tasks import NO_TASKS, Tasks
from tidelog.coordinator.group.streams.topology import ConfiguredTopology, configure, required_topics
from tidelog.coordinator.group.streams.topology_record import recorded, same_topology
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import Token
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from tidelog.protocol.messages.streams_group_topology_value import StreamsGroupTopologyValue

NO_TOPOLOGY = -1


class StreamsBeat(NamedTuple):
    """A heartbeat with what its connection knows about the client."""

    token: Token
    client_id: str
    client_host: str
    request: StreamsGroupHeartbeatRequest


class Opening(NamedTuple):
    """A streams group that a request is for, and the empty classic group that it replaces."""

    group: StreamsGroup
    former: ClassicGroup | None = None


class Checked(NamedTuple):
    """The topology against the topics that there are now."""

    topology: StreamsGroupTopologyValue
    configured: ConfiguredTopology
    metadata_hash: int

    @property
    def validated_epoch(self) -> int:
        """The topology's epoch when all of its topics are there, else -1."""
        return self.topology.epoch if self.configured.ready else NO_TOPOLOGY


def open_group(c: Coordination, group_id: str, *, create: bool) -> Opening:
    """The streams group with that id, created if ``create``, in place of an empty classic one too. KafkaError GROUP_ID_NOT_FOUND
    when that is impossible."""
    known = c.of_class(group_id, StreamsGroup)
    if known is not None:
        return Opening(known)
    if group_id not in c.groups:
        if not create:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return Opening(StreamsGroup(group_id))
    classic = c.classic(group_id)
    if classic is None or not create or classic.state is not GroupState.EMPTY:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is of another protocol.")
    return Opening(StreamsGroup(group_id), classic)


def heartbeat(c: Coordination, beat: StreamsBeat, effects: Effects, now_ms: int) -> None:
    """Answers a heartbeat that is not a leave. A KafkaError refuses it; then nothing has changed."""
    request = beat.request
    joins = request.member_epoch == JOIN_EPOCH
    opening = open_group(c, request.group_id, create=joins)
    group = opening.group
    if joins and len(group.members) >= c.settings.streams_max_size:
        text = f"The streams group is full: group.streams.max.size is {c.settings.streams_max_size}."
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, text)
    is_new = request.member_id not in group.members
    member = StreamsMember(request.member_id) if joins and is_new else group.member(request.member_id)
    reported = read_reported(request)
    check_epoch(member, request.member_epoch, reported)
    records = [] if opening.former is None else [group_tombstone(group.group_id)]
    updated = _updated(member, beat)
    if updated != member:
        records.append(member_record(group.group_id, updated))
    topology = _topology(group, request, records)
    check_sizes(c, records)
    checked = _check_topology(c, group, topology)
    if checked.configured.ready:
        check_tasks(checked.configured, reported)
    configs = assignment_configs(c, group.group_id)
    bump = (
        updated != member
        or checked.metadata_hash != group.metadata_hash
        or checked.validated_epoch != group.validated_topology_epoch
        or configs != group.assignment_configs
    )
    if bump:
        records.append(epoch_record(group.group_id, group.epoch + 1, checked.metadata_hash, checked.validated_epoch, configs))
    waits_until_ms = _first_assignment_ms(c, group, now_ms)
    waits = waits_until_ms is not None and now_ms < waits_until_ms
    members = {**group.members, updated.member_id: updated}
    plan = Plan(group.epoch + bump, members, checked.configured, configs)
    target = next_target(c, group, plan, now_ms, waits=waits)
    records += target.records
    stepped = reconcile(updated, Target(target.epoch, target.tasks.get(updated.member_id, NO_TASKS), group.holders), reported)
    if stepped != updated:
        records.append(current_record(group.group_id, stepped))
    check_sizes(c, records)
    # Nothing can be refused any more.
    c.put(group)
    if opening.former is not None:
        rebalance.release_all(opening.former, effects, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.configured, group.metadata_checked = checked.configured, True
    group.deadlines.first_assignment_ms = waits_until_ms
    _arm(c, group, updated, stepped, now_ms)
    if request.shutdown_application and group.shutdown_member is None:
        group.shutdown_member = updated.member_id
    effects.records += records
    changed = joins or member.assigned != stepped.assigned
    tells = changed or _misses_tasks(request, member, stepped, reported)
    answer = _answer(c, group, request, stepped, checked, target, changed=changed, tells=tells)
    effects.reply(beat.token, answer._replace(rebalances=bump))


def _updated(member: StreamsMember, beat: StreamsBeat) -> StreamsMember:
    request = beat.request
    endpoint = request.user_endpoint
    tags = request.client_tags
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=member.client_tags if tags is None else {each.key: each.value for each in tags},
        client_id=beat.client_id,
        client_host=beat.client_host,
    )


def _topology(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, records: list[GroupRecord]
) -> StreamsGroupTopologyValue:
    """The group's topology: that of its first member. KafkaError INVALID_REQUEST for another one that is not older."""
    known = group.topology
    if request.topology is None:
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group.group_id} has no topology: its record is missing.")
        return known
    sent = recorded(request.topology)
    if known is None:
        records.append(topology_record(group.group_id, sent))
        return sent
    if sent.epoch >= known.epoch and not same_topology(sent, known):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Group {group.group_id} has another topology: stop all of its members, or use another application.id.",
        )
    return known


def _check_topology(c: Coordination, group: StreamsGroup, topology: StreamsGroupTopologyValue) -> Checked:
    """KafkaError STREAMS_INVALID_TOPOLOGY for a topology that no topics can satisfy."""
    if group.topology is not None and group.configured is not None and group.metadata_checked:
        return Checked(topology, group.configured, group.metadata_hash)
    metadata_hash = c.topics.hash_of(required_topics(topology))
    if group.topology is not None and group.configured is not None and metadata_hash == group.metadata_hash:
        return Checked(topology, group.configured, metadata_hash)
    return Checked(topology, configure(topology, lambda name: partition_count(c.topics, name)), metadata_hash)


def _first_assignment_ms(c: Coordination, group: StreamsGroup, now_ms: int) -> int | None:
    """When the first assignment is due; the first member of an empty group starts the wait."""
    if group.members or group.deadlines.first_assignment_ms is not None:
        return group.deadlines.first_assignment_ms
    delay_ms = setting(c, group.group_id, c.settings.streams_initial_rebalance_delay)
    return now_ms + delay_ms if delay_ms > 0 else None


def _arm(c: Coordination, group: StreamsGroup, updated: StreamsMember, stepped: StreamsMember, now_ms: int) -> None:
    deadlines = group.deadlines
    timeout_ms = setting(c, group.group_id, c.settings.streams_session_timeout)
    deadlines.sessions[stepped.member_id] = now_ms + timeout_ms
    if stepped != updated:
        if stepped.state is MemberState.UNREVOKED_TASKS:
            deadlines.rebalances[stepped.member_id] = (now_ms + stepped.rebalance_timeout_ms, stepped.epoch)
        else:
            deadlines.rebalances.pop(stepped.member_id, None)


def _misses_tasks(
    request: StreamsGroupHeartbeatRequest, member: StreamsMember, stepped: StreamsMember, reported: Tasks | None
) -> bool:
    """Whether the member did not get the answer that told its tasks: its epoch is behind, or it reports other tasks. Kafka 4.3
    tells them with the next change only, and until then no member runs them."""
    return request.member_epoch < member.epoch or (reported is not None and reported != stepped.assigned.plain())


def _answer(
    c: Coordination,
    group: StreamsGroup,
    request: StreamsGroupHeartbeatRequest,
    stepped: StreamsMember,
    checked: Checked,
    target: NextTarget,
    *,
    changed: bool,
    tells: bool,
) -> Answered:
    response = StreamsGroupHeartbeatResponse(
        member_id=stepped.member_id,
        member_epoch=stepped.epoch,
        heartbeat_interval_ms=setting(c, group.group_id, c.settings.streams_heartbeat_interval),
    )
    if tells:
        told_tasks(response, stepped.assigned)
    if changed and stepped.endpoint is not None:
        group.endpoint_epoch += 1
    if group.endpoint_epoch != request.endpoint_information_epoch:
        others = [each for each in group.members.values() if each.member_id != stepped.member_id]
        response.partitions_by_user_endpoint = endpoints(c.topics, checked.configured, [*others, stepped])
    response.endpoint_information_epoch = group.endpoint_epoch
    found = response.status = []
    known = group.topology
    if known is not None and stepped.topology_epoch < known.epoch:
        text = f"The member has topology epoch {stepped.topology_epoch}, and the group is at {known.epoch}."
        found.append(status(StatusCode.STALE_TOPOLOGY, text))
    if target.delayed is not None:
        found.append(status(StatusCode.ASSIGNMENT_DELAYED, target.delayed))
    problem = checked.configured.problem
    if problem is not None:
        found.append(status(StatusCode(problem.status), problem.detail))
    if group.shutdown_member is not None:
        text = f"Member {group.shutdown_member} asked for the end of the whole application."
        found.append(status(StatusCode.SHUTDOWN_APPLICATION, text))
    return Answered(response, checked.configured.missing_topics)
