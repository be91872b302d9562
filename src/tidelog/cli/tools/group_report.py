"""The tables of ``consumer-groups`` for a group, as columns and rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from tidelog.cli.admin_session import AdminSession, Partition
from tidelog.cli.columns import Column, Row
from tidelog.cli.refusal import CommandFailed, error_text
from tidelog.cli.tools.group_state import Group, Member, committed
from tidelog.cli.tools.held_offsets import holders
from tidelog.cli.tools.offset_reset import selected
from tidelog.config.listeners import address_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LATEST_TIMESTAMP, NO_EPOCH
from tidelog.model.printable import printable
from tidelog.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic

Report = tuple[list[Column], list[Row]]


def offsets(session: AdminSession, group: Group, verbose: bool) -> Report:
    """Each partition that is assigned or has an offset: the committed offset and the lag."""
    old = committed(session, group.group_id)
    owners = {partition: member for member in group.members for partition in member.assignment}
    partitions = sorted(owners.keys() | old.keys())
    ends = session.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP))
    held = holders(session, {part: end.offset for part, end in ends.items() if end.error_code == ErrorCode.NONE})
    rows: list[Row] = []
    for partition in partitions:
        at = old.get(partition)
        end = ends.get(partition)
        end_offset = end.offset if end is not None and end.error_code == ErrorCode.NONE else None
        owner = owners.get(partition)
        rows.append(
            {
                "group": group.group_id,
                "topic": partition[0],
                "partition": partition[1],
                "leader_epoch": None if at is None or at.leader_epoch == NO_EPOCH else at.leader_epoch,
                "current_offset": None if at is None else at.offset,
                "log_end_offset": end_offset,
                "lag": None if at is None or end_offset is None else end_offset - at.offset,
                "consumer_id": _name(owner),
                "host": None if owner is None else owner.host,
                "client_id": None if owner is None else owner.client_id,
            }
        )
    for row in rows:
        holder = held.get((str(row["topic"]), int(str(row["partition"]))))
        if holder is not None:
            row["held_by"] = asdict(holder)
    epoch = [Column("LEADER-EPOCH", "leader_epoch", 15)] if verbose else []
    return [
        Column("GROUP", "group", 15),
        Column("TOPIC", "topic", 15),
        Column("PARTITION", "partition", 10),
        *epoch,
        Column("CURRENT-OFFSET", "current_offset", 15),
        Column("LOG-END-OFFSET", "log_end_offset", 15),
        Column("LAG", "lag", 15),
        Column("CONSUMER-ID", "consumer_id", 15),
        Column("HOST", "host", 15),
        Column("CLIENT-ID", "client_id", 0, pad=False),
    ], rows


def held_text(row: Row) -> str:
    """Why read_committed consumers do not get past an offset."""
    holder = row["held_by"]
    known = printable(holder["transactional_id"] or "")
    name = f"transaction {known}" if known else "a transaction no coordinator knows"
    return (
        f"Partition {row['topic']}-{row['partition']}: readers of committed records wait at offset {holder['offset']} for {name}"
        f" (producer {holder['producer_id']}, epoch {holder['producer_epoch']})."
    )


def members(session: AdminSession, group: Group, verbose: bool) -> Report:
    """The members, those with most partitions first."""
    ordered = sorted(group.members, key=lambda member: (-len(member.assignment), member.member_id))
    rows = [
        {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "group_instance_id": member.instance_id,
            "host": member.host,
            "client_id": member.client_id,
            "partitions": len(member.assignment),
            "current_epoch": member.epoch,
            "current_assignment": _partition_text(member.assignment),
            "target_epoch": None if member.epoch is None else group.target_epoch,
            "target_assignment": _partition_text(member.target or ()),
        }
        for member in ordered
    ]
    instance = [Column("GROUP-INSTANCE-ID", "group_instance_id", 17)] if any(member.instance_id for member in ordered) else []
    more = [
        Column("CURRENT-EPOCH", "current_epoch", 15),
        Column("CURRENT-ASSIGNMENT", "current_assignment", 20),
        Column("TARGET-EPOCH", "target_epoch", 15),
        Column("TARGET-ASSIGNMENT", "target_assignment", 20),
    ]
    return [
        Column("GROUP", "group", 15),
        Column("CONSUMER-ID", "consumer_id", 15),
        *instance,
        Column("HOST", "host", 15),
        Column("CLIENT-ID", "client_id", 15),
        Column("#PARTITIONS", "partitions", 15),
        *(more if verbose else []),
    ], rows


def states(session: AdminSession, group: Group, verbose: bool) -> Report:
    """One row: the coordinator and the state of the group."""
    node_id, host, port = session.coordinator(group.group_id)
    row = {
        "group": group.group_id,
        "coordinator": f"{address_text(host, port)}  ({node_id})",
        "assignment_strategy": group.assignor or None,
        "state": group.state,
        "group_epoch": group.epoch,
        "target_assignment_epoch": group.target_epoch,
        "members": len(group.members),
    }
    more = [Column("GROUP-EPOCH", "group_epoch", 15), Column("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch", 25)]
    return [
        Column("GROUP", "group", 15),
        Column("COORDINATOR (ID)", "coordinator", 25),
        Column("ASSIGNMENT-STRATEGY", "assignment_strategy", 20),
        Column("STATE", "state", 20),
        *(more if verbose else []),
        Column("#MEMBERS", "members", 0, pad=False),
    ], [row]


def delete_offsets(session: AdminSession, group_id: str, topics: Iterable[str]) -> tuple[int, list[Row]]:
    """Deletes the offsets of these topics or partitions. Returns the error of the whole request, and a row for each partition."""
    rows: list[Row] = []
    chosen: list[Partition] = []
    for topic in topics:
        try:
            chosen += selected(session, [topic])
        except CommandFailed as error:
            rows.append({"topic": topic, "partition": None, "status": f"Error: {error}"})
    asked: dict[str, list[OffsetDeleteRequestPartition]] = {}
    for topic, index in chosen:
        asked.setdefault(topic, []).append(OffsetDeleteRequestPartition(partition_index=index))
    request = OffsetDeleteRequest(
        group_id=group_id, topics=[OffsetDeleteRequestTopic(name=name, partitions=parts) for name, parts in asked.items()]
    )
    response = session.ask_coordinator(group_id, request, lambda answer: answer.error_code)
    answers = {(topic.name, part.partition_index): part.error_code for topic in response.topics for part in topic.partitions}
    for topic, index in chosen:
        code = response.error_code or answers.get((topic, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        rows.append({"topic": topic, "partition": index, "status": f"Error: {error_text(code)}" if code else "Successful"})
    return response.error_code, sorted(rows, key=lambda row: (row["topic"], row["partition"] or 0))


def _name(member: Member | None) -> str | None:
    return None if member is None else member.member_id


def _partition_text(partitions: Iterable[Partition]) -> str:
    """``topic:0,1;other:2``."""
    by_topic: dict[str, list[str]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(str(index))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items())
