"""Coordinators under test control: end sessions of group members as their clock would, and read the groups."""

from __future__ import annotations

from tidelog.broker.node import Broker
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC


def unused_topics(broker: Broker) -> list[str]:
    """The coordinators' own topics without any record."""
    unused = []
    groups, transactions = broker.groups.machines(), broker.transactions.machines()
    if not isinstance(groups, ErrorCode) and not any(each.groups or list(each.offsets.stored.group_ids()) for each in groups):
        unused.append(OFFSETS_TOPIC)
    if not isinstance(transactions, ErrorCode) and not any(each.transactions for each in transactions):
        unused.append(TRANSACTION_STATE_TOPIC)
    return unused


def end(groups: Shards[GroupCoordinator], group_id: str, member_id: str | None, now_ms: int) -> list[str]:
    """Remove the member, or all members, of a group as if their session had timed out; returns their ids.

    ValueError when there is no such member, or none at all.
    """
    members = [each for machine in _loaded(groups) for each in machine.member_ids(group_id)]
    if not members:
        raise ValueError(f"group {group_id} has no members")
    if member_id is not None and member_id not in members:
        raise ValueError(f"group {group_id} has no member {member_id}; it has {', '.join(members)}")
    gone = members if member_id is None else [member_id]
    for each in gone:
        groups.tell_all(lambda machine, each=each: machine.end_session(group_id, each, now_ms))  # type: ignore[misc]
    return gone


def names(groups: Shards[GroupCoordinator]) -> list[str]:
    """All groups, with members or with offsets only, sorted. ValueError while they are being loaded."""
    found: set[str] = set()
    for machine in _loaded(groups):
        found |= {*machine.groups, *machine.offsets.stored.group_ids()}
    return sorted(found)


def committed_offsets(groups: Shards[GroupCoordinator], group_id: str) -> dict[tuple[str, int], int]:
    """(topic, partition) to committed offset. ValueError when there is no such group."""
    if group_id not in names(groups):
        raise ValueError(f"there is no group {group_id}; there are {', '.join(names(groups)) or 'none'}")
    every = (item for machine in _loaded(groups) for item in machine.offsets.stored.of(group_id).items())
    return {(topic, partition): found.offset for (topic, partition), found in sorted(every, key=lambda item: item[0])}


def _loaded(groups: Shards[GroupCoordinator]) -> list[GroupCoordinator]:
    machines = groups.machines()
    if isinstance(machines, ErrorCode):
        raise ValueError(f"the groups are still being loaded ({machines.name})")
    return list(machines)
