"""Ends sessions of group members on demand, as the coordinator's clock would."""

from __future__ import annotations

from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.shards import Shards
from tidelog.model.errors import ErrorCode


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
