"""Converts groups between the classic and the consumer protocol while their members keep running (KIP-848, online migration).

The first member of the consumer protocol that joins a classic group of consumers converts it into a consumer group, in which the
others stay as members that speak the classic protocol. When the last member of the consumer protocol leaves, the group is
converted back and rebalances. An empty group is simply replaced. ``group.consumer.migration.policy`` says which direction is
allowed.

A conversion is the only place where groups change before records are replayed: the records say the same, and a failed append
drops the coordinator with all of its state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState, Member
from tidelog.coordinator.group.consumer.consumer_group import ClassicMetadata, ConsumerGroup, ConsumerMember, MemberState, Owned
from tidelog.coordinator.group.consumer.consumer_records import creation_records, group_tombstones
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.migration.embedded_protocol import (
    CONSUMER,
    by_topic_id,
    read_assignment_message,
    read_subscription_message,
    version_of,
    write_assignment,
)
from tidelog.coordinator.group.records import GroupRecord, group_record, group_tombstone
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


class Opening(NamedTuple):
    """A consumer group that a request is for, with the records that converted it, and the classic group that it replaces."""

    group: ConsumerGroup
    records: tuple[GroupRecord, ...] = ()
    former: ClassicGroup | None = None

    def release(self, effects: Effects, now_ms: int) -> None:
        """Answers the parked requests of the former group; their members rejoin."""
        if self.former is not None:
            rebalance.release_all(self.former, effects, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)


def open_group(c: Coordination, group_id: str, *, create: bool, now_ms: int) -> Opening:
    """The consumer group with that id, created or converted if ``create``. KafkaError GROUP_ID_NOT_FOUND when that is
    impossible."""
    known = c.consumer(group_id)
    if known is not None:
        return Opening(known)
    group = c.classic(group_id)
    if group_id not in c.groups:
        if not create:
            raise _not_found(f"Consumer group {group_id} not found.")
        return Opening(ConsumerGroup(group_id))
    if group is None or not create:
        raise _not_found(f"Group {group_id} is not a consumer group.")
    if group.state is GroupState.EMPTY:
        return Opening(ConsumerGroup(group_id), (group_tombstone(group_id),), group)
    _check_upgrade(c, group)
    converted = _to_consumer_group(c, group, now_ms)
    return Opening(converted, (group_tombstone(group_id), *creation_records(converted)), group)


def _not_found(text: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)


# -- to the consumer protocol --------------------------------------------------------------------------------------------


def _check_upgrade(c: Coordination, group: ClassicGroup) -> None:
    why = None
    if not c.settings.migration_policy.upgrades:
        why = "online upgrade is disabled"
    elif group.protocol_type != CONSUMER:
        why = "the group does not use the consumer embedded protocol"
    elif len(group.members) > c.settings.consumer_max_size:
        why = "the group size exceeds the consumer group maximum size"
    if why is not None:
        raise _not_found(f"Cannot upgrade classic group {group.group_id} to consumer group because {why}.")


def _to_consumer_group(c: Coordination, classic: ClassicGroup, now_ms: int) -> ConsumerGroup:
    """Converts the members; the last assignment becomes both their current and their target assignment."""
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = classic.generation
    for member in classic.members.values():
        try:
            converted = _to_consumer_member(c, classic, member)
        except ProtocolViolation as error:
            raise _not_found(
                f"Group {classic.group_id} stays classic: the subscription of a member is not in the format of Kafka's consumers."
            ) from error
        group.update_member(converted)
        group.target[member.member_id] = {key: frozenset(owned) for key, owned in converted.assigned.items()}
        group.timers.arm(group.timers.sessions, member.member_id, now_ms + member.session_timeout_ms)
    _heed_claims(c, classic, group)
    group.metadata_hash = c.topics.hash_of(group.subscribed_topics())
    return group


def _heed_claims(c: Coordination, classic: ClassicGroup, group: ConsumerGroup) -> None:
    """A cooperative member that has not received its last assignment yet still reads what it had before, which it stated when
    it joined. No other member may get those partitions before it has revoked them. Kafka 4.3 uses the assignment alone."""
    claims = []
    for member in classic.members.values():
        subscription = _subscription(classic, member)
        claimed = by_topic_id(subscription.owned_partitions, c.topics)
        claims.append((-subscription.generation_id, member.member_id, claimed))
    for _, member_id, claimed in sorted(claims, key=lambda claim: claim[:2]):
        revoking = {}
        for topic_id, partitions in claimed.items():
            free = sorted(partition for partition in partitions if group.owner(topic_id, partition) is None)
            if free:
                revoking[topic_id] = dict.fromkeys(free, classic.generation)
        if revoking:
            holder = group.members[member_id]
            group.update_member(replace(holder, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking))


def _subscription(group: ClassicGroup, member: Member) -> ConsumerProtocolSubscription:
    return read_subscription_message(member.subscription(group.protocol))


def _to_consumer_member(c: Coordination, group: ClassicGroup, member: Member) -> ConsumerMember:
    subscription = _subscription(group, member)
    assigned: dict[bytes, dict[int, int]] = {}
    if member.assignment:
        assignment = read_assignment_message(member.assignment)
        if assignment.user_data:
            raise _not_found(
                f"Cannot upgrade classic group {group.group_id} to consumer group because an unsupported custom assignor is in "
                "use. Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."
            )
        owned = by_topic_id(assignment.assigned_partitions, c.topics)
        assigned = {topic_id: dict.fromkeys(partitions, group.generation) for topic_id, partitions in owned.items()}
    return ConsumerMember(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
    )


# -- back to the classic protocol ----------------------------------------------------------------------------------------


def may_downgrade(c: Coordination, group: ConsumerGroup, leaving: Iterable[str], *, replaced: bool = False) -> bool:
    """Whether the group is converted back when these members leave; ``replaced`` when a classic member takes the place of one
    of them."""
    gone = set(leaving)
    left = len(group.members) if replaced else len(group.members) - len(gone)
    return c.settings.migration_policy.downgrades and 0 < left <= c.settings.max_size and group.all_classic_except(gone)


def downgrade(
    c: Coordination,
    group: ConsumerGroup,
    leaving: Iterable[str],
    joining: ConsumerMember | None,
    why: str | None,
    records: list[GroupRecord],
    effects: Effects,
    now_ms: int,
) -> bool:
    """Converts the group back; with ``why`` it rebalances immediately. ``joining`` replaces the static member with its
    instance id, whose new id the preceding records already use. False when the group does not fit into one record, as a
    classic group must; then nothing has changed."""
    former = None if joining is None else group.static_member(joining.instance_id)
    gone = set(leaving)
    renamed = {}
    if joining is not None and former is not None:
        gone.add(former.member_id)
        renamed[former.member_id] = joining.member_id
    stay = [member for key, member in group.members.items() if key not in gone]
    classic = _to_classic_group(c, group, [*stay, *([] if joining is None else [joining])], now_ms)
    record = group_record(classic, rebalances=why is not None)
    if record.size > c.settings.max_record_bytes:
        return False
    records += [*group_tombstones(group, renamed), record]
    c.put(classic)
    if why is not None:
        rebalance.begin(classic, effects, c.settings, now_ms, why)
    return True


def _held(member: ConsumerMember) -> Owned:
    """The partitions that the member reads. Kafka 4.3 takes the target, which the member may not know yet: if the group were
    converted again before the rebalance ends, two members would read the same partition."""
    held = {topic_id: dict(owned) for topic_id, owned in member.assigned.items()}
    for topic_id, owned in member.revoking.items():
        held.setdefault(topic_id, {}).update(owned)
    return held


def _version_for(member: Member, protocol: str) -> int:
    """The version of the member's message; 0 when its metadata are malformed: only those of its first choice were checked when
    it joined. In that case Kafka 4.3 does not convert the group back, and a member whose session ended would be retried
    forever."""
    try:
        return version_of(member.metadata(protocol))
    except ProtocolViolation:
        return 0


def _to_classic_group(c: Coordination, group: ConsumerGroup, members: list[ConsumerMember], now_ms: int) -> ClassicGroup:
    classic = ClassicGroup(group.group_id, now_ms)
    classic.generation = group.epoch
    classic.protocol_type = CONSUMER
    for member in members:
        metadata = member.classic
        assert metadata is not None, (group.group_id, member)
        one = Member(
            member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=metadata.session_timeout_ms,
            protocols=metadata.protocols,
        )
        one.deadline_ms = now_ms + metadata.session_timeout_ms
        classic.add(one)
    classic.protocol = classic.choose_protocol()
    for member, one in zip(members, classic.members.values(), strict=True):
        one.assignment = write_assignment(_held(member), c.topics, _version_for(one, classic.protocol))
    classic.state = GroupState.STABLE
    return classic
