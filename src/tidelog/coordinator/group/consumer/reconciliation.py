"""Moves a member from its current assignment to its target.

A member keeps its epoch until it has confirmed that it revoked the partitions outside its target (UNREVOKED_PARTITIONS). Then it
takes the target's epoch and the free partitions, and waits for the rest (UNRELEASED_PARTITIONS) until the other members have
released them. So two members never own one partition. Source: KIP-848; the results match Kafka 4.3's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from tidelog.coordinator.group.consumer.consumer_group import ConsumerMember, MemberState, Owned, Partitions
from tidelog.model.errors import ErrorCode, KafkaError

Reported = Mapping[bytes, frozenset[int]]
"""The partitions that a member reports to read; None when it reports nothing."""


class Target(NamedTuple):
    """A member's target: the epoch, its partitions, the ids of the topics that it subscribes to (partitions of others are
    ignored), whether that subscription has just changed, and the current owner of a partition."""

    epoch: int
    partitions: Partitions
    subscribed: frozenset[bytes]
    subscription_changed: bool
    owner: Callable[[bytes, int], str | None]


def reconcile(member: ConsumerMember, target: Target, reported: Reported | None) -> ConsumerMember:
    """The member after one step; the unchanged member when there is nothing to do. KafkaError FENCED_MEMBER_EPOCH when it must
    rejoin."""
    if not target.subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    if member.state is MemberState.UNKNOWN:
        if reported is None or reported:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The member's state was written by a newer release: it gives up its partitions and joins again.",
            )
        return _next(member, target, target.epoch, reported)
    stays = (
        member.epoch == target.epoch if member.state is MemberState.STABLE else _still_reads(reported, member.revoking)
    ) and member.state is not MemberState.UNRELEASED_PARTITIONS
    if not stays:
        return _next(member, target, member.epoch, reported)
    return _without_unsubscribed(member, target, reported) if target.subscription_changed else member


def _still_reads(reported: Reported | None, revoking: Owned) -> bool:
    """Whether the member still reads a partition that it must revoke; without a report it does."""
    if reported is None:
        return True
    return any(not partitions.isdisjoint(revoking.get(topic_id, {})) for topic_id, partitions in reported.items())


def _without_unsubscribed(member: ConsumerMember, target: Target, reported: Reported | None) -> ConsumerMember:
    """Keeps the target, but revokes topics that the member just unsubscribed from."""
    gone = {topic_id: owned for topic_id, owned in member.assigned.items() if topic_id not in target.subscribed}
    if not gone:
        return member
    assigned = {topic_id: owned for topic_id, owned in member.assigned.items() if topic_id not in gone}
    revoking = dict(member.revoking)
    for topic_id, owned in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **owned}
    stepped = replace(member, previous_epoch=member.epoch, assigned=assigned)
    if _still_reads(reported, revoking):
        return replace(stepped, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
    return stepped


def _next(member: ConsumerMember, target: Target, epoch: int, reported: Reported | None) -> ConsumerMember:
    assigned: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    taken: dict[bytes, set[int]] = {}
    waits = False
    for topic_id in dict.fromkeys((*target.partitions, *member.assigned)):
        wanted = target.partitions.get(topic_id, frozenset()) if topic_id in target.subscribed else frozenset[int]()
        owned = member.assigned.get(topic_id, {})
        kept = {partition: given for partition, given in owned.items() if partition in wanted}
        lost = {partition: given for partition, given in owned.items() if partition not in wanted}
        missing = {partition for partition in wanted if partition not in kept}
        # Partitions that the member itself is revoking are free for it.
        free = {partition for partition in missing if target.owner(topic_id, partition) in {None, member.member_id}}
        waits = waits or len(free) < len(missing)
        if kept:
            assigned[topic_id] = kept
        if lost:
            revoking[topic_id] = lost
        if free:
            taken[topic_id] = free
    if revoking and _still_reads(reported, revoking):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=assigned,
            revoking=revoking,
        )
    for topic_id, partitions in taken.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(partitions, target.epoch))
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        epoch=target.epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking={},
    )
