"""The tables of ``share-groups`` for a group, as columns and rows, and new start offsets."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.cli.columns import Column, Row
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.group_state import DEAD, EMPTY
from tidelog.cli.tools.offset_reset import Target, at_time, selected
from tidelog.client.admin import share_groups
from tidelog.client.admin.group_results import ShareGroup
from tidelog.config.listeners import address_text

Report = tuple[list[Column], list[Row]]


def offsets(session: AdminSession, group: ShareGroup, verbose: bool) -> Report:
    """Each partition that the group has read, with its start offset and the records after it that are not done."""
    found = session.run(share_groups.offsets(group.group_id))
    rows: list[Row] = [
        {
            "group": group.group_id,
            "topic": topic,
            "partition": partition,
            "leader_epoch": at.leader_epoch,
            "start_offset": at.start_offset,
            "lag": at.lag,
        }
        for (topic, partition), at in sorted(found.items())
    ]
    return [
        Column("GROUP", "group", 15),
        Column("TOPIC", "topic", 15),
        Column("PARTITION", "partition", 10),
        *([Column("LEADER-EPOCH", "leader_epoch", 13)] if verbose else []),
        Column("START-OFFSET", "start_offset", 13),
        Column("LAG", "lag", 0, pad=False),
    ], rows


def members(session: AdminSession, group: ShareGroup, verbose: bool) -> Report:
    """The members, by id."""
    rows: list[Row] = [
        {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "host": member.host,
            "client_id": member.client_id,
            "partitions": len(member.assignment),
            "member_epoch": member.epoch,
            "assignment": _partition_text(member.assignment),
        }
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    return [
        Column("GROUP", "group", 15),
        Column("CONSUMER-ID", "consumer_id", 15),
        Column("HOST", "host", 15),
        Column("CLIENT-ID", "client_id", 15),
        Column("#PARTITIONS", "partitions", 12),
        *([Column("MEMBER-EPOCH", "member_epoch", 13)] if verbose else []),
        Column("ASSIGNMENT", "assignment", 0, pad=False),
    ], rows


def states(session: AdminSession, group: ShareGroup, verbose: bool) -> Report:
    """One row: the coordinator and the state of the group."""
    node_id, host, port = session.coordinator(group.group_id)
    row: Row = {
        "group": group.group_id,
        "coordinator": f"{address_text(host, port)}  ({node_id})",
        "state": group.state,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": len(group.members),
    }
    more = [Column("GROUP-EPOCH", "group_epoch", 12), Column("ASSIGNMENT-EPOCH", "assignment_epoch", 17)]
    return [
        Column("GROUP", "group", 15),
        Column("COORDINATOR (ID)", "coordinator", 25),
        Column("STATE", "state", 15),
        *(more if verbose else []),
        Column("#MEMBERS", "members", 0, pad=False),
    ], [row]


def reset(
    session: AdminSession, group_id: str, target: str, value: str, topics: Sequence[str], *, execute: bool
) -> tuple[list[Row], dict[str, str]]:
    """The new start offsets, and why partitions did not get theirs. CommandFailed while the group has members."""
    state = session.run(share_groups.state(group_id))
    if state not in {EMPTY, DEAD}:
        raise CommandFailed(f"Share group '{group_id}' is {state}: stop its members before you move its offsets.")
    partitions: list[Partition] = selected(session, topics)
    if not topics and state != DEAD:
        partitions = sorted(session.run(share_groups.offsets(group_id)))
    now_ms = round(time.time() * 1000)  # noqa: TID251
    new = at_time(session, partitions, Target(target, value), now_ms)
    failed = session.run(share_groups.alter_offsets(group_id, new)) if execute and new else {}
    rows: list[Row] = [
        {"group": group_id, "topic": topic, "partition": partition, "new_offset": offset}
        for (topic, partition), offset in sorted(new.items())
    ]
    return rows, {f"{topic}-{partition}": str(error) for (topic, partition), error in failed.items()}


def _partition_text(partitions: Sequence[Partition]) -> str:
    """``topic:0,1;other:2``."""
    by_topic: dict[str, list[str]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(str(partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in sorted(by_topic.items()))
