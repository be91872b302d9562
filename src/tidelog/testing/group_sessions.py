"""What a test does to coordinators: ends sessions of group members as their clock would, and asks whether they hold anything."""

from __future__ import annotations

from tidelog.broker.context import Broker
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC


def unused_topics(broker: Broker) -> list[str]:
    """The coordinators' own topics that nothing was ever written for; they are as good as new."""
    unused = []
    groups, transactions = broker.groups.machines(), broker.transactions.machines()
    if not isinstance(groups, ErrorCode) and not any(each.groups or list(each.offsets.stored.group_ids()) for each in groups):
        unused.append(OFFSETS_TOPIC)
    if not isinstance(transactions, ErrorCode) and not any(each.transactions for each in transactions):
        unused.append(TRANSACTION_STATE_TOPIC)
    return unused


def end(groups: Shards[GroupCoordinator], group_id: str, member_id: str | None, now_ms: int) -> list[str]:
    """The member, or all members, of a group are put out as if they had been silent for too long; the ids of those that were.

    ValueError when there is no such member, or none at all.
    """
    machines = groups.machines()
    if isinstance(machines, ErrorCode):
        raise ValueError(f"the groups are still being loaded ({machines.name})")
    members = [each for machine in machines for each in machine.member_ids(group_id)]
    if not members:
        raise ValueError(f"group {group_id} has no members")
    if member_id is not None and member_id not in members:
        raise ValueError(f"group {group_id} has no member {member_id}; it has {', '.join(members)}")
    gone = members if member_id is None else [member_id]
    for each in gone:
        groups.tell_all(lambda machine, each=each: machine.end_session(group_id, each, now_ms))  # type: ignore[misc]
    return gone
