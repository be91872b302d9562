"""Reads the state of consumer groups of either protocol: members, states, committed offsets.

A group is described by its coordinator; groups of the consumer protocol (KIP-848) and classic ones are returned in one form.
"""

from __future__ import annotations

from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.client.admin import groups
from tidelog.client.admin.group_results import Committed, Group, Member
from tidelog.client.admin.groups import DEAD
from tidelog.protocol.messages.list_groups import ListedGroup

__all__ = ["DEAD", "Committed", "Group", "Member"]

EMPTY = "Empty"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


def list_groups(session: AdminSession) -> list[ListedGroup]:
    """All groups of all brokers, by name."""
    return session.run(groups.listed())


def consumer_groups(session: AdminSession) -> list[ListedGroup]:
    """Consumer groups of both protocols, and groups that only store offsets."""
    return [
        group
        for group in list_groups(session)
        if (group.group_type or "classic").lower() == "consumer"
        or ((group.group_type or "classic").lower() == "classic" and group.protocol_type in {"consumer", ""})
    ]


def describe(session: AdminSession, group_id: str) -> Group:
    """The group. CommandFailed when there is none with that name."""
    return session.run(groups.describe(group_id))


def committed(session: AdminSession, group_id: str) -> dict[Partition, Committed]:
    """All committed offsets of the group."""
    return session.run(groups.committed(group_id))
